"""Rounds: what a producer does to its store, a transaction at a time. No thread, no waiting.

Rules:
1. A report is charged, kept and counted in one transaction, together with the place in the input it is from.
2. Only what a transaction has kept is sent. So a crash can only make spending exceed what was sent.
3. Whatever goes wrong in a transaction undoes all of it, in the store and in memory.
"""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from producers.counters import Backlog, Receipt, Tally
from producers.dispatch import Dispatch, unpacked
from producers.intake import Seal, Submission
from producers.lanes import Lane, take_lane
from producers.outbox import OVERHEAD_BYTES, Buffered, Outbox
from producers.packer import Packer, seal
from producers.producer_config import ProducerConfig
from producers.progress import set_progress
from producers.randomness import Words
from producers.small_packs import SmallPacks
from producers.spending import Spending
from producers.store import Store, StoreError
from producers.wire import Pack, encode

ADOPT_SECONDS = 30.0
REASONS = ("over_window", "over_budget", "too_late")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Clock:
    """Where the time is from.

    Parameters
    ----------
    steady : seconds of a clock that never goes back.
    unix : unix seconds.
    """

    steady: Callable[[], float] = time.monotonic
    unix: Callable[[], float] = time.time


@dataclass(frozen=True)
class _Books:
    """The open store, and what is kept in it."""

    store: Store
    outbox: Outbox
    spending: Spending


@dataclass(frozen=True)
class _Fate:
    """What the present transaction does about a submission."""

    submission: Submission
    receipt: Receipt
    refused: Mapping[str, int] = field(default_factory=dict)


class Rounds:
    """Takes submissions, keeps them, and feeds the dispatch. Used by one thread at a time.

    Parameters
    ----------
    config : ProducerConfig.
    words : source of the pack ids and of the shuffling.
    clock : Clock.
    tally : counts what becomes of reports.
    dispatch : sends what is kept.

    Raises
    ------
    StoreError if the store cannot be opened.
    """

    def __init__(
        self, config: ProducerConfig, words: Words, clock: Clock, tally: Tally, dispatch: Dispatch
    ) -> None:
        self._config = config
        self._words = words
        self._clock = clock
        self._tally = tally
        self._dispatch = dispatch
        collections = [allowance.collection for allowance in config.allowances]
        self._fingerprints = {each.name: each.fingerprint for each in collections}
        self._packer = Packer(collections, config.pack_reports, config.pack_seconds, words)
        self._small_packs = SmallPacks(clock.steady())
        self._seals: list[Seal] = []
        self._last_number = 0
        self._adopted_at = -math.inf
        self._trouble = ""
        self._lane: Lane | None = None
        self._books: _Books | None = None
        self._opened()

    def run(self, submissions: Sequence[Submission], seals: Sequence[Seal], *, ticking: bool) -> None:
        """One round: settle what was sent, keep what came, send what there is room for.

        Parameters
        ----------
        submissions, seals : as they came; each is settled, a seal perhaps in a later round.
        ticking : whether packs that are old enough leave now.
        """
        self._dispatch.settle()
        if submissions or seals or ticking:
            try:
                self._keep(submissions, seals, ticking)
            except StoreError as error:
                self._lose(submissions, seals, error)
        try:
            self._answer(self._dispatch.feed(self._opened().outbox))
        except StoreError as error:
            self._note(str(error))

    def suspend(self) -> None:
        """Close the store until the next round: an open one must not be there when the process forks."""
        if self._books is not None:
            self._books.store.close()
            self._books = None

    def close(self) -> None:
        """Close the store, and leave what is in it to the next producer."""
        self.suspend()
        if self._lane is not None:
            self._lane.release()

    def _opened(self) -> _Books:
        if self._books is None:
            store = Store(self._config.data_dir)
            try:
                self._lane = self._lane or take_lane(self._config.data_dir)
                outbox = Outbox(store, self._lane, self._config.data_dir, self._config.outbox_bytes)
                spending = Spending(store, self._config.allowances, self._clock.unix())
            except StoreError:
                store.close()
                raise
            self._books = _Books(store, outbox, spending)
        return self._books

    def _keep(self, submissions: Sequence[Submission], seals: Sequence[Seal], ticking: bool) -> None:
        books, buffered = self._opened(), self._packer.state()
        now, arrived = self._clock.steady(), self._dispatch.arrived
        is_adopting = now >= self._adopted_at + ADOPT_SECONDS
        old_enough = math.inf if seals else now if ticking else -math.inf
        try:
            with books.store.transaction():
                packs = self._adopt(books.outbox) if is_adopting else []
                fates = self._take_all(books, submissions, packs)
                packs += self._packer.due(old_enough)
                books.outbox.save(Buffered(*key, record) for key, record in self._packer.changes().items())
                numbers = books.outbox.put([encode(pack) for pack in packs], self._clock.unix())
                if arrived:
                    books.outbox.forget(arrived)
        except BaseException:
            self._packer.restore(buffered)
            raise
        # Only now: what this lane's former holder left must be taken over before the first buffer is saved.
        self._adopted_at = now if is_adopting else self._adopted_at
        self._trouble = ""
        self._dispatch.forget(arrived)
        self._last_number = numbers[-1] if numbers else self._last_number
        self._tell(fates, packs)
        if ticking or seals:
            self._look(books, seals)

    def _adopt(self, outbox: Outbox) -> list[Pack]:
        """Take over what other producers left; what was in their buffers becomes packs."""
        packs = outbox.depth(self._clock.unix()).packs
        buffers = outbox.adopt(own=self._adopted_at == -math.inf)
        if outbox.depth(self._clock.unix()).packs > packs:
            self._dispatch.rewind()
        return [seal(unpacked(each.reports), self._words) for each in buffers]

    def _take_all(self, books: _Books, submissions: Sequence[Submission], packs: list[Pack]) -> list[_Fate]:
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

    def _take(self, books: _Books, given: Submission, packs: list[Pack]) -> _Fate:
        windows, cohorts, rows = given.windows, given.cohorts, given.rows
        refused: Mapping[str, int] = {}
        if given.clients is not None:
            charged = books.spending.charge(given.collection, given.clients, windows, self._clock.unix())
            refused = {reason: getattr(charged, reason) for reason in REASONS}
            if not charged.accepted.all():
                windows, cohorts = windows[charged.accepted], cohorts[charged.accepted]
                rows = rows[charged.accepted]
        fingerprint = self._fingerprints[given.collection]
        packs += self._packer.add(fingerprint, windows, cohorts, rows, self._clock.steady())
        if given.progress is not None:
            set_progress(books.store, *given.progress)
        return _Fate(given, Receipt(stored=len(rows), refused=sum(refused.values())), refused)

    def _tell(self, fates: Sequence[_Fate], packs: Sequence[Pack]) -> None:
        for fate in fates:
            name, receipt = fate.submission.collection, fate.receipt
            self._tally.settled(name, receipt.stored, receipt.dropped, fate.refused)
            fate.submission.ticket.settle(receipt)
        for pack in packs:
            self._small_packs.note(pack.reports)

    def _look(self, books: _Books, seals: Sequence[Seal]) -> None:
        """Note what is left, for whoever asks from another thread, and what the seals wait for."""
        now = self._clock.unix()
        depth = books.outbox.depth(now)
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

    def _answer(self, is_fed: bool) -> None:
        """Settle the seals that all is acknowledged of, once it is deleted, or of which nothing will be."""
        through = []
        for each in self._seals:
            # Nothing was packed since the start: what is in the outbox was left there by others.
            if each.until == 0 and is_fed:
                each.until = self._dispatch.cursor
            if each.until and self._dispatch.is_through(each.until):
                through.append(each)
            elif self._dispatch.refusal is not None:
                each.settle(self._dispatch.refusal)
        try:
            if through:
                self._keep([], [], ticking=True)
        finally:
            for each in through:
                each.settle()
            self._seals = [each for each in self._seals if not each.done.is_set()]

    def _lose(self, submissions: Sequence[Submission], seals: Sequence[Seal], error: StoreError) -> None:
        for submission in submissions:
            dropped = submission.ticket.reports
            self._tally.settled(submission.collection, 0, dropped, {})
            submission.ticket.settle(Receipt(dropped=dropped, why_dropped=str(error)))
        for each in seals:
            each.settle(str(error))
        self._note(str(error))

    def _note(self, trouble: str) -> None:
        if trouble != self._trouble:
            _log.error("the store failed, what comes is dropped: %s", trouble)
        self._trouble = trouble
