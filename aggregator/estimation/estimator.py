"""The periodic task that turns counts into estimates, for the collections of one partition of `counts`.

Rule 1: it publishes nothing itself. What it made leaves in the next transaction of the ledger of the same
partition, so a deposed owner cannot publish.
Rule 2: a final estimate is made only when every partition is closed beyond the end of grace; should counts
change after that, a further one with a higher revision follows.
Rule 3: of a window that may lack records, since they were deleted uncounted, no estimate is final.
Rule 4: a window that a partition has begun to delete is estimated no more: what is left is a part of it.
Rule 5: with a final estimate leave the counts that it is made from. Those of a final window with too few
reports for an estimate leave alone: many such windows together may have enough.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import structlog

from aggregator.estimation import window_estimate
from aggregator.estimation.counts_reader import CountsReader
from aggregator.estimation.lost_windows import LostWindows
from aggregator.estimation.merged_counts import MergedCounts
from aggregator.estimation.window_states import window_states
from aggregator.ledger import row_keys, row_values
from aggregator.ledger.row_keys import Window
from aggregator.metrics.worker_metrics import WorkerMetrics
from aggregator.records.estimate import EstimateRecord
from aggregator.records.final_window import FinalWindow
from aggregator.topics.partition_reader import RowReader
from estimators.collection import Collection

MOST_WAITING_BYTES = 1 << 26  # of final counts; after an outage the rest leaves in further transactions

# Its own threads: no checkpoint or opening waits for slow estimates, those of a former owner included.
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="estimate")

log = structlog.get_logger()


class WindowResult(NamedTuple):
    """What is to leave of a window.

    Parameters
    ----------
    records : its estimate, in parts; none where it holds too few reports.
    counts : what it was made from; None while the window is not final.
    is_revision : whether this is final in place of another.
    """

    records: Sequence[EstimateRecord]
    counts: FinalWindow | None
    is_revision: bool = False


class Estimator:
    """Estimates of the collections whose counts lie in one partition.

    Parameters
    ----------
    collections : those that it estimates, by fingerprint.
    partitions : number of partitions that count.
    published : what former owners have published, from the ledger.
    lost : which windows died without a final estimate, as far as it was told before.
    metrics : of the worker.
    pause_seconds : between two looks for windows to estimate.
    """

    def __init__(
        self,
        collections: Mapping[int, Collection],
        partitions: int,
        published: Mapping[Window, row_values.Published],
        lost: LostWindows,
        metrics: WorkerMetrics,
        pause_seconds: float = 2.0,
    ) -> None:
        self.collections = collections
        self.partitions = partitions
        self.published = dict(published)
        self.lost = lost
        self.metrics = metrics
        self.pause_seconds = pause_seconds
        self.merged = MergedCounts()
        self.caught_up = False
        self._unsettled: set[Window] = set()
        self._results: dict[Window, WindowResult] = {}
        self._drained: list[WindowResult] = []

    async def run(self, reader: RowReader) -> None:
        """Follow the counts and estimate what changed, until cancelled."""
        counts = CountsReader(reader, self.partitions, self.take)
        async with reader:
            await counts.read()
            while True:
                await counts.read()
                self.caught_up = True
                self.show_windows(time.time())
                await self._estimate_due()
                await asyncio.sleep(self.pause_seconds)

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
            newest = self.published.get(window, row_values.Published(0, final=False))
            enough = final or self.merged.reports(window) >= self.collections[window[0]].minimum_reports
            if (packs > newest.revision and enough) or (final and packs and not newest.final):
                wanted.append((window, final))
            elif closed or not packs:
                self._unsettled.discard(window)
        return wanted

    def estimate_window(self, window: Window, *, final: bool) -> WindowResult | None:
        """Estimate one window, if it holds enough reports; None when no estimate fits its counts."""
        collection = self.collections[window[0]]
        try:
            totals = self.merged.totals(window, collection)
            records: Sequence[EstimateRecord] = ()
            if totals.reports >= collection.minimum_reports:
                with self.metrics.estimate_seconds.time():
                    result = window_estimate.estimate(collection, totals)
                if final and collection.publish_all:
                    records = window_estimate.records_of(collection, window[1], totals, result, final=True)
                else:
                    records = [window_estimate.record_of(collection, window[1], totals, result, final=final)]
        except (ValueError, ArithmeticError, IndexError) as error:
            log.error("no estimate", collection=collection.name, window_start=window[1], error=str(error))
            self.metrics.estimate_failures.labels(collection.name).inc()
            return None
        return WindowResult(records, FinalWindow.of(collection, window[1], totals) if final else None)

    def drain(self) -> list[tuple[Window, EstimateRecord]]:
        """Estimates made since the last call, each part by itself; they now count as published."""
        made, self._results = self._results, {}
        self._drained = list(made.values())
        return [(window, record) for window, each in made.items() for record in each.records]

    def drained_counts(self) -> list[FinalWindow]:
        """Counts of the final windows that were drained last."""
        return [each.counts for each in self._drained if each.counts is not None]

    def show_published(self) -> None:
        """Tell of what was drained and forgotten last: it is committed now."""
        for records, counts, is_revision in self._drained:
            for first in records[:1]:
                self.metrics.finals_revised.labels(first.collection).inc(is_revision)
            if counts is not None:
                self.metrics.show_canary(counts)
        self.lost.committed()
        self._drained = []

    def show_windows(self, now: float) -> None:
        """Tell how many windows are in which state, at this moment in unix seconds."""
        self.metrics.show_windows(
            window_states(self.merged, self.collections, self.partitions, self._has_left_final, now)
        )

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
            if self._waiting_bytes() > MOST_WAITING_BYTES:
                break
            made = await asyncio.get_running_loop().run_in_executor(
                _THREADS, partial(self.estimate_window, window, final=final)
            )
            if made is None:
                self._unsettled.discard(window)  # until its counts change
            else:
                self._results[window] = made._replace(is_revision=final and self._has_left_final(window))
                self.published[window] = row_values.Published(self.merged.packs(window), final)
        self.lost.log_new()
        self.lost.keep(lambda each: each in self.published or not self.merged.is_dead(each, self.partitions))

    def _waiting_bytes(self) -> int:
        return sum(
            each.counts.counts.counts.nbytes for each in self._results.values() if each.counts is not None
        )

    def _has_left_final(self, window: Window) -> bool:
        """Whether a final estimate has left, or is on its way; one that is still here is only replaced."""
        waiting, newest = self._results.get(window), self.published.get(window)
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
