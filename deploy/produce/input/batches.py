"""Group lines into batches for the producer, each with the position in the input where it ends."""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import click

from deniable.deploy.cli.input_text import printable
from deniable.deploy.produce.input.csv_records import OPEN_QUOTE, TO_UTF8, CsvRecords
from deniable.deploy.produce.input.json_lines import InputRecord, field_of, json_records
from deniable.deploy.produce.input.lines import BrokenLineError, Lines
from deniable.deploy.produce.input.resume import Place
from deniable.deploy.produce.input.source import FeedError, InputSource, LineError
from deniable.deploy.produce.input.times import WRONG_TIME, time_of
from deniable.deploy.produce.input.values import Value
from deniable.deploy.produce.timing import DEFAULT, RunTiming
from deniable.producers.responders.validation import client_text
from deniable.producers.storage.input_progress import InputProgress
from deniable.protocol.times import GivenTime

BATCH_LINES = 10_000
BATCH_BYTES = 64 << 20  # of lines, so that long values fit in memory
PRINTED_LINES = 5  # bad lines printed one by one; the rest is only counted
OWN_CLIENT = "each line"  # placeholder without a field for clients; never sent
NO_CLIENT = "its client is missing, empty, or neither text nor an integer"
UNKNOWN_NUMBER = "so it is no number, and counts as unknown"
NOT_UTF8 = f"it has bytes that are not UTF-8, and each is read as U+FFFD: {TO_UTF8}"
STOPPED = "nothing of it was used; the lines before it were processed"
RESUMING = "; mend it, and the same command resumes there"
_INTEGER = re.compile(r"-?[0-9]+\.0")
NOW = GivenTime(0.0)  # a placeholder without a field for times
MISSING_QUOTE = "; if that is missing, press Ctrl-C and mend the line: the same command resumes there"


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
    size: int = 0
    began: float = 0.0

    def add(self, value: Value, client: str, moment: float, size: int) -> None:
        if not self.values:
            self.began = time.monotonic()
        self.values.append(value)
        self.clients.append(client)
        self.times.append(moment)
        self.size += size

    def is_due(self, batch_lines: int, batch_seconds: float) -> bool:
        if not self.values:
            return False
        is_full = len(self.values) == batch_lines or self.size >= BATCH_BYTES
        return is_full or time.monotonic() - self.began >= batch_seconds


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
    second_field : name of the column or field with the second value of a pair; None for other collections.
    delimiter : between the cells of `csv`.
    first_lines : most lines of the first batch.
    stopped : what a line that stops the run says became of it and the others.
    doubt : says why a value looks like a number and is none; None to say nothing of that.
    names_bytes : whether lines with bytes that are not UTF-8 are named; else nothing is printed of values.
    used, skipped : lines so far that became a report, and that could not.
    is_within_quote : whether the last record that arrived waits for the end of a cell in quotes.
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
    delimiter: str = ","
    first_lines: int = BATCH_LINES
    stopped: str = STOPPED
    doubt: Callable[[Value], str] | None = None
    names_bytes: bool = False
    used: int = field(default=0, init=False)
    skipped: int = field(default=0, init=False)
    is_within_quote: bool = field(default=False, init=False)
    _doubts: int = field(default=0, init=False)  # so far, of numbers and bytes
    _are_milliseconds: bool = field(default=False, init=False)  # of some time so far
    _quote_began: float = field(default=0.0, init=False)  # infinite once that is reported

    @property
    def options(self) -> str:
        """The options that name fields, as given."""
        fields = {
            "--field": self.value_field,
            "--second-field": self.second_field,
            "--clients": self.client_field,
            "--time-field": self.time_field,
        }
        given = [f"{option} {printable(name)}" for option, name in fields.items() if name is not None]
        return ", ".join(given)

    def batches(self, source: InputSource, place: Place) -> Iterator[InputBatch]:
        """Yield batches of up to `batch_lines` lines, or of a second.

        Parameters
        ----------
        source : to read from.
        place : where to begin; advanced with each batch.

        Raises
        ------
        FeedError, after a batch of the preceding lines, if the input cannot be read, or its header lacks a
        column; LineError if a value may have caused the shape of a line or, when strict, a line is bad.
        """
        gathered, most = _Gathered(), min(self.batch_lines, self.first_lines)
        try:
            for record in self._records(source, place):
                if record is OPEN_QUOTE:
                    self._wait_for_quote(place)
                elif record is not None:
                    self.is_within_quote = False
                    data = b"".join(record.lines)
                    if self.names_bytes and record.fields is not None and not _is_utf8(data):
                        self._doubt(place, NOT_UTF8)
                    is_reported = self._take(record, place, len(data), gathered)
                    is_record = record.fields is not None or bool(record.fault) or not data.isspace()
                    place.advance(data, is_reported=is_reported, is_record=is_record)
                if gathered.is_due(most, self.timing.batch):
                    yield self._batch(gathered, place)
                    gathered, most = _Gathered(), self.batch_lines
        except FeedError:
            if gathered.values:
                yield self._batch(gathered, place)
            raise
        except BrokenLineError as error:
            if gathered.values:
                yield self._batch(gathered, place)
            raise self._stopped(place, str(error)) from None
        if gathered.values:
            yield self._batch(gathered, place)

    def check_used(self) -> None:
        """Raise FeedError if all lines so far were skipped."""
        if self.skipped and not self.used:
            raise FeedError(f"no line of the input can be used; are {self.options} and --format right?")

    def _records(self, source: InputSource, place: Place) -> Iterator[InputRecord | None]:
        begins = None if place.bytes_done else place.name
        lines = Lines(source.read, within_line=place.begins_within_line, begins=begins)
        if self.layout == "jsonl":
            place.seek()
            return json_records(lines)
        given = (self.value_field, self.second_field, self.client_field, self.time_field)
        wanted = [name for name in given if name is not None]
        csv = CsvRecords(wanted, self.delimiter, place.name)
        if place.bytes_done:
            place.rewind()
            csv.read_header(Lines(source.read))
        place.seek()
        return csv.records(lines)

    def _wait_for_quote(self, place: Place) -> None:
        """Say once for each record that it waits; not at once, since its writer may be about to go on."""
        now = time.monotonic()
        if not self.is_within_quote:
            self.is_within_quote, self._quote_began = True, now
        if now - self._quote_began >= self.timing.open_quote:
            self._quote_began = math.inf
            click.echo(
                f"{place.name}, line {place.lines + 1}: waiting for the closing quote of a cell; lines from "
                f"there on are sent once it arrives{MISSING_QUOTE if place.key else ''}",
                err=True,
            )

    def _take(self, record: InputRecord, place: Place, size: int, gathered: _Gathered) -> bool:
        """Take a record of `size` bytes; return whether it becomes a report."""
        if record.fields is None and not record.fault:
            return False
        fault = record.fault or self._gather(record.fields or {}, place, size, gathered)
        if fault:
            self._skip(place, fault)
        return not fault

    def _gather(self, fields: Mapping[str, Any], place: Place, size: int, gathered: _Gathered) -> str:
        """Take a report from the fields; return what is wrong with them, empty if nothing.

        A value that is missing is one that the collection does not know.
        """
        client = OWN_CLIENT if self.client_field is None else client_of(field_of(fields, self.client_field))
        if not client:
            return NO_CLIENT
        moment = NOW if self.time_field is None else time_of(field_of(fields, self.time_field))
        if moment is None:
            return WRONG_TIME
        if moment.is_milliseconds and not self._are_milliseconds:
            self._are_milliseconds = True
            click.echo(
                f"--time-field {printable(self.time_field or '')}: times of 13 digits are read as "
                "milliseconds",
                err=True,
            )
        found = field_of(fields, self.value_field)
        if self.second_field is not None:
            found = found, field_of(fields, self.second_field)
        value = self.read_value(found)
        if self.doubt is not None and (why := self.doubt(value)):
            self._doubt(place, f"{why}, {UNKNOWN_NUMBER}")
        gathered.add(value, client, moment.seconds, size)
        self.used += 1
        return ""

    def _doubt(self, place: Place, why: str) -> None:
        """Name one of the first lines that are used, but hardly as they were meant."""
        self._doubts += 1
        if self._doubts <= PRINTED_LINES:
            click.echo(f"line {place.records + 1}: {why}", err=True)

    def _batch(self, gathered: _Gathered, place: Place) -> InputBatch:
        clients = None if self.client_field is None else gathered.clients
        times = None if self.time_field is None else gathered.times
        return InputBatch(gathered.values, clients, place.progress(), times)

    def _skip(self, place: Place, fault: str) -> None:
        """Skip a line. A record counts as one: this message does not depend on line ends in values."""
        if self.is_strict:
            raise self._stopped(place, fault)
        self.skipped += 1
        if self.skipped <= PRINTED_LINES:
            click.echo(f"line {place.records + 1} skipped: {fault}", err=True)

    def _stopped(self, place: Place, fault: str) -> LineError:
        resuming = RESUMING if place.key else ""
        return LineError(f"line {place.lines + 1} of {place.name}: {fault}; {self.stopped}{resuming}")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def client_of(found: Any) -> str:
    """Return the text of a client's id; empty if it is neither text nor an integer.

    The text `7.0` is 7: tables with an empty cell write integers so, and limits hold across tables.
    """
    if isinstance(found, str):
        return found.removesuffix(".0") if _INTEGER.fullmatch(found) else found
    try:
        return client_text("client", found)
    except TypeError:
        return ""
