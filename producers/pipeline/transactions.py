"""StoreTransactions: what a producer does to its store, a transaction at a time. No thread, no waiting.

Rules:
1. A report is charged, kept and counted in one transaction, together with the place in the input it is from.
2. Only what a transaction has kept is sent. So a crash can only make spending exceed what was sent.
3. Whatever goes wrong in a transaction undoes all of it, in the store and in memory.
"""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from producers.budget.lateness import untimely
from producers.concurrency.clock import Clock
from producers.config import ProducerConfig
from producers.metrics.counters import Backlog, Receipt, ReportTotals
from producers.pipeline.dispatcher import Dispatch, unpacked
from producers.pipeline.open_store import OpenStore, StoreHandle
from producers.pipeline.packer import Packer, seal
from producers.pipeline.small_pack_warning import SmallPacks
from producers.pipeline.submission_queue import FlushRequest, Submission
from producers.randomization.randomness import Words
from producers.randomization.secret import SecretError
from producers.storage.input_progress import set_progress
from producers.storage.outbox import OVERHEAD_BYTES, Depth, Outbox, StoredBuffer
from producers.storage.store import BusyError, StoreError
from producers.wire import Pack, encode

ADOPT_SECONDS = 30.0
REASONS = ("over_window", "over_budget", "too_late")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Fate:
    """What the present transaction does about a submission."""

    submission: Submission
    receipt: Receipt
    refused: Mapping[str, int] = field(default_factory=dict)


class StoreTransactions:
    """Takes submissions, keeps them, and feeds the dispatch. Used by one thread at a time.

    Parameters
    ----------
    config : ProducerConfig.
    shelf : Shelf of the books.
    words : source of the pack ids and of the shuffling.
    clock : Clock.
    tally : counts what becomes of reports.
    dispatch : sends what is kept.
    """

    def __init__(
        self,
        config: ProducerConfig,
        shelf: StoreHandle,
        words: Words,
        clock: Clock,
        tally: ReportTotals,
        dispatch: Dispatch,
    ) -> None:
        self._config = config
        self._shelf = shelf
        self._words = words
        self._clock = clock
        self._tally = tally
        self._dispatch = dispatch
        collections = [allowance.collection for allowance in config.allowances]
        self._collections = {each.name: each for each in collections}
        self._packer = Packer(collections, config.pack_reports, config.pack_seconds, words)
        self._small_packs = SmallPacks(clock.steady())
        self._seals: list[FlushRequest] = []
        self._last_number = 0
        self._adopted_at = -math.inf
        self._trouble = ""

    def run(self, submissions: Sequence[Submission], seals: Sequence[FlushRequest], *, ticking: bool) -> None:
        """One round: settle what was sent, keep what came, send what there is room for.

        Parameters
        ----------
        submissions, seals : as they came; each is settled, a seal perhaps in a later round.
        ticking : whether packs that are old enough leave now.

        Raises
        ------
        BusyError if another process holds the store, UnknownLimitError if a limit must be found before:
        nothing was kept or settled, and it may be run again.
        """
        self._dispatch.settle()
        if submissions or seals or ticking:
            try:
                self._keep(submissions, seals, ticking)
            except BusyError:
                raise
            except (StoreError, SecretError) as error:
                self.lose(submissions, seals, error)
        try:
            self._settle_flushes(self._dispatch.feed(self._shelf.opened().outbox))
        except BusyError:
            pass  # The next round does it.
        except (StoreError, SecretError) as error:
            self._log_trouble(str(error))

    def lose(
        self,
        submissions: Sequence[Submission],
        seals: Sequence[FlushRequest],
        error: StoreError | SecretError,
    ) -> None:
        """Drop what cannot be kept."""
        for submission in submissions:
            self.drop(submission, str(error))
        for each in seals:
            each.settle(str(error))
        self._log_trouble(str(error))

    def drop(self, submission: Submission, why: str) -> None:
        """Settle a submission of which nothing was kept."""
        dropped = submission.ticket.reports
        self._tally.drop(submission.collection, dropped)
        submission.ticket.settle(Receipt(dropped=dropped, why_dropped=why))

    def end(self, error: str) -> None:
        """Settle the seals that still wait."""
        for each in self._seals:
            each.settle(error)
        self._seals.clear()

    def _keep(self, submissions: Sequence[Submission], seals: Sequence[FlushRequest], ticking: bool) -> None:
        books, buffered = self._shelf.opened(), self._packer.state()
        now, arrived = self._clock.steady(), self._dispatch.arrived
        is_adopting = now >= self._adopted_at + ADOPT_SECONDS
        old_enough = math.inf if seals else now if ticking else -math.inf
        try:
            with books.store.transaction():
                packs = self._adopt(books.outbox) if is_adopting else []
                fates = self._take_all(books, submissions, packs)
                packs += self._packer.due(old_enough)
                books.outbox.save(
                    StoredBuffer(*key, record) for key, record in self._packer.changes().items()
                )
                numbers = books.outbox.put([encode(pack) for pack in packs], self._clock.unix())
                if arrived:
                    books.outbox.forget(arrived)
                # In here: what goes wrong after the commit must not undo in memory what the store has kept.
                depth = books.outbox.depth(self._clock.unix()) if ticking or seals else None
        except BaseException:
            self._packer.restore(buffered)
            raise
        # Only now: what this lane's former holder left must be taken over before the first buffer is saved.
        self._adopted_at = now if is_adopting else self._adopted_at
        self._trouble = ""
        self._dispatch.forget(arrived)
        self._last_number = numbers[-1] if numbers else self._last_number
        self._publish_outcomes(fates, packs)
        for warning in books.spending.warnings():
            _log.error("%s", warning)
        if depth is not None:
            self._record_backlog(books, depth, seals)

    def _adopt(self, outbox: Outbox) -> list[Pack]:
        """Take over what other producers left; what was in their buffers becomes packs."""
        packs = outbox.depth(self._clock.unix()).packs
        buffers = outbox.adopt(own=self._adopted_at == -math.inf)
        if outbox.depth(self._clock.unix()).packs > packs:
            self._dispatch.rewind()
        packs_made = []
        for each in buffers:
            try:
                packs_made.append(seal(unpacked(each.reports), self._words))
            except StoreError as error:  # kept as it is, a pack that cannot be sent: Dispatch tells of it
                _log.error("a buffer that was left is kept as a pack: %s", error)
                outbox.put([each.reports], self._clock.unix())
        return packs_made

    def _take_all(
        self, books: OpenStore, submissions: Sequence[Submission], packs: list[Pack]
    ) -> list[_Fate]:
        """Take each submission as long as there is room; appends to `packs` those that became full."""
        fates = []
        room = books.outbox.room()
        for submission in submissions:
            room -= submission.rows.nbytes + OVERHEAD_BYTES
            if room < 0:
                full = Receipt(dropped=submission.ticket.reports, why_dropped="the outbox is full")
                fates.append(_Fate(submission, full))
            else:
                fates.append(self._take(books, submission, packs))
        return fates

    def _take(self, books: OpenStore, given: Submission, packs: list[Pack]) -> _Fate:
        collection, now = self._collections[given.collection], self._clock.unix()
        off = untimely(collection, given.windows, now)
        refused = Counter(too_early=int(off.too_early.sum()), too_late=int(off.too_late.sum()))
        kept = given.only(~(off.too_early | off.too_late))
        if kept.clients is not None:
            charged = books.spending.charge(given.collection, kept.clients, kept.windows, now)
            refused.update({reason: getattr(charged, reason) for reason in REASONS})
            kept = kept.only(charged.accepted)
        packs += self._packer.add(
            collection.fingerprint, kept.windows, kept.cohorts, kept.rows, self._clock.steady()
        )
        if given.progress is not None:
            set_progress(books.store, *given.progress)
        return _Fate(given, Receipt(stored=len(kept.rows), refused=refused.total()), refused)

    def _publish_outcomes(self, fates: Sequence[_Fate], packs: Sequence[Pack]) -> None:
        for fate in fates:
            name, receipt = fate.submission.collection, fate.receipt
            self._tally.settled(name, receipt.stored, fate.refused)
            self._tally.drop(name, receipt.dropped)
            fate.submission.ticket.settle(receipt)
        for pack in packs:
            self._small_packs.note(pack.reports)

    def _record_backlog(self, books: OpenStore, depth: Depth, seals: Sequence[FlushRequest]) -> None:
        """Note what is left, for whoever asks from another thread, and what the seals wait for."""
        now = self._clock.unix()
        used = {
            allowance.collection.name: books.spending.largest_ratio(allowance.collection.name, now)
            for allowance in self._config.allowances
            if allowance.budget is not None
        }
        self._tally.left(Backlog(depth.packs, depth.bytes, depth.age_seconds, used))
        self._small_packs.check(self._clock.steady())
        for each in seals:
            each.until = self._last_number
            if depth.packs == 0:
                each.settle()
            else:
                self._seals.append(each)

    def _settle_flushes(self, is_fed: bool) -> None:
        """Settle the seals that all is acknowledged of, once it is deleted, or of which nothing will be."""
        through, refused, refusal = [], [], self._dispatch.refusal
        for each in self._seals:
            # Nothing was packed since the start: what is in the outbox was left there by others.
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
            self._seals = [each for each in self._seals if not each.done.is_open]

    def _log_trouble(self, trouble: str) -> None:
        if trouble != self._trouble:
            _log.error("the store failed, what was handed over is not kept: %s", trouble)
        self._trouble = trouble
