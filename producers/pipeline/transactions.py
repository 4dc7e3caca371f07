"""The transactions of a producer's store: each charges, stores and counts what was submitted.

Rules:
1. A report is charged, stored and counted in one transaction, with the position in the input it came from.
2. Only what a committed transaction stored is sent, so a crash can only make spending exceed what was sent.
3. A failure undoes the whole transaction, in the store and in memory.

This module starts no thread and does not wait.
"""

import logging
import math
from collections.abc import Sequence

from deniable.producers.concurrency.clock import Clock
from deniable.producers.config import ProducerConfig
from deniable.producers.metrics.counters import Backlog, Receipt, ReportTotals
from deniable.producers.pipeline.admission import charged, timely
from deniable.producers.pipeline.dispatcher import Dispatch
from deniable.producers.pipeline.open_store import OpenStore, StoreHandle
from deniable.producers.pipeline.packer import Packer, cut
from deniable.producers.pipeline.queueing.submission import FlushRequest, SingleReport, Submission
from deniable.producers.pipeline.small_pack_warning import SmallPacks
from deniable.producers.pipeline.stored_packs import Destination, unpacked
from deniable.producers.randomization.randomness import Words
from deniable.producers.storage.input_progress import set_progress
from deniable.producers.storage.outbox import OVERHEAD_BYTES, Depth, Outbox, StoredBuffer
from deniable.producers.storage.store import BusyError, StoreError
from deniable.protocol.secrets.secret import SecretError
from deniable.protocol.wire import Pack

ADOPT_SECONDS = 30.0

_log = logging.getLogger(__name__)


class StoreTransactions:
    """Stores submissions and hands packs to the dispatcher. Used by one thread at a time.

    Parameters
    ----------
    config : of the producer.
    handle : opens the store.
    words : source of pack ids and of shuffling.
    clock : unix and steady seconds.
    totals : counts the outcomes of reports.
    dispatch : sends stored packs.
    destination : that packs are made for.

    Attributes
    ----------
    trouble : why reports are dropped; empty while the store can be written.
    """

    def __init__(
        self,
        config: ProducerConfig,
        handle: StoreHandle,
        words: Words,
        clock: Clock,
        totals: ReportTotals,
        dispatch: Dispatch,
        destination: Destination,
    ) -> None:
        self._config = config
        self._handle = handle
        self._words = words
        self._clock = clock
        self._totals = totals
        self._dispatch = dispatch
        self._destination = destination
        collections = [allowance.collection for allowance in config.allowances]
        self._collections = {each.name: each for each in collections}
        self._packer = Packer(
            collections, config.pack_reports, config.pack_seconds, words, destination.most_report_bytes
        )
        self._small_packs = SmallPacks(clock.steady())
        self._flushes: list[FlushRequest] = []
        self._last_number = 0
        self._adopted_at = -math.inf
        self.trouble = ""

    def run(
        self, submissions: Sequence[Submission], flushes: Sequence[FlushRequest], *, ticking: bool
    ) -> None:
        """Record acknowledgements, store what was submitted, send what there is room for.

        Parameters
        ----------
        submissions, flushes : in the order they came. Each is settled, a flush perhaps by a later call.
        ticking : whether packs that are old enough are closed now.

        Raises
        ------
        BusyError if another process holds the store, UnknownLimitError if a limit must be computed first:
        nothing was stored or settled, and the call may be repeated.
        """
        self._dispatch.settle()
        if submissions or flushes or ticking:
            try:
                self._keep(submissions, flushes, ticking)
            except BusyError:
                raise
            except (StoreError, SecretError) as error:
                self.lose(submissions, flushes, error)
        try:
            self._settle_flushes(self._dispatch.feed(self._handle.opened().outbox))
        except BusyError:
            pass  # the next call does it
        except (StoreError, SecretError) as error:
            self._log_trouble(str(error))

    def lose(
        self,
        submissions: Sequence[Submission],
        flushes: Sequence[FlushRequest],
        error: StoreError | SecretError,
    ) -> None:
        """Settle everything as dropped."""
        self._log_trouble(str(error))
        for submission in submissions:
            self.drop(submission, str(error))
        for each in flushes:
            each.settle(str(error))

    def drop(self, submission: Submission | SingleReport, why: str) -> None:
        """Count a submission as dropped and settle it. Any thread may call it."""
        dropped = submission.pending_receipt.reports
        self._totals.drop(submission.collection, dropped)
        submission.pending_receipt.settle(Receipt(dropped=dropped, why_dropped=why))

    def end(self, error: str) -> None:
        """Settle the flushes that still wait."""
        for each in self._flushes:
            each.settle(error)
        self._flushes.clear()

    def _keep(
        self, submissions: Sequence[Submission], flushes: Sequence[FlushRequest], ticking: bool
    ) -> None:
        opened, before = self._handle.opened(), self._packer.state()
        now, arrived = self._clock.steady(), self._dispatch.arrived
        is_adopting = now >= self._adopted_at + ADOPT_SECONDS
        old_enough = math.inf if flushes else now if ticking else -math.inf
        try:
            with opened.store.transaction():
                packs = self._adopt(opened.outbox) if is_adopting else []
                stored = self._take_all(opened, submissions, packs)
                packs += self._packer.due(old_enough)
                opened.outbox.save(
                    StoredBuffer(*key, record) for key, record in self._packer.changes().items()
                )
                numbers = opened.outbox.put(
                    [self._destination.stored(each) for each in packs], self._clock.unix()
                )
                if arrived:
                    opened.outbox.forget(arrived)
                # Inside the transaction: a failure after the commit must not undo what is in memory.
                depth = opened.outbox.depth(self._clock.unix()) if ticking or flushes else None
        except BaseException:
            self._packer.restore(before)
            raise
        # After the commit: this lane's former buffers must be adopted before the first buffer is saved.
        self._adopted_at = now if is_adopting else self._adopted_at
        self.trouble = ""
        self._dispatch.forget(arrived)
        self._last_number = numbers[-1] if numbers else self._last_number
        self._publish_outcomes(submissions, stored, packs)
        if opened.spending is not None:
            for warning in opened.spending.warnings():
                _log.error("%s", warning)
        if depth is not None:
            self._record_backlog(opened, depth, flushes)

    def _adopt(self, outbox: Outbox) -> list[Pack]:
        """Take over packs and buffers of ended producers; buffers become packs."""
        packs = outbox.depth(self._clock.unix()).packs
        buffers = outbox.adopt(own=self._adopted_at == -math.inf)
        if outbox.depth(self._clock.unix()).packs > packs:
            self._dispatch.rewind()
        adopted = []
        for each in buffers:
            try:
                buffered = unpacked(each.reports)
                adopted += cut(buffered, self._destination.most_report_bytes, self._words)
            except StoreError as error:  # store it as an unsendable pack, which the dispatcher logs
                _log.error("a damaged buffer of a former producer is kept as a pack: %s", error)
                outbox.put([each.reports], self._clock.unix())
        return adopted

    def _take_all(
        self, opened: OpenStore, submissions: Sequence[Submission], packs: list[Pack]
    ) -> list[Submission]:
        """Store submissions while there is room; append packs that became full to `packs`.

        Returns
        -------
        What was stored of each, refused reports left out; those without room are not among them.
        """
        room, fitting = opened.outbox.room(), []
        for submission in submissions:
            room -= submission.rows.nbytes + OVERHEAD_BYTES
            if room < 0:
                break
            fitting.append(submission)
        now = self._clock.unix()
        admitted = timely(fitting, self._collections, now)
        if opened.spending is not None:
            admitted = charged(admitted, opened.spending, now)
        for each in admitted:
            packs += self._packer.add(
                self._collections[each.collection].fingerprint,
                each.windows,
                each.cohorts,
                each.rows,
                self._clock.steady(),
            )
            if each.progress is not None:
                set_progress(opened.store, *each.progress)
        return admitted

    def _publish_outcomes(
        self, submissions: Sequence[Submission], stored: Sequence[Submission], packs: Sequence[Pack]
    ) -> None:
        for each in stored:
            receipt = Receipt(stored=len(each.rows), refused=sum(each.refused.values()))
            self._totals.settled(each.collection, receipt.stored, each.refused)
            if each.seen is not None:
                each.seen(each.rows)
            each.pending_receipt.settle(receipt, each.calls)
        for submission in submissions[len(stored) :]:
            self.drop(submission, "the outbox is full")
        for pack in packs:
            self._small_packs.note(pack.reports)

    def _record_backlog(self, opened: OpenStore, depth: Depth, flushes: Sequence[FlushRequest]) -> None:
        """Publish the backlog to other threads, and note which pack each flush waits for."""
        now = self._clock.unix()
        if opened.spending is not None:
            self._totals.spent(opened.spending.used(now))
        self._totals.left(Backlog(depth.packs, depth.bytes, depth.age_seconds))
        self._small_packs.check(self._clock.steady())
        for each in flushes:
            each.until = self._last_number
            if depth.packs == 0:
                each.settle()
            else:
                self._flushes.append(each)

    def _settle_flushes(self, is_fed: bool) -> None:
        """Settle flushes whose packs are acknowledged and deleted, or can never be sent."""
        through, refused, refusal = [], [], self._dispatch.refusal
        for each in self._flushes:
            # Nothing was packed since the start: the outbox has only packs of former producers.
            if each.until == 0 and is_fed:
                each.until = self._dispatch.cursor
            if each.until and self._dispatch.is_through(each.until):
                through.append(each)
            elif refusal is not None:
                refused.append(each)
        try:
            if through or refused:
                self._keep([], [], ticking=True)
        finally:
            for each in through:
                each.settle()
            for each in refused:
                each.settle(refusal)
            self._flushes = [each for each in self._flushes if not each.done.is_open]

    def _log_trouble(self, trouble: str) -> None:
        if trouble != self.trouble:
            _log.error("the store takes no reports: %s", trouble)
        self.trouble = trouble
