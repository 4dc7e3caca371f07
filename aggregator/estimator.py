"""The periodic task that turns counts into estimates, for the collections of one partition of `counts`.

Rule 1: it publishes nothing itself. What it made leaves in the next transaction of the ledger of the same
partition, so a deposed owner cannot publish.
Rule 2: a final estimate is made only when every partition is closed beyond the end of grace; should counts
change after that, a further one with a higher revision follows.
Rule 3: of a window that may lack records, since they were deleted uncounted, no estimate is final.
Rule 4: a window that a partition has begun to delete is estimated no more: what is left is a part of it.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import structlog

from aggregator import estimate_record, row_keys, rows
from aggregator.counts_reader import read_counts
from aggregator.estimate_record import EstimateRecord
from aggregator.lost_windows import LostWindows
from aggregator.merge import MergedCounts
from aggregator.metrics import WorkerMetrics
from aggregator.row_keys import Window
from aggregator.row_reader import RowReader
from estimators.collection import Collection

ESTIMATE_SECONDS = 2.0

# Its own threads: no checkpoint or opening waits for slow estimates, those of a former owner included.
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="estimate")

log = structlog.get_logger()


class _Made(NamedTuple):
    """An estimate that is to leave, in parts, and whether it is a final one in place of another."""

    records: Sequence[EstimateRecord]
    is_revision: bool


class Estimator:
    """Estimates of the collections whose counts lie in one partition.

    Parameters
    ----------
    collections : known collections by fingerprint.
    partitions : number of partitions that count.
    published : what former owners have published, from the ledger.
    metrics : where to tell of it.
    """

    def __init__(
        self,
        collections: Mapping[int, Collection],
        partitions: int,
        published: Mapping[Window, rows.Published],
        metrics: WorkerMetrics,
    ) -> None:
        self.collections = collections
        self.partitions = partitions
        self.published = dict(published)
        self.metrics = metrics
        self.merged = MergedCounts()
        self.caught_up = False
        self._unsettled: set[Window] = set()
        self._made: dict[Window, _Made] = {}
        self._leaving: list[_Made] = []
        self.lost = LostWindows(metrics)

    async def run(self, reader: RowReader) -> None:
        """Follow the counts and estimate what changed, until cancelled."""
        async with reader:
            await read_counts(reader, self.partitions, self.take)
            while True:
                await read_counts(reader, self.partitions, self.take)
                self.caught_up = True
                await self._estimate_due()
                await asyncio.sleep(ESTIMATE_SECONDS)

    def take(self, key: bytes, value: bytes | None) -> None:
        """Take in one record of `counts`; RowError when it cannot be read."""
        if value is None and self.caught_up:  # what was deleted before is history that others have told
            self._note_death(key)
        window = self.merged.apply(key, value)
        if window is not None and window[0] in self.collections:
            self._unsettled.add(window)

    def due(self) -> list[tuple[Window, bool]]:
        """Windows that want a new estimate, and whether it is the final one."""
        closed_until = self.merged.closed_until_ms(self.partitions)
        wanted = []
        for window in sorted(self._unsettled, key=lambda window: window[1]):
            if self.merged.is_dying(window):
                self._unsettled.discard(window)
                continue
            closes_at = self.merged.closes_at(window, self.partitions)
            closed = closes_at is not None and closed_until > closes_at * 1000
            final = closed and self.merged.is_whole(window)
            packs = self.merged.packs(window)
            newest = self.published.get(window, rows.Published(0, final=False))
            if packs > newest.revision or (final and packs and not newest.final):
                wanted.append((window, final))
            elif closed or not packs:
                self._unsettled.discard(window)
        return wanted

    def make(self, window: Window, *, final: bool) -> Sequence[EstimateRecord]:
        """Estimate one window, in parts; none of too few reports, or of counts that no estimate fits."""
        collection = self.collections[window[0]]
        try:
            totals = self.merged.totals(window, collection)
            if totals.reports < collection.minimum_reports:
                return []
            with self.metrics.estimate_seconds.time():
                result = estimate_record.estimate(collection, totals)
        except (ValueError, ArithmeticError, IndexError) as error:
            log.error("no estimate", collection=collection.name, window_start=window[1], error=str(error))
            self.metrics.estimate_failures.labels(collection.name).inc()
            return []
        if final and collection.publish_all:
            return estimate_record.records_of(collection, window[1], totals, result, final=True)
        return [estimate_record.record_of(collection, window[1], totals, result, final=final)]

    def drain(self) -> list[tuple[Window, EstimateRecord]]:
        """Estimates made since the last call, each part by itself; they now count as published."""
        made, self._made = self._made, {}
        self._leaving = list(made.values())
        return [(window, record) for window, each in made.items() for record in each.records]

    def show_published(self) -> None:
        """Tell of what was drained and forgotten last: it is committed now."""
        for (first, *_), is_revision in self._leaving:
            self.metrics.show_estimate(first)
            self.metrics.finals_revised.labels(first.collection).inc(is_revision)
        self.lost.committed()
        self._leaving = []

    def forgotten(self) -> Iterable[Window]:
        """Published windows whose counts are gone everywhere: their rows may go too. They are dropped."""
        if not self.caught_up:
            return []
        alive = set(self.merged.windows())
        gone = [window for window in self.published if window not in alive and self.merged.is_dying(window)]
        for window in gone:
            if not self.published.pop(window).final and window[0] in self.collections:
                self.lost.add_when_committed(window, self.collections[window[0]].name)
        return gone

    async def _estimate_due(self) -> None:
        for window, final in self.due():
            made = asyncio.get_running_loop().run_in_executor(
                _THREADS, partial(self.make, window, final=final)
            )
            records = await made
            if not records:
                self._unsettled.discard(window)  # until its counts change
            else:
                self._made[window] = _Made(records, final and self._has_left_final(window))
                self.published[window] = rows.Published(records[0].revision, final)
        self.lost.tell()
        self.lost.keep(lambda each: each in self.published or not self.merged.is_dead(each, self.partitions))

    def _has_left_final(self, window: Window) -> bool:
        """Whether a final estimate has left, or is on its way; one that is still here is only replaced."""
        waiting, newest = self._made.get(window), self.published.get(window)
        return waiting.is_revision if waiting else newest is not None and newest.final

    def _note_death(self, key: bytes) -> None:
        """Tell of the window whose counts this deletes, if it should have got a final estimate and did not.

        A source's deletions follow its last counts, so the first one of a window finds it whole. Counts that
        were born and died between two publications are not known here; they are taken for enough.
        """
        row, _ = row_keys.split_source(key)
        if not isinstance(row, row_keys.CountKey) or row.page or row.fingerprint not in self.collections:
            return
        window, collection = (row.fingerprint, row.window_start), self.collections[row.fingerprint]
        newest = self.published.get(window)
        if newest is not None and newest.final:
            return
        if not self.merged.packs(window) or self.merged.reports(window) >= collection.minimum_reports:
            self.lost.add(window, collection.name)
