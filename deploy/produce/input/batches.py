"""Group lines into batches for the producer, each with the position in the input where it ends."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import click

from deploy.produce.input.csv_records import CsvRecords
from deploy.produce.input.json_lines import TOO_DEEP, InputRecord, json_records
from deploy.produce.input.lines import Lines
from deploy.produce.input.resume import Place
from deploy.produce.input.source import FeedError, InputSource
from deploy.produce.input.times import WRONG_TIME, unix_seconds
from deploy.produce.input.values import Value
from deploy.produce.timing import DEFAULT, RunTiming
from producers.storage.input_progress import InputProgress

BATCH_LINES = 10_000
PRINTED_LINES = 5  # bad lines printed one by one; the rest is only counted
OWN_CLIENT = "each line"  # placeholder without a field for clients; never sent
LACKING = "a field is missing, or its client is empty or not text"


class InputBatch(NamedTuple):
    """Values of some lines, their clients and times if they have any, and a file's position after them."""

    values: list[Value]
    clients: list[str] | None
    progress: InputProgress | None
    times: list[float] | None = None


@dataclass
class _Gathered:
    """Lines of the next batch, and when the first of them arrived."""

    values: list[Value] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    began: float = 0.0

    def add(self, value: Value, client: str, moment: float) -> None:
        if not self.values:
            self.began = time.monotonic()
        self.values.append(value)
        self.clients.append(client)
        self.times.append(moment)

    def is_due(self, batch_lines: int, batch_seconds: float) -> bool:
        if not self.values:
            return False
        return len(self.values) == batch_lines or time.monotonic() - self.began >= batch_seconds


@dataclass
class InputBatches:
    """Reads batches from inputs.

    Parameters
    ----------
    layout : `csv`, with a header line, or `jsonl`, an object a line.
    value_field, client_field : names of the columns or fields; None: every line is a different client.
    read_value : converts a field to a value of the collection; of a pair, a tuple of two fields.
    is_strict : whether a bad line is an error; else it is skipped.
    batch_lines : most lines of a batch.
    timing : how long a batch is gathered.
    time_field : name of the column or field with the time of the event; None: it happens when it is read.
    second_field : name of the column or field with the second text of a pair; None for other collections.
    used, skipped : lines so far that became a report, and that could not.
    """

    layout: str
    value_field: str
    client_field: str | None
    read_value: Callable[[Any], Value]
    is_strict: bool = False
    batch_lines: int = BATCH_LINES
    timing: RunTiming = DEFAULT
    time_field: str | None = None
    second_field: str | None = None
    used: int = field(default=0, init=False)
    skipped: int = field(default=0, init=False)

    @property
    def options(self) -> str:
        """The options that name fields, as given."""
        fields = {
            "--field": self.value_field,
            "--second-field": self.second_field,
            "--clients": self.client_field,
            "--time-field": self.time_field,
        }
        given = [f"{option} {name}" for option, name in fields.items() if name is not None]
        return ", ".join(given)

    def batches(self, source: InputSource, place: Place) -> Iterator[InputBatch]:
        """Yield batches of up to `batch_lines` lines, or of a second.

        Parameters
        ----------
        source : to read from.
        place : where to begin; advanced with each batch.

        Raises
        ------
        FeedError, after a batch of the preceding lines, if the input cannot be read, its header lacks a
        column, or, when strict, a line is bad.
        """
        gathered = _Gathered()
        try:
            for record in self._records(source, place):
                if record is not None:
                    is_reported = self._take(record, place.lines + 1, gathered)
                    place.advance(b"".join(record.lines), is_reported=is_reported)
                if gathered.is_due(self.batch_lines, self.timing.batch):
                    yield self._batch(gathered, place)
                    gathered = _Gathered()
        except FeedError:
            if gathered.values:
                yield self._batch(gathered, place)
            raise
        if gathered.values:
            yield self._batch(gathered, place)

    def _records(self, source: InputSource, place: Place) -> Iterator[InputRecord | None]:
        lines = Lines(source.read, within_line=place.begins_within_line)
        if self.layout == "jsonl":
            place.seek()
            return json_records(lines)
        given = (self.value_field, self.second_field, self.client_field, self.time_field)
        csv = CsvRecords([name for name in given if name is not None])
        if place.bytes_done:
            place.rewind()
            csv.read_header(Lines(source.read))
        place.seek()
        return csv.records(lines)

    def _take(self, record: InputRecord, number: int, gathered: _Gathered) -> bool:
        """Take a record; return whether it becomes a report."""
        if record.fields is None and not record.fault:
            return False
        fault = record.fault or self._gather(record.fields or {}, gathered)
        if fault:
            self._skip(number, fault, record.is_whole)
        return not fault

    def _gather(self, fields: Mapping[str, Any], gathered: _Gathered) -> str:
        """Take a report from the fields; return what is wrong with them, empty if nothing."""
        client = fields.get(self.client_field) if self.client_field else OWN_CLIENT
        is_lacking = any(
            each is not None and each not in fields for each in (self.value_field, self.second_field)
        )
        if is_lacking or not (isinstance(client, str) and client):
            return LACKING
        moment: float | None = 0.0
        if self.time_field is not None:
            if self.time_field not in fields:
                return LACKING
            moment = unix_seconds(fields[self.time_field])
        if moment is None:
            return WRONG_TIME
        try:
            found = fields[self.value_field]
            value = self.read_value(
                found if self.second_field is None else (found, fields[self.second_field])
            )
        except RecursionError:  # the parser managed this depth with less of the stack in use
            return TOO_DEEP
        gathered.add(value, client, moment)
        self.used += 1
        return ""

    def _batch(self, gathered: _Gathered, place: Place) -> InputBatch:
        clients = None if self.client_field is None else gathered.clients
        times = None if self.time_field is None else gathered.times
        return InputBatch(gathered.values, clients, place.progress(), times)

    def _skip(self, number: int, fault: str, is_whole: bool) -> None:
        if self.is_strict:
            raise FeedError(f"line {number} of the input: {fault}; the lines before it were processed")
        self.skipped += is_whole
        if is_whole and self.skipped <= PRINTED_LINES:
            click.echo(f"line {number} skipped: {fault}", err=True)
