"""The life of one owned partition: open its ledger, count, checkpoint, estimate; discard all on failure.

Rule 1: one gate. `offer` counts records iff they follow the ledger's position. Records that Faust delivers
twice, late or out of order are ignored here; records that it loses are fetched again.
Rule 2: nothing is repaired. After any failure the ledger is read again from committed rows.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.estimation.estimator import Estimator
from deniable.aggregator.estimation.former_windows import former_windows
from deniable.aggregator.estimation.growing import GrowingTexts, first_needed
from deniable.aggregator.estimation.lost_windows import LostWindows
from deniable.aggregator.ledger import row_values
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.outcomes import PackOutcomes
from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition.checkpoint import compose, progress_of, take
from deniable.aggregator.partition.failures import (
    LogReplacedError,
    RecordNotCountedError,
    RecordsLostError,
    ends_early,
    holds_another,
    raise_if_cancelled,
    uncounted,
)
from deniable.aggregator.partition.fetching.last_record import LastRecord
from deniable.aggregator.partition.fetching.record_source import RecordSource
from deniable.aggregator.partition.ledger_checks import (
    RowsMissingError,
    check_partition,
    decoded,
    known_texts,
    published,
    restored,
)
from deniable.aggregator.partition.ledger_store import STORE_ERRORS, LedgerStore
from deniable.aggregator.partition.readiness import Readiness
from deniable.aggregator.partition.timing import DEFAULT, PartitionTiming
from deniable.aggregator.records.known_texts import KnownTexts
from deniable.cluster.connection.outage import Outage
from deniable.cluster.reading.partition_reader import RowReader
from deniable.protocol.marker import KEY_BYTES

PUBLISH_REST = 4.0  # times as long as a publication took: many rows are not written again at once


async def _stands_alone(ledger: Ledger) -> None:
    """Without relays, nothing is appended for them."""


class PartitionOwner:
    """Counts one partition while it is assigned to this worker."""

    def __init__(
        self,
        partition: int,
        deployment: Deployment,
        source: RecordSource,
        metrics: WorkerMetrics,
        timing: PartitionTiming = DEFAULT,
        openings: asyncio.Semaphore | None = None,
        ask_to_close: Callable[[Mapping[int, int]], None] = lambda _: None,
        settled: asyncio.Event | None = None,
        follow_relays: Callable[[Ledger], Coroutine[None, None, None]] = _stands_alone,
        *,
        outage: Outage,
    ) -> None:
        self.partition = partition
        self.deployment = deployment
        self.source = source
        self.metrics = metrics
        self.timing = timing
        self.readiness = Readiness(partition, metrics, outage, timing)
        self.lost_windows = LostWindows(metrics)
        self.ask_to_close = ask_to_close
        self.follow_relays = follow_relays
        self._openings = openings or asyncio.Semaphore(1)
        self._settled = settled or asyncio.Event()
        if settled is None:
            self._settled.set()
        self._ledger: Ledger | None = None
        self._failure = ""  # why the last ledger was discarded while it counted
        self._news = asyncio.Event()  # new counts, or what `_hurry` says
        self._haste = asyncio.Event()
        self._outcomes = PackOutcomes()  # since the ledger's last transaction
        self._names = [each.name for each in deployment.collections.values()]
        self._publish_at = self._look_at = 0.0
        self._published: row_values.LedgerProgress | None = None
        self._end = 0  # of the log, when it was last asked for
        self._counted_at = 0.0
        self._last: LastRecord | None = None  # that was counted, if known
        self._missing_since: float | None = None  # the ledger cannot be opened for lack of rows
        self._short_since: float | None = None  # brokers say that the log ends before the position

    def offer(self, run: Run) -> None:
        """Count those of the delivered records that come next, without a gap; ignore the others."""
        ledger, chain = self._ledger, self.source.chain(self.partition)
        if ledger is None or chain is None or not chain.is_proven or not len(run):
            return
        place = chain.following(ledger.position, run.offsets)
        if place.start == place.stop:
            return
        following = run.part(place.start, place.stop)
        try:
            outcome = ledger.apply_run(following)
            self._outcomes.count_run(outcome)
            for number, rejection in outcome.rejections:
                if headers := following.headers_of(number):
                    offset = int(following.offsets[number])
                    self._outcomes.name_rejection(offset, rejection, headers, self._names)
        except Exception as error:  # noqa: BLE001 - rule 2: the records may be half counted
            self._ledger, self._failure = None, uncounted(self.partition, ledger.position, error)
            return
        self._last = LastRecord.of(following, -1)
        self._counted_at = time.monotonic()
        self._news.set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until cancelled or stopping; reopen the ledger after every failure.

        On stopping, write a last checkpoint, so that the next owner has nothing to count again.
        """
        while await self._settled.wait() and not stopping.is_set():
            store = LedgerStore(self.deployment.cluster, self.deployment.topics, self.partition, self.timing)
            try:
                await self._serve(store, stopping)
            except* (*STORE_ERRORS, RecordsLostError, LogReplacedError, RecordNotCountedError) as failure:
                self.readiness.lost(failure.exceptions[0])
            except* RowsMissingError as failure:
                self._missing_since = self._missing_since or time.monotonic()
                if time.monotonic() - self._missing_since > self.timing.cut:
                    raise
                self.readiness.lost(failure.exceptions[0])
            finally:
                self._ledger = None
                await store.close()
            raise_if_cancelled()
            if not stopping.is_set():
                await asyncio.sleep(self.timing.retry)

    async def _serve(self, store: LedgerStore, stopping: asyncio.Event) -> None:
        async with self._openings:
            ledger, estimator = await self._opened(store)
        self._missing_since = None
        self._outcomes = PackOutcomes()
        self._counted_at = time.monotonic()
        self._publish_at = self._look_at = 0.0
        self._published = None
        self._ledger, self._last = ledger, store.last
        async with asyncio.timeout(self.timing.stall):  # a client without a broker may wait forever
            await self.source.rewind(self.partition, ledger.position, self._last)
        self.readiness.opened(ledger.position)
        reader = RowReader(
            self.deployment.cluster, self.deployment.topics.counts, self.partition, follows=True
        )
        await self._settled.wait()
        await self._checkpoint(ledger, estimator, store)  # before others rest on what it stores
        async with asyncio.TaskGroup() as tasks:
            works = (estimator.run(reader), self._hurry_at(stopping), self.follow_relays(ledger))
            beside = [tasks.create_task(each) for each in works]
            pause = 0.0
            last = stopping.is_set()
            while not last:
                await self._rest(pause)
                await self._settled.wait()
                last = stopping.is_set()  # a checkpoint already on its way lacks the latest counts
                started = time.monotonic()
                await self._checkpoint(ledger, estimator, store)
                if self._settled.is_set():  # else this partition cannot be sought
                    async with asyncio.timeout(self.timing.stall):
                        await self._rewind_if_stuck(ledger)
                took = time.monotonic() - started
                shortest = self.timing.longest_pause if self._catches_up(ledger) else self.timing.checkpoint
                pause = min(self.timing.longest_pause, max(shortest, took))
            for each in beside:
                each.cancel()

    async def _rest(self, seconds: float) -> None:
        """Rest, then wait for news, but not for long; haste ends both."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._haste.wait(), seconds)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), self.timing.tick)
        self._haste.clear()
        self._news.clear()

    def _hurry(self) -> None:
        """End the rest: a result waits for its transaction, or the worker stops."""
        self._haste.set()
        self._news.set()

    async def _hurry_at(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        self._hurry()

    async def _opened(self, store: LedgerStore) -> tuple[Ledger, Estimator]:
        """The stored ledger and its estimator. The rows read to build them are released."""
        deployment, partition = self.deployment, self.partition
        check_partition(deployment, partition)
        committed = await store.committed()
        # In threads: a million ids or rows take longer than heartbeats may wait.
        stored = await asyncio.to_thread(decoded, deployment, partition, await store.open())
        ledger = await asyncio.to_thread(restored, deployment, partition, stored, committed)
        ledger.agree(deployment.collections, deployment.revision)
        if deployment.relay_wait_seconds and not ledger.closing.key:
            ledger.expect_relays(os.urandom(KEY_BYTES))
        known = published(deployment, partition, stored)
        collections, partitions = deployment.home(partition), deployment.topics.partitions
        growing = await self._growing(known_texts(deployment, partition, stored), ledger.watermark_ms // 1000)
        estimator = Estimator(
            collections,
            partitions,
            known,
            self.lost_windows,
            self.metrics,
            longest_rest_seconds=self.timing.longest_pause,
            behind_seconds=self.timing.behind,
            growing=growing,
            ask_to_close=self.ask_to_close,
            on_result=self._hurry,
        )
        return ledger, estimator

    async def _growing(self, known: Mapping[int, KnownTexts], watermark: int) -> dict[int, GrowingTexts]:
        """The texts of the collections that are grown, with what former owners published; see `_opened`."""
        topics = self.deployment.topics
        grown = {
            each: of for each, of in self.deployment.home(self.partition).items() if of.growth is not None
        }
        texts = {each: known.get(each, KnownTexts()) for each in grown}
        since = {each: first_needed(of, texts[each], watermark) for each, of in grown.items()}
        windows = await former_windows(self.deployment.cluster, topics, self.partition, grown, since)
        return {each: GrowingTexts(of, texts[each], windows[each]) for each, of in grown.items()}

    async def _checkpoint(self, ledger: Ledger, estimator: Estimator, store: LedgerStore) -> None:
        started, timing = time.monotonic(), self.timing
        if started >= self._look_at:
            async with asyncio.timeout(timing.stall):
                await self._look_at_end(ledger)
            self._look_at = started + timing.look
        publishes = ledger.has_dead() or (
            started >= self._publish_at and progress_of(ledger) != self._published
        )
        if self._ledger is not ledger:
            raise RecordNotCountedError(self._failure)
        checkpoint, last = take(ledger, estimator, publishes=publishes), self._last
        outcomes, self._outcomes = self._outcomes, PackOutcomes()
        # In a thread: many rows take longer than heartbeats may wait.
        names = outcomes.same_names
        records = await asyncio.to_thread(compose, checkpoint, self.deployment.topics, names)
        if records:
            position, watermark_ms = checkpoint.progress.position, checkpoint.progress.watermark_ms
            await store.commit(records, position, last)
            self.metrics.checkpoint_seconds.observe(time.monotonic() - started)
            self.metrics.show_progress(self.partition, position, watermark_ms)
            self.metrics.count(outcomes)
            estimator.show_published()
        if publishes:
            took = time.monotonic() - started
            least = timing.publish_behind if self._catches_up(ledger) else timing.publish
            self._publish_at = started + max(least, min(PUBLISH_REST * took, timing.longest_pause))
            self._published = checkpoint.progress
        if (chain := self.source.chain(self.partition)) is not None and chain.is_proven:
            self.readiness.stored(checkpoint.progress.position)

    async def _look_at_end(self, ledger: Ledger) -> None:
        """Pass a hole at the end of the log, and compare with the end that a broker believes in.

        Raises LogReplacedError if the log does not continue what was counted.
        """
        position = ledger.position
        end = await self.source.end_offset(self.partition)
        chain = self.source.chain(self.partition)
        if chain is not None:
            ledger.pass_hole(chain.pass_hole(ledger.position))
            if chain.other is not None and chain.last is not None:
                raise holds_another(self.partition, chain.last, chain.other)
        now = time.monotonic()
        self._short_since = None if end >= position else self._short_since or now
        if self._short_since is not None and now - self._short_since > self.timing.cut:
            raise ends_early(self.partition, position, end)
        self._end = max(end, position)  # a leader that was replaced, or has just begun, may know of less
        self.readiness.watch(self._end)

    def _catches_up(self, ledger: Ledger) -> bool:
        """Whether records are left that were appended long ago."""
        counted_ms = (time.time() - self.timing.behind) * 1000
        return ledger.position < self._end and 0 < ledger.watermark_ms < counted_ms

    async def _rewind_if_stuck(self, ledger: Ledger) -> None:
        """Fetch again if records were fetched but not delivered, or never fetched, or the chain broke."""
        chain = self.source.chain(self.partition)
        silent_seconds = time.monotonic() - self._counted_at
        if (
            chain is None
            or (chain.cursor > chain.follows(ledger.position) and silent_seconds > self.timing.stuck)
            or (self.readiness.is_stalled and silent_seconds > self.timing.standstill)
        ):
            self._counted_at = time.monotonic()
            await self.source.rewind(self.partition, ledger.position, self._last)
        else:
            chain.passed(ledger.position)
