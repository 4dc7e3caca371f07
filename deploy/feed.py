"""Values from a CSV or JSON-lines stream, handed to a producer in batches.

Rule: no message holds a value, a client's id or a line's text; a line is named by its number.
"""

import csv
import io
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TextIO

import click
import msgspec

from deploy.collection_file import Configuration
from estimators.collection import Collection
from producers.delivery import Counters
from producers.producer import Producer

BATCH_LINES = 10_000
LONGEST_LINE = 1 << 20  # characters
BATCH_SECONDS = 1.0  # a line's window is that of its batch
TOLD_LINES = 5  # bad lines that are told one by one; the rest is counted
WAIT_SECONDS = 60.0  # how long a batch may wait for the broker to take what was sent before
NO_INTEGER = -1  # no collection lists it
ABSENT: Any = object()  # in place of a field that a line lacks

Batch = tuple[list[str | int], list[str] | None]


class FeedError(RuntimeError):
    """The input cannot be used."""


@dataclass
class Feed:
    """An open stream of lines and how to read it.

    Parameters
    ----------
    source : the stream, UTF-8.
    layout : `csv`, with a header line, or `jsonl`, an object a line.
    value_field, client_field : names of the columns or fields; None: every line is a client of its own.
    integers : True when values are integers, False when they are text.
    skipped : lines so far that lack a field, or hold one of the wrong type.
    """

    source: BinaryIO
    layout: str
    value_field: str
    client_field: str | None
    integers: bool
    skipped: int = field(default=0, init=False)

    def batches(self) -> Iterator[Batch]:
        """Values and clients of up to BATCH_LINES lines, or of a second, at a time.

        Every text is a value like any other, empty or no number as it may be: whether a report is sent must
        not depend on what it says.

        Raises
        ------
        FeedError when the stream cannot be read, its header lacks a column, or no line at all can be used.
        """
        began, used = time.monotonic(), 0
        values: list[str | int] = []
        clients: list[str] = []
        for number, record in self._records():
            value, client = self._value(record.get(self.value_field, ABSENT)), self._client(record)
            if value is None or client is None:
                self._skip(number)
                continue
            used += 1
            values.append(value)
            clients.append(client)
            if len(values) == BATCH_LINES or time.monotonic() - began >= BATCH_SECONDS:
                yield values, clients if self.client_field else None
                began, values, clients = time.monotonic(), [], []
        if values:
            yield values, clients if self.client_field else None
        if self.skipped and not used:
            raise FeedError(f"no line of the input can be used; is '{self.value_field}' the right field?")

    def _records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        text = io.TextIOWrapper(self.source, encoding="utf-8-sig", newline="")
        try:
            yield from self._csv_records(text) if self.layout == "csv" else self._json_records(text)
        except UnicodeDecodeError:
            raise FeedError("the input must be UTF-8, and is not") from None
        except OSError as error:
            raise FeedError(f"the input cannot be read: {error.strerror}") from error

    def _csv_records(self, text: io.TextIOWrapper) -> Iterator[tuple[int, dict[str, Any]]]:
        reader = csv.reader(_lines(text), strict=True)
        line = 1  # where a record begins
        try:
            columns = self._columns(next(reader, []))
            line = reader.line_num + 1
            for row in reader:
                if row:
                    yield line, {name: row[i] for name, i in columns.items() if i < len(row)}
                line = reader.line_num + 1
        except csv.Error as error:  # its words are the module's own, none of the input's
            raise FeedError(f"line {line} of the input is no CSV: {error}") from None

    def _columns(self, header: list[str]) -> dict[str, int]:
        """Where the columns that are wanted stand; FeedError unless each is there once."""
        wanted = [self.value_field] if self.client_field is None else [self.value_field, self.client_field]
        for name in wanted:
            if name not in header:
                raise FeedError(f"the input has no column '{name}'; its first line must name the columns")
            if header.count(name) > 1:
                raise FeedError(f"the input has {header.count(name)} columns '{name}'; rename all but one")
        return {name: header.index(name) for name in wanted}

    def _json_records(self, text: io.TextIOWrapper) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(_lines(text), start=1):
            try:
                record = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError):
                record = None
            yield number, record if isinstance(record, dict) else {}

    def _value(self, found: Any) -> str | int | None:
        """The value as the collection takes it, None when there is none.

        One of another type is a value that the collection does not know: whether it is sent must not depend
        on what it is.
        """
        if found is ABSENT:
            return None
        if not self.integers:
            return found if isinstance(found, str) else msgspec.json.encode(found).decode()
        if self.layout == "csv" and isinstance(found, str):
            try:
                return int(found)
            except ValueError:
                return NO_INTEGER
        return found if isinstance(found, int) and not isinstance(found, bool) else NO_INTEGER

    def _client(self, record: dict[str, Any]) -> str | None:
        client = record.get(self.client_field) if self.client_field else ""
        return client if isinstance(client, str) else None

    def _skip(self, number: int) -> None:
        self.skipped += 1
        if self.skipped <= TOLD_LINES:
            click.echo(f"line {number} skipped: it lacks a field, or one is of the wrong type", err=True)


def _lines(text: TextIO) -> Iterator[str]:
    """Its lines; FeedError at one without an end, before it fills the memory."""
    number = 0
    while line := text.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise FeedError(
                f"line {number} of the input must have at most {LONGEST_LINE} characters, got more"
            )
        yield line


def feed_collection(configuration: Configuration, collection: Collection, feed: Feed) -> None:
    """Send every line of the stream as one report, and say on stderr how many went.

    When it fails or is cut short, it says so too, unless nothing was sent.

    Raises
    ------
    FeedError when the input cannot be used; DeliveryError when Kafka did not take all.
    """
    started = time.monotonic()
    producer = open_producer(configuration, [collection], WAIT_SECONDS)
    is_whole = False
    try:
        with producer:
            for values, clients in feed.batches():
                producer.report(collection.name, values, clients)
        is_whole = True
    finally:
        if is_whole or producer.counters() != Counters():
            _tell(producer, feed.skipped, time.monotonic() - started)


def _tell(producer: Producer, skipped: int, seconds: float) -> None:
    counters = producer.counters()
    sent = sum(counters.reports.values())
    click.echo(
        f"{sent} reports sent in {counters.packs} packs ({sent / seconds:.0f} reports/s); "
        f"{skipped} lines skipped, {counters.dropped} reports dropped, {counters.failed} failed",
        err=True,
    )


def open_producer(
    configuration: Configuration, collections: list[Collection], block_seconds: float
) -> Producer:
    """A producer as the collection file wants it; its folder lies beside the file."""
    home, settings = configuration.path.parent, configuration.producer
    return Producer(
        collections,
        configuration.kafka.bootstrap_servers,
        configuration.topics.reports,
        configuration.kafka.partitions,
        home / settings.data_dir,
        home / settings.secret_file if settings.secret_file else None,
        pack_reports=settings.pack_reports,
        pack_seconds=settings.pack_seconds,
        block_seconds=block_seconds,
    )
