"""The one thread that stores and sends: it takes what the callers' threads hand over, a round at a time."""

from collections import deque
from collections.abc import Sequence
from functools import partial

from producers.budget.limits import UnknownLimitError
from producers.concurrency.background_thread import Background
from producers.concurrency.clock import Clock
from producers.concurrency.fork_hooks import Pause
from producers.config import ProducerConfig
from producers.errors import ClosedError, DeliveryError
from producers.metrics.counters import ReportTotals
from producers.pipeline.dispatcher import Dispatch
from producers.pipeline.open_store import StoreHandle
from producers.pipeline.submission_queue import FlushRequest, Submission, SubmissionQueue
from producers.pipeline.transactions import StoreTransactions
from producers.randomization.randomness import Words
from producers.randomization.secret import Secret
from producers.storage.store import BusyError
from producers.transport.connection import connect
from producers.transport.sender import Delivery

BUSY_SECONDS = 5.0
END_SECONDS = 15.0


class StoringThread:
    """Runs rounds from `start` to `close`; for all threads. It belongs to the process that made it.

    Parameters
    ----------
    config : ProducerConfig.
    secret : that the store must have been begun with.
    words : source of the pack ids, the shuffling and the ticks.
    clock : Clock.
    tally : counts what becomes of reports.
    """

    def __init__(
        self, config: ProducerConfig, secret: Secret, words: Words, clock: Clock, tally: ReportTotals
    ) -> None:
        self._pack_seconds = config.pack_seconds
        self._words = words
        self._clock = clock
        self._intake = SubmissionQueue()
        where = (config.cluster, config.topic, config.partitions, config.connect_seconds)
        self._delivery = Delivery(partial(connect, *where), config.topic, self._intake.wake, tally.sendable)
        collections = {each.collection.fingerprint: each.collection for each in config.allowances}
        dispatch = Dispatch(self._delivery, config.partitions, collections, tally)
        self._shelf = StoreHandle(config, secret, clock)
        self._rounds = StoreTransactions(config, self._shelf, words, clock, tally, dispatch)
        self._items: Sequence[Submission | FlushRequest] = ()
        self._pauses: deque[Pause] = deque()
        self._is_reckoning = False
        self._is_ending = False
        self._is_over = False
        self._thread = Background("storing", self._run, self._end)

    def open(self) -> None:
        """Open the store, before `start`: else the thread does, and drops what comes as long as it cannot.

        Raises
        ------
        StoreError if it cannot be opened; SecretError if it was begun with another secret.
        """
        until = self._clock.steady() + BUSY_SECONDS
        try:
            while True:
                try:
                    self._shelf.opened()
                    return
                except BusyError:
                    if self._clock.steady() >= until:
                        raise
        except BaseException:
            self._shelf.close()
            raise

    def start(self) -> None:
        """Begin, unless it has. Waits for nobody.

        Raises
        ------
        DeliveryError if a thread cannot be started; the next call tries again.
        """
        self._thread.start()
        self._delivery.start()

    def abandon(self) -> None:
        """Let store and lane go after `start` failed."""
        if self.is_begun:
            self.close()
        else:
            self._shelf.close()

    @property
    def is_begun(self) -> bool:
        """Whether it was started."""
        return self._thread.is_begun

    @property
    def trouble(self) -> str | None:
        """Why nothing is stored, or nothing was acknowledged of late, as far as it is known."""
        return self._thread.death or (str(self._delivery.trouble) if self._delivery.trouble else None)

    def put(self, item: Submission | FlushRequest, seconds: float) -> bool:
        """As SubmissionQueue.put.

        Raises
        ------
        DeliveryError as `check`.
        """
        try:
            return self._intake.put(item, seconds)
        except ClosedError:
            self.check()
            raise

    def check(self) -> None:
        """Raise DeliveryError if the thread died."""
        if self._thread.death is not None:
            raise DeliveryError(self._thread.death)

    def pause(self) -> Pause:
        """Ask it to stand still between two rounds, with the store closed."""
        pause = Pause()
        self._pauses.append(pause)
        if self._is_over or self._is_reckoning or not self.is_begun:
            pause.reached.open()
        else:
            self._intake.wake()
        return pause

    def close(self) -> None:
        """Store what was queued, take nothing more, disconnect.

        Raises
        ------
        DeliveryError if that takes longer than END_SECONDS.
        """
        self._intake.close()
        self._is_ending = True
        self._intake.wake()
        if not self._thread.join(END_SECONDS):
            raise DeliveryError(f"the storing thread did not end within {END_SECONDS:g} s")

    def _run(self) -> None:
        tick = self._clock.steady() + self._jittered()
        while not self._is_ending:
            items = self._intake.take(tick - self._clock.steady())
            is_ticking = self._clock.steady() >= tick
            self._round(items, ticking=is_ticking)
            if is_ticking:
                tick = self._clock.steady() + self._jittered()
        self._delivery.close()
        self._round(self._intake.end(), ticking=True)

    def _round(self, items: Sequence[Submission | FlushRequest], *, ticking: bool) -> None:
        """Run a round, and again as long as it cannot be run.

        That is until the limits that it needs are found, and while another process holds the store, but when
        ending for BUSY_SECONDS only.
        """
        self._items = items
        submissions = [item for item in items if isinstance(item, Submission)]
        seals = [item for item in items if isinstance(item, FlushRequest)]
        until = float("inf")
        while True:
            self._stand_still()
            try:
                return self._rounds.run(submissions, seals, ticking=ticking)
            except UnknownLimitError as unknown:
                self._reckon(unknown)
            except BusyError as error:
                if self._is_ending:
                    until = min(until, self._clock.steady() + BUSY_SECONDS)
                if self._clock.steady() >= until:
                    return self._rounds.lose(submissions, seals, error)

    def _stand_still(self) -> None:
        """Do so as long as somebody wants it."""
        while self._pauses:
            self._shelf.suspend()
            self._pauses[0].reached.open()
            self._pauses[0].over.wait(float("inf"))
            self._pauses.popleft()

    def _reckon(self, unknown: UnknownLimitError) -> None:
        """Find a limit, with the store closed: no other process waits for it, and no fork for this thread."""
        self._shelf.suspend()
        self._is_reckoning = True
        self._let_go()
        unknown.find()
        self._is_reckoning = False  # Who asked for a pause before this is waited for next, by `_stand_still`.

    def _let_go(self) -> None:
        """Let everybody fork who waits for it."""
        for pause in tuple(self._pauses):
            pause.reached.open()

    def _end(self) -> None:
        """Close all, and let everybody go who waits for this thread, however it ended."""
        try:
            self._delivery.close()
            self._shelf.close()
        finally:
            error = self._thread.death or str(ClosedError())
            self._rounds.end(error)
            for item in (*self._items, *self._intake.end()):
                self._abandon(item, error)
            self._is_over = True
            self._let_go()

    def _abandon(self, item: Submission | FlushRequest, error: str) -> None:
        """Drop what was never taken; whether what the last round was at is kept, nobody knows."""
        if isinstance(item, FlushRequest) and not item.done.is_open:
            item.settle(error)
        elif isinstance(item, Submission) and item not in self._items:
            self._rounds.drop(item, error)
        item.done.open()

    def _jittered(self) -> float:
        """Seconds to the next tick, uniform in [0.25, 0.75) of pack_seconds: no fixed beat shows."""
        return self._pack_seconds * (0.25 + 0.5 * float(self._words.words64((1,))[0]) / 2**64)
