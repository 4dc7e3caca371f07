"""The periodic task that turns counts into estimates, for the collections of one partition of `counts`.

Rule 1: it publishes nothing itself. The next transaction of the same partition's ledger publishes its
results, so a fenced owner cannot publish.
Rule 2: an estimate is final only when every partition is closed beyond the end of grace; if counts change
after that, even to fewer, as after a rebuild under other terms, another with a higher revision follows.
Rule 3: a window that may lack records deleted uncounted gets no final estimate.
Rule 4: a window that a partition has begun to delete is not estimated again: its counts are incomplete.
Rule 5: a final estimate is published together with its counts. A final window with too few reports for an
estimate publishes its counts alone: many such windows together may have enough.
Rule 6: before a window of a collection that is grown is estimated, all final windows before it are looked at.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import structlog

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.estimation.counts_reader import CountsReader
from deniable.aggregator.estimation.empty_record import empty_record_of
from deniable.aggregator.estimation.growing import GrowingTexts
from deniable.aggregator.estimation.lost_windows import LostWindows
from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.estimation.window_states import window_states
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.final_window import FinalWindow
from deniable.aggregator.records.known_texts import KnownTexts
from deniable.cluster.reading.partition_reader import RowReader
from deniable.estimators.collection import Collection

MOST_WAITING_BYTES = 1 << 26  # of final counts per transaction; matters after an outage
IDLE_MILLISECONDS = 1000  # after a window's grace; by then the reports of a busy partition have closed it
WAITING_MILLISECONDS = 60_000  # after which a window that is still open waits for relays
TICK_SECONDS = 1.0  # without new counts, between two looks whether a window is over
LEAST_REST_SECONDS = 0.1  # between two turns
LEADERS_SECONDS = 3.0  # of waiting for a window's end, after which the leader may be an old one
# How many times as long as they took early estimates rest, but for the first one of a window. So they need a
# twentieth of a core for a partition; while a worker catches up, a hundredth, and first ones rest, too.
REST = 20.0
BEHIND_REST = 100.0

# Separate threads: no checkpoint or opening waits for slow estimates, even a former owner's.
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="estimate")

NOTHING = row_values.Published(0, final=False)

log = structlog.get_logger()


class WindowResult(NamedTuple):
    """What to publish of a window.

    Parameters
    ----------
    records : its estimate, in parts; empty if it holds too few reports.
    counts : the counts estimated; None while the window is not final.
    note : what the ledger remembers of it.
    is_revision : whether this replaces another final result.
    """

    records: Sequence[EstimateRecord]
    counts: FinalWindow | None
    note: row_values.Published = NOTHING
    is_revision: bool = False


class Estimator:
    """Estimates the collections whose counts are in one partition.

    Parameters
    ----------
    collections : to estimate, by fingerprint.
    partitions : number of partitions that count.
    published : what former owners published, from the ledger.
    lost : windows already reported as dead without a final estimate.
    metrics : of the worker.
    longest_rest_seconds : of early estimates, however long they take, >= 0; but while a worker catches up.
    behind_seconds : age of the counts from which on a worker catches up, > 0.
    growing : the texts of those collections that are grown at final windows, by fingerprint.
    ask_to_close : called with what `waited_for` returns.
    on_result : called when there is something to publish.
    """

    def __init__(
        self,
        collections: Mapping[int, Collection],
        partitions: int,
        published: Mapping[Window, row_values.Published],
        lost: LostWindows,
        metrics: WorkerMetrics,
        longest_rest_seconds: float = 2.0,
        behind_seconds: float = 20.0,
        growing: Mapping[int, GrowingTexts] = MappingProxyType({}),
        ask_to_close: Callable[[Mapping[int, int]], None] = lambda _: None,
        on_result: Callable[[], None] = lambda: None,
    ) -> None:
        self.collections = collections
        self.partitions = partitions
        self.published = dict(published)
        self.lost = lost
        self.metrics = metrics
        self.longest_rest_seconds = longest_rest_seconds
        self.behind_seconds = behind_seconds
        self.growing = growing
        self.ask_to_close = ask_to_close
        self.on_result = on_result
        self.merged = MergedCounts()
        self.caught_up = False
        self._waits_since = 0.0  # for a window's end, or since leaders were asked for; 0 if none waits
        self._early_at = 0.0  # when early estimates go on, on the monotonic clock
        self._is_early_left = False
        # After a rebuild, what was published may have no counts at all any more.
        self._unsettled = {window for window in published if window[0] in collections}
        self._results: dict[Window, WindowResult] = {}
        self._drained: dict[Window, WindowResult] = {}

    async def run(self, reader: RowReader) -> None:
        """Follow the counts and estimate windows as they change, until cancelled."""
        counts = CountsReader(reader, self.partitions, self.take)
        async with reader:
            await counts.read()
            while True:
                await counts.read()
                self.caught_up = True
                self._look_at_time(time.time())
                if self._waits_long():
                    reader.ask_for_leaders()
                await self._estimate_due()
                await asyncio.sleep(min(LEAST_REST_SECONDS, self.longest_rest_seconds))
                await counts.arrive(self._patience())

    def take(self, key: bytes, value: bytes | None) -> None:
        """Apply one record of `counts`; RowError if it cannot be read."""
        if value is None and self.caught_up:  # former owners reported earlier deletions
            self._note_death(key)
        window = self.merged.apply(key, value)
        if window is not None and window[0] in self.collections:
            self._unsettled.add(window)

    def due(self) -> list[tuple[Window, bool]]:
        """Windows that need a new estimate, and whether it is final.

        Final ones come first, the oldest before newer ones; then those estimated least often.
        """
        closed_until = self.merged.closed_until_ms(self.partitions)
        wanted = []
        for window in list(self._unsettled):
            if self.merged.is_dying(window):
                self._unsettled.discard(window)
                continue
            closes_at = self.merged.closes_at(window, self.partitions)
            closed = closes_at is not None and closed_until > closes_at * 1000
            final = closed and self.merged.is_whole(window)
            packs = self.merged.packs(window)
            newest = self.published.get(window, NOTHING)
            enough = self.merged.reports(window) >= self.collections[window[0]].minimum_reports
            has_changed = not newest.final or packs != newest.packs
            if (packs or newest.packs) and (has_changed if final else packs > newest.packs and enough):
                wanted.append((window, final))
            elif closed or not (packs or newest.packs):
                self._unsettled.discard(window)
        return sorted(wanted, key=self._turn)

    def waited_for(self, now_ms: float) -> dict[int, int]:
        """What a window's end needs: partitions, and the append time that each must pass, unix milliseconds.

        Parameters
        ----------
        now_ms : unix milliseconds. A clock that is ahead or behind costs a marker, or time, and no count.
        """
        found: dict[int, int] = {}
        over_ms = max(now_ms, self.merged.latest_ms()) - IDLE_MILLISECONDS
        for window in self._unsettled:
            closes_at = self.merged.closes_at(window, self.partitions)
            if closes_at is not None and closes_at * 1000 < over_ms:
                waits = closes_at * 1000 < over_ms - WAITING_MILLISECONDS
                for partition in self.merged.open_until(closes_at * 1000, waits=waits):
                    found[partition] = max(found.get(partition, 0), closes_at * 1000)
        return found

    def estimate_window(self, window: Window, *, final: bool) -> WindowResult | None:
        """Estimate one window, if it holds enough reports; None if no estimate fits its counts.

        After a rebuild has found fewer packs than were published, any number is enough, even none: else the
        former figures would stay the newest.
        """
        growing = self.growing.get(window[0])
        collection = growing.listing(window[1]) if growing else self.collections[window[0]]
        has_shrunk = self.merged.packs(window) < self.published.get(window, NOTHING).packs
        try:
            totals = self.merged.totals(window, collection)
            records: Sequence[EstimateRecord] = ()
            if not totals.packs:
                records = [empty_record_of(collection, window[1], totals)]
            elif totals.reports >= collection.minimum_reports or has_shrunk:
                with self.metrics.estimate_seconds.time():
                    records = window_estimate.published_records(collection, window[1], totals, final=final)
                records = [growing.dated(each) for each in records] if growing else records
        except (ValueError, ArithmeticError, IndexError) as error:
            log.error("no estimate", collection=collection.name, window_start=window[1], error=str(error))
            self.metrics.estimate_failures.labels(collection.name).inc()
            return None
        return WindowResult(records, FinalWindow.of(collection, window[1], totals) if final else None)

    def drain(self) -> list[tuple[Window, EstimateRecord]]:
        """Estimates since the last call, one entry per part."""
        results, self._results = self._results, {}
        self._drained = results
        return [(window, record) for window, each in results.items() for record in each.records]

    def drained_counts(self) -> list[FinalWindow]:
        """Counts of the final windows drained last."""
        return [each.counts for each in self._drained.values() if each.counts is not None]

    def drained_notes(self) -> dict[Window, row_values.Published]:
        """What the ledger must remember of the results drained last."""
        return {window: each.note for window, each in self._drained.items()}

    def drained_texts(self) -> dict[int, KnownTexts]:
        """What growing knows, by fingerprint, where that has changed since the last call."""
        drained = {fingerprint: growing.drain() for fingerprint, growing in self.growing.items()}
        return {fingerprint: known for fingerprint, known in drained.items() if known is not None}

    def show_published(self) -> None:
        """Update metrics for the results drained and windows forgotten last, now committed."""
        for each in self._drained.values():
            for first in each.records[:1]:
                self.metrics.finals_revised.labels(first.collection).inc(each.is_revision)
            if each.counts is not None:
                self.metrics.show_canary(each.counts)
        self.lost.committed()
        self._drained = {}

    def show_windows(self, now: float) -> None:
        """Show how many windows are in which state; `now` in unix seconds."""
        self.metrics.show_windows(
            window_states(self.merged, self.collections, self.partitions, self._has_left_final, now)
        )

    def forgotten(self) -> Iterable[Window]:
        """Drop published windows whose counts no partition holds; the caller deletes their rows."""
        if not self.caught_up:
            return []
        alive = set(self.merged.windows())
        gone = [window for window in self.published if window not in alive and self.merged.is_dying(window)]
        for window in gone:
            if not self.published.pop(window).final and window[0] in self.collections:
                self.lost.add_when_committed(window, self.collections[window[0]].name)
        return gone

    def _look_at_time(self, now: float) -> None:
        """See which windows are over by now, unix seconds."""
        self.show_windows(now)
        waited_for = self.waited_for(now * 1000)
        self.ask_to_close(waited_for)
        if not waited_for:
            self._waits_since = 0.0
        elif not self._waits_since:
            self._waits_since = time.monotonic()

    def _waits_long(self) -> bool:
        now = time.monotonic()
        is_long = bool(self._waits_since) and now - self._waits_since >= LEADERS_SECONDS
        self._waits_since = now if is_long else self._waits_since
        return is_long

    def _patience(self) -> float:
        """How long to wait for new counts, seconds."""
        rest = self._early_at - time.monotonic()
        return min(TICK_SECONDS, max(rest, 0.0)) if self._is_early_left else TICK_SECONDS

    async def _estimate_due(self) -> None:
        spent = 0.0  # on early ones, seconds
        is_behind, self._is_early_left = self._is_behind(time.time()), False
        for window, final in self.due():
            began = time.monotonic()
            rests = not final and (is_behind or window in self.published)
            if self._waiting_bytes() > MOST_WAITING_BYTES:
                break
            if rests and began < self._early_at:
                self._is_early_left = True
                break
            await self._look_before(window)
            result = await asyncio.get_running_loop().run_in_executor(
                _THREADS, partial(self.estimate_window, window, final=final)
            )
            if result is None:
                self._unsettled.discard(window)  # until its counts change
            else:
                note = self.published.get(window, NOTHING).followed_by(self.merged.packs(window), final=final)
                self._results[window] = WindowResult(
                    [msgspec.structs.replace(record, revision=note.revision) for record in result.records],
                    result.counts,
                    note,
                    is_revision=final and self._has_left_final(window),
                )
                self.published[window] = note
                if window[0] in self.growing and result.counts is not None:
                    self.growing[window[0]].add(window[1], result.counts.counts)
            if not final:
                ended = time.monotonic()
                spent += ended - began
                if is_behind:
                    self._early_at = ended + BEHIND_REST * (ended - began)
        if spent and not is_behind:
            self._early_at = time.monotonic() + min(REST * spent, self.longest_rest_seconds)
        if self._results:
            self.on_result()
        self.lost.log_new()
        self.lost.keep(lambda each: each in self.published or not self.merged.is_dead(each, self.partitions))

    async def _look_before(self, window: Window) -> None:
        """Look for texts at the final windows before this one that were not looked at yet."""
        growing = self.growing.get(window[0])
        while growing is not None and (start := growing.next_look(window[1])) is not None:
            found = await asyncio.get_running_loop().run_in_executor(_THREADS, self._look, growing, start)
            growing.note(start, found)

    def _look(self, growing: GrowingTexts, start: int) -> list[bytes]:
        name = growing.collection.name
        try:
            with self.metrics.growing_seconds.time():
                return growing.look(start)
        except (ValueError, ArithmeticError, IndexError) as error:
            log.error("no texts found", collection=name, window_start=start, error=str(error))
            self.metrics.estimate_failures.labels(name).inc()
            return []

    def _turn(self, due: tuple[Window, bool]) -> tuple[bool, bool, int, int]:
        """Final ones first; then those for which no other one waits seconds; then by revision and time."""
        window, final = due
        revision = 0 if final else self.published.get(window, NOTHING).revision
        return not final, window[0] in self.growing, revision, window[1]

    def _is_behind(self, now: float) -> bool:
        """Whether all partitions are counted until long before `now`, unix seconds."""
        reported = len(self.merged.progress) == self.partitions
        return reported and 0 < self.merged.latest_ms() < (now - self.behind_seconds) * 1000

    def _waiting_bytes(self) -> int:
        return sum(
            each.counts.counts.counts.nbytes for each in self._results.values() if each.counts is not None
        )

    def _has_left_final(self, window: Window) -> bool:
        """Whether a final result was drained before; one that still waits here is only replaced."""
        waiting, newest = self._results.get(window), self.published.get(window)
        return waiting.is_revision if waiting else newest is not None and newest.final

    def _note_death(self, key: bytes) -> None:
        """Report the window whose counts this deletes, if it lacks a final estimate that it should have.

        A source's deletions follow its last counts, so the first deletion of a window finds it whole. Counts
        that came and went between two publications are unknown here, and assumed to suffice.
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
