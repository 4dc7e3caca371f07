"""Reads the final windows of a collection from the topic `windows`, and sums them.

Rule 1: a window counts if all its pages are there, in order. Retention may have deleted the first.
Rule 2: only a window's newest revision counts, the last one in the log. An older one already in the sum
cannot be removed, so the topic is read again without it. Revisions are rare, and known from then on.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deniable.aggregator.history.periods import Period
from deniable.aggregator.ledger.row_values import RowError
from deniable.aggregator.records.final_window import Page, PageRun, decode_page, join_pages
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.partition_reader import KafkaRecord
from deniable.cluster.reading.topic_reader import CLOCKS_MILLISECONDS, records_since
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics

MOST_COUNTERS = 1 << 25  # of all windows together: 256 MiB

PagePlace = tuple[int, int]  # partition, and offset of a page


class _Added(NamedTuple):
    place: PagePlace
    last_page: PagePlace
    reports: int


@dataclass(frozen=True)
class Joined:
    """Sum of the final windows of one collection.

    Parameters
    ----------
    counts : of all windows.
    reports : reports of each window, by its start, unix seconds, ascending.
    incomplete : starts of windows whose newest revision lacks pages, ascending; they are not added.
    others : windows of the same name and period under other parameters, by fingerprint; not added.
    foreign : records of other programs or versions.
    """

    counts: WindowCounts
    reports: Mapping[int, int]
    incomplete: Sequence[int]
    others: Mapping[int, int]
    foreign: int


async def join_windows(cluster: Cluster, topics: Topics, collection: Collection, period: Period) -> Joined:
    """Sum the collection's final windows entirely within a period.

    Memory: one window's counts, and a few numbers per window.

    Raises
    ------
    KafkaError, TimeoutError.
    """
    replaced: set[PagePlace] = set()
    while True:
        reading = WindowsReading(collection, period, replaced)
        async with aclosing(windows_since(cluster, topics, period.start)) as records:
            async for partition, record in records:
                reading.take(partition, record)
        wrongly_added = reading.wrongly_added()
        if not wrongly_added:
            return reading.joined()
        replaced |= wrongly_added


def windows_since(
    cluster: Cluster, topics: Topics, start: int
) -> AsyncGenerator[tuple[int, KafkaRecord], None]:
    """Partition and record of all windows that start at or after `start`, unix seconds.

    A window becomes final after its end, by its broker's clock.
    """
    since_ms = start * 1000 - CLOCKS_MILLISECONDS
    return records_since(cluster, topics.windows, range(topics.partitions), since_ms)


class WindowsReading:
    """One reading of the topic.

    Parameters
    ----------
    collection : of the windows.
    period : that contains them entirely.
    replaced : page 0 of revisions that a former reading found replaced.
    """

    def __init__(self, collection: Collection, period: Period, replaced: set[PagePlace]) -> None:
        self.collection = collection
        self.period = period
        self.replaced = replaced
        self.sum = WindowCounts(
            np.zeros((collection.cohorts, collection.width), np.int64),
            np.zeros(collection.cohorts, np.int64),
            packs=0,
            rejected=0,
        )
        self._last_page: dict[int, PagePlace] = {}  # of a window's newest revision, complete or not
        self._added: dict[int, _Added] = {}
        self._wrong: set[PagePlace] = set()
        self._others: defaultdict[int, set[int]] = defaultdict(set)
        self._foreign = 0
        self._runs: defaultdict[int, PageRun] = defaultdict(PageRun)
        self._place: dict[int, PagePlace] = {}  # of the current window, by partition

    def take(self, partition: int, record: KafkaRecord) -> None:
        """Read the next record of a partition."""
        try:
            page = decode_page(record.key or b"", record.value or b"")
            if self._is_wanted(page):
                self._take_page(page, partition, record.offset)
        except RowError:
            self._foreign += 1

    def wrongly_added(self) -> set[PagePlace]:
        """Revisions in the sum that a newer one replaces."""
        return self._wrong | {each.place for start, each in self._added.items() if not self._is_newest(start)}

    def joined(self) -> Joined:
        """The result; do not use its counts where some are `wrongly_added`."""
        newest = [start for start in sorted(self._added) if self._is_newest(start)]
        reports = {start: self._added[start].reports for start in newest if self._added[start].reports}
        incomplete = sorted(self._last_page.keys() - set(newest))
        others = {fingerprint: len(starts) for fingerprint, starts in self._others.items()}
        return Joined(self.sum, reports, incomplete, others, self._foreign)

    def _is_wanted(self, page: Page) -> bool:
        """Whether the page belongs to a wanted window; RowError if such a window cannot exist."""
        start, seconds = page.window_start, self.collection.window_seconds
        if not self.period.start <= start < start + page.window_seconds <= self.period.end:
            return False
        if page.fingerprint != self.collection.fingerprint:
            if page.name == self.collection.name:
                self._others[page.fingerprint].add(start)
            return False
        if page.window_seconds != seconds or start % seconds:
            raise RowError(f"windows of {page.name} are of {seconds} s")
        return True

    def _take_page(self, page: Page, partition: int, offset: int) -> None:
        start = page.window_start
        if page.number == 0:
            self._place[partition] = (partition, offset)
        self._last_page[start] = (partition, offset)
        if pages := self._runs[partition].take(page):
            self._add(start, join_pages(pages, self.collection), self._place[partition])

    def _add(self, start: int, counts: WindowCounts, place: PagePlace) -> None:
        if place in self.replaced:
            return
        if start in self._added:
            self._wrong.add(self._added[start].place)
        self._added[start] = _Added(place, self._last_page[start], counts.reports)
        self.sum += counts

    def _is_newest(self, start: int) -> bool:
        """Whether the revision added is the window's last one."""
        return self._added[start].last_page == self._last_page[start]


class EachWindow(WindowsReading):
    """A reading that keeps the newest revision of each window."""

    def __init__(self, collection: Collection, period: Period) -> None:
        super().__init__(collection, period, set())
        self._kept: dict[int, WindowCounts] = {}

    def windows(self) -> dict[int, WindowCounts]:
        """Counts by start, unix seconds, ascending; without windows whose newest revision lacks pages."""
        kept = sorted(self._kept.items())
        return {start: counts for start, counts in kept if counts.reports and self._is_newest(start)}

    def _add(self, start: int, counts: WindowCounts, place: PagePlace) -> None:
        super()._add(start, counts, place)
        self._kept[start] = counts


def most_windows(collection: Collection) -> int:
    """Return how many windows hold at most MOST_COUNTERS together, at least 1."""
    return max(1, MOST_COUNTERS // (collection.cohorts * collection.width))


async def read_windows(
    cluster: Cluster, topics: Topics, collection: Collection, period: Period
) -> tuple[Mapping[int, WindowCounts], Joined]:
    """Counts of the collection's final windows entirely within a period, by start; and the result.

    Do not use the counts of the result, which may include replaced revisions.

    Raises
    ------
    KafkaError, TimeoutError.
    """
    reading = EachWindow(collection, period)
    async with aclosing(windows_since(cluster, topics, period.start)) as records:
        async for partition, record in records:
            reading.take(partition, record)
    return reading.windows(), reading.joined()
