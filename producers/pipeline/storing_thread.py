"""The one thread that stores and sends what callers submit."""

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
from producers.transport.agreement import Agreement
from producers.transport.connection import connect
from producers.transport.sender import Delivery


class StoringThread:
    """Runs store transactions from `start` to `close`. Thread-safe; belongs to the process that created it.

    Parameters
    ----------
    config : of the producer.
    secret : with which the store was created.
    words : source of pack ids, shuffling and ticks.
    clock : unix and steady seconds.
    totals : counts the outcomes of reports.

    Attributes
    ----------
    agreement : of the collections with the workers' parameters.
    """

    def __init__(
        self, config: ProducerConfig, secret: Secret, words: Words, clock: Clock, totals: ReportTotals
    ) -> None:
        self._pack_seconds = config.pack_seconds
        self._timing = config.timing
        self._words = words
        self._clock = clock
        self._queue = SubmissionQueue()
        where = (config.cluster, config.topic, config.partitions, config.connect_seconds)
        collections = {each.collection.fingerprint: each.collection for each in config.allowances}
        self.agreement = Agreement(collections.values(), config.collections_topic, config.timing)
        self._delivery = Delivery(
            partial(connect, *where),
            config.topic,
            self._queue.wake,
            totals.sendable,
            config.timing,
            self.agreement,
        )
        dispatch = Dispatch(self._delivery, config.partitions, collections, totals)
        self._handle = StoreHandle(config, secret, clock)
        self._transactions = StoreTransactions(config, self._handle, words, clock, totals, dispatch)
        self._items: Sequence[Submission | FlushRequest] = ()
        self._pauses: deque[Pause] = deque()
        self._is_computing = False
        self._is_ending = False
        self._is_over = False
        self._thread = Background("storing", self._run, self._end)

    def open(self) -> None:
        """Open the store before `start`. Otherwise the thread opens it, and drops reports while it cannot.

        Raises
        ------
        StoreError if it cannot be opened; SecretError if it was created with another secret.
        """
        until = self._clock.steady() + self._timing.busy
        try:
            while True:
                try:
                    self._handle.opened()
                    return
                except BusyError:
                    if self._clock.steady() >= until:
                        raise
        except BaseException:
            self._handle.close()
            raise

    def start(self) -> None:
        """Start both threads unless they run. Does not wait.

        Raises
        ------
        DeliveryError if a thread cannot be started; the next call tries again.
        """
        self._thread.start()
        self._delivery.start()

    def abandon(self) -> None:
        """Release store and lane after `start` failed."""
        if self.is_begun:
            self.close()
        else:
            self._handle.close()

    @property
    def is_begun(self) -> bool:
        """Whether it was started."""
        return self._thread.is_begun

    @property
    def trouble(self) -> str | None:
        """Why reports are not stored, or packs not acknowledged; None while all is well."""
        return self._thread.death or (str(self._delivery.trouble) if self._delivery.trouble else None)

    def put(self, item: Submission | FlushRequest, seconds: float) -> bool:
        """Queue an item; False if there is no room within `seconds`.

        Raises
        ------
        DeliveryError if the thread died; ClosedError after `close`.
        """
        try:
            return self._queue.put(item, seconds)
        except ClosedError:
            self.check()
            raise

    def drop(self, submission: Submission, why: str) -> None:
        """Drop a submission that was not queued. Any thread may call it."""
        self._transactions.drop(submission, why)

    def check(self) -> None:
        """Raise DeliveryError if the thread died."""
        if self._thread.death is not None:
            raise DeliveryError(self._thread.death)

    def pause(self) -> Pause:
        """Ask the thread to pause between two transactions, with the store closed."""
        pause = Pause()
        self._pauses.append(pause)
        if self._is_over or self._is_computing or not self.is_begun:
            pause.reached.open()
        else:
            self._queue.wake()
        return pause

    def close(self) -> None:
        """Store what is queued, refuse everything else, disconnect.

        Raises
        ------
        DeliveryError if that takes longer than `timing.end` seconds.
        """
        self._queue.close()
        self._is_ending = True
        self._queue.wake()
        if not self._thread.join(self._timing.end):
            raise DeliveryError(f"the storing thread did not end within {self._timing.end:g} s")

    def _run(self) -> None:
        tick = self._clock.steady() + self._tick_seconds()
        while not self._is_ending:
            items = self._queue.take(tick - self._clock.steady())
            is_ticking = self._clock.steady() >= tick
            self._run_transaction(items, ticking=is_ticking)
            if is_ticking:
                tick = self._clock.steady() + self._tick_seconds()
        self._delivery.close()
        self._run_transaction(self._queue.end(), ticking=True)

    def _run_transaction(self, items: Sequence[Submission | FlushRequest], *, ticking: bool) -> None:
        """Run one transaction; repeat it until its limits are known and the store is free.

        On closing, another process may hold the store for `timing.busy` seconds at most.
        """
        self._items = items
        submissions = [item for item in items if isinstance(item, Submission)]
        flushes = [item for item in items if isinstance(item, FlushRequest)]
        until = float("inf")
        while True:
            self._serve_pauses()
            try:
                return self._transactions.run(submissions, flushes, ticking=ticking)
            except UnknownLimitError as unknown:
                self._compute_limit(unknown)
            except BusyError as error:
                if self._is_ending:
                    until = min(until, self._clock.steady() + self._timing.busy)
                if self._clock.steady() >= until:
                    return self._transactions.lose(submissions, flushes, error)

    def _serve_pauses(self) -> None:
        """Pause while anybody asks for it."""
        while self._pauses:
            self._handle.suspend()
            self._pauses[0].reached.open()
            self._pauses[0].over.wait(float("inf"))
            self._pauses.popleft()

    def _compute_limit(self, unknown: UnknownLimitError) -> None:
        """Compute a limit with the store closed, so that neither other processes nor forks wait."""
        self._handle.suspend()
        self._is_computing = True
        self._release_forks()
        unknown.find()
        self._is_computing = False  # pauses requested before this are served by `_serve_pauses`

    def _release_forks(self) -> None:
        """Let waiting forks proceed."""
        for pause in tuple(self._pauses):
            pause.reached.open()

    def _end(self) -> None:
        """Close everything and release all who wait for this thread, however it ended."""
        try:
            self._delivery.close()
            self._handle.close()
        finally:
            error = self._thread.death or str(ClosedError())
            self._transactions.end(error)
            for item in (*self._items, *self._queue.end()):
                self._abandon(item, error)
            self._is_over = True
            self._release_forks()

    def _abandon(self, item: Submission | FlushRequest, error: str) -> None:
        """Drop an item that was never taken. Whether items of the last transaction were stored is unknown."""
        if isinstance(item, FlushRequest) and not item.done.is_open:
            item.settle(error)
        elif isinstance(item, Submission) and item not in self._items:
            self._transactions.drop(item, error)
        item.done.open()

    def _tick_seconds(self) -> float:
        """Seconds to the next tick: uniform in [0.25, 0.75) of pack_seconds, so no fixed rhythm shows."""
        return self._pack_seconds * (0.25 + 0.5 * float(self._words.words64((1,))[0]) / 2**64)
