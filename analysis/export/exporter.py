"""From topics to files: reads records, and merges windows into files a few thousand at a time.

Rule: progress is kept when all partitions have been read to an end, and everything read is in the files. The
next run reads from an hour before it: brokers' clocks may differ, and a transaction that was open then may
have been committed since. What is read again is in the files already, and changes nothing.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import aclosing
from typing import Protocol

from deniable.aggregator.history.periods import Period
from deniable.aggregator.ledger.row_values import RowError
from deniable.aggregator.records.final_window import PageRun, decode_page, join_pages
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.export.day_files import DayFiles
from deniable.analysis.sources.following import fetched_since
from deniable.analysis.sources.newest import NewestEstimates
from deniable.analysis.sources.topic import filter_of
from deniable.analysis.tables.window_table import window_table
from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.partition_reader import KafkaRecord
from deniable.cluster.reading.topic_reader import CLOCKS_MILLISECONDS
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics

FLUSH_BYTES = 64 << 20
FLUSH_SECONDS = 5.0  # between two merges of a run that follows, if not so many bytes come


class TakenRecords(Protocol):
    """Collects records until they are merged.

    Attributes
    ----------
    others : starts of windows of the same name and period under other parameters, by fingerprint in hex.
    """

    others: dict[str, set[int]]

    def take(self, partition: int, record: KafkaRecord) -> int:
        """Take one record; return the bytes it occupies until `merge_into`, 0 if it is not wanted."""

    def merge_into(self, files: DayFiles) -> None:
        """Merge what was taken since the last call, each window once, and remove what was withdrawn."""


class TakenEstimates:
    """Final estimates of a collection in a period."""

    def __init__(self, collection: Collection, period: Period) -> None:
        self._wanted = filter_of(collection, period, provisional=False)
        self.others = self._wanted.others
        self._newest = NewestEstimates()

    def take(self, partition: int, record: KafkaRecord) -> int:
        """See `TakenRecords`."""
        value = self._wanted.wanted(record.key, record.value)
        if value is None:
            return 0
        if self._newest.add(value):
            self._newest.convert(self._newest.taken())
        return len(value)

    def merge_into(self, files: DayFiles) -> None:
        """See `TakenRecords`. Estimates whose parts are not all there yet wait for the next call."""
        newest, self._newest = self._newest, self._newest.unfinished()
        files.merge(newest.table(other=True), newest.withdrawn())


class TakenWindows:
    """Counts of a collection's final windows in a period."""

    def __init__(self, collection: Collection, period: Period) -> None:
        self._collection = collection
        self._period = period
        self._runs: defaultdict[int, PageRun] = defaultdict(PageRun)
        self._windows: dict[int, WindowCounts] = {}
        self.others: dict[str, set[int]] = {}

    def take(self, partition: int, record: KafkaRecord) -> int:
        """See `TakenRecords`."""
        collection = self._collection
        try:
            page = decode_page(record.key or b"", record.value or b"")
            end = page.window_start + page.window_seconds
            if not (self._period.start <= page.window_start and end <= self._period.end):
                return 0
            if page.fingerprint != collection.fingerprint:
                if page.name == collection.name:
                    self.others.setdefault(f"{page.fingerprint:016x}", set()).add(page.window_start)
                return 0
            if pages := self._runs[partition].take(page):
                self._windows[page.window_start] = join_pages(pages, collection)
        except RowError:
            return 0
        return len(record.value or b"") * 8

    def merge_into(self, files: DayFiles) -> None:
        """See `TakenRecords`. Counts without reports withdraw their window."""
        windows, self._windows = self._windows, {}
        held = {start: counts for start, counts in windows.items() if counts.reports}
        fingerprint = f"{self._collection.fingerprint:016x}"
        withdrawn = {
            (fingerprint, start * 1_000_000): (counts.packs, True)
            for start, counts in windows.items()
            if not counts.reports
        }
        files.merge(window_table(self._collection, held), withdrawn)


async def export(
    cluster: Cluster,
    topics: Topics,
    files: DayFiles,
    period: Period | None,
    *,
    follows: bool,
    caught_up: Callable[[], None] = lambda: None,
) -> None:
    """Write a collection's final estimates or windows to files.

    Parameters
    ----------
    cluster, topics : of the deployment.
    files : to write; their folder is locked.
    period : that contains the windows entirely; None for all, from where the last run without one ended.
    follows : True to go on until cancelled.
    caught_up : called once, when all that the topic had is in the files.

    Raises
    ------
    KafkaError, TimeoutError, OSError, AnalysisError.
    """
    within = period or Period(0, 1 << 40)
    is_estimates = files.kind == "estimates"
    taken: TakenRecords = (TakenEstimates if is_estimates else TakenWindows)(files.collection, within)
    files.others = taken.others
    topic = topics.estimates if is_estimates else topics.windows
    until_ms = files.progress() if period is None else within.start * 1000
    clock, loop = asyncio.get_running_loop().time, asyncio.get_running_loop()
    waiting, merged_at, newest_ms = 0, -FLUSH_SECONDS, until_ms
    since_ms, is_behind = until_ms - CLOCKS_MILLISECONDS, True
    fetching = fetched_since(cluster, topic, topics.partitions, since_ms, follows=follows)
    async with aclosing(fetching) as fetched:
        async for records, is_at_end in fetched:
            for partition, record in records:
                waiting += taken.take(partition, record)
                newest_ms = max(newest_ms, record.timestamp)
            is_due = is_at_end and (not follows or clock() - merged_at >= FLUSH_SECONDS)
            if waiting >= FLUSH_BYTES or (waiting and is_due):
                await loop.run_in_executor(None, taken.merge_into, files)
                waiting, merged_at = 0, clock()
            if is_at_end and not waiting and is_behind:
                is_behind = False
                caught_up()
            if is_at_end and not waiting and newest_ms > until_ms and period is None:
                until_ms = newest_ms
                files.keep_progress(until_ms)
