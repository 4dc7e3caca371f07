"""A thread that handles what is queued for it, and pauses while the process forks."""

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from deniable.producers.concurrency.background_thread import Background
from deniable.producers.concurrency.clock import Clock
from deniable.producers.concurrency.fork_hooks import Pause
from deniable.producers.errors import ClosedError, DeliveryError
from deniable.producers.pipeline.queueing.submission import FlushRequest, SingleReport, Submission
from deniable.producers.pipeline.queueing.submission_queue import SubmissionQueue

ENDING_SECONDS = 0.1
#: Time for callers that were answered together to come back together: their next reports share one commit.
SHARING_SECONDS = 1e-4

Item = Submission | FlushRequest
Reports = Submission | SingleReport
Queued = Reports | FlushRequest


class QueueThread(ABC):
    """Handles items from `start` to `end`. Thread-safe; belongs to the process that created it.

    Rule: `handle` calls `serve_pauses` before each attempt.

    Parameters
    ----------
    name : for messages.
    clock : unix and steady seconds.
    randomized : makes submissions of single reports, which are randomized where they are taken.

    Attributes
    ----------
    is_ending : whether `end` was called.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        randomized: Callable[[Sequence[SingleReport]], Sequence[Submission]],
    ) -> None:
        self.is_ending = False
        self._name = name
        self._clock = clock
        self._randomized = randomized
        self._queue = SubmissionQueue()
        self._items: Sequence[Queued] = ()
        self._pauses: deque[Pause] = deque()
        self._is_computing = False
        self._is_over = False
        self._thread = Background(name, self._run, self._finish)

    @abstractmethod
    def handle(self, items: Sequence[Item], *, ticking: bool, last: bool) -> None:
        """Handle items in the order they came; `last` if none will follow."""

    @abstractmethod
    def tick_seconds(self) -> float:
        """Return the seconds to the next call that is `ticking`, even without items."""

    @abstractmethod
    def suspend(self) -> None:
        """Close what a forked child must not have open."""

    @abstractmethod
    def release(self, error: str) -> None:
        """Close everything: the thread ends."""

    @abstractmethod
    def drop(self, submission: Reports, why: str) -> None:
        """Count a submission as dropped and settle it. Any thread may call it."""

    def start(self) -> None:
        """Start the thread unless it runs; does not wait. Raises DeliveryError if it cannot be started."""
        self._thread.start()

    @property
    def is_begun(self) -> bool:
        """Whether it was started."""
        return self._thread.is_begun

    @property
    def death(self) -> str | None:
        """What it died of; None if it has not."""
        return self._thread.death

    def put(self, item: Queued, seconds: float) -> bool:
        """Queue an item; False if there is no room within `seconds`.

        Raises
        ------
        DeliveryError if the thread died; ClosedError after `end`.
        """
        try:
            return self._queue.put(item, seconds)
        except ClosedError:
            self.check()
            raise

    def wake(self) -> None:
        """Make the thread look what there is to do. Any thread may call it."""
        self._queue.wake()

    def check(self) -> None:
        """Raise DeliveryError if the thread died."""
        if self.death is not None:
            raise DeliveryError(self.death)

    def pause(self) -> Pause:
        """Ask the thread to pause between two attempts, with nothing open."""
        pause = Pause()
        self._pauses.append(pause)
        if self._is_over or self._is_computing or not self.is_begun:
            pause.reached.open()
        else:
            self._queue.wake()
        return pause

    def end(self, seconds: float) -> None:
        """Handle what is queued, refuse everything else, end.

        Raises
        ------
        DeliveryError if that takes longer than `seconds`.
        """
        self._queue.close()
        self.is_ending = True
        self._queue.wake()
        if not self._thread.join(seconds):
            raise DeliveryError(f"the {self._name} thread did not end within {seconds:g} s")

    def rest(self, seconds: float) -> None:
        """Wait between two attempts; less if somebody waits for a pause or the end."""
        until = self._clock.steady() + seconds
        while not (self._pauses or self.is_ending) and (left := until - self._clock.steady()) > 0:
            self._queue.rest(left)
        if self.is_ending:
            time.sleep(max(0.0, min(ENDING_SECONDS, until - self._clock.steady())))
        self._queue.wake()  # `rest` has taken the notices of new items

    def serve_pauses(self) -> None:
        """Pause while anybody asks for it. Only the thread itself may call it."""
        while self._pauses:
            self.suspend()
            self._pauses[0].reached.open()
            self._pauses[0].over.wait(float("inf"))
            self._pauses.popleft()

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute for seconds within the block, suspended, so that neither other processes nor forks wait."""
        self.suspend()
        self._is_computing = True
        self._release_forks()
        yield
        self._is_computing = False  # pauses requested before this are served by `serve_pauses`

    def _run(self) -> None:
        tick = self._clock.steady() + self.tick_seconds()
        while not self.is_ending:
            self._items = self._queue.take(tick - self._clock.steady())
            is_ticking = self._clock.steady() >= tick
            self.handle(self._without_singles(), ticking=is_ticking, last=False)
            shared, self._items = len(self._items) > 1, ()  # forgets the true values of single reports
            if shared:
                time.sleep(SHARING_SECONDS)
            if is_ticking:
                tick = self._clock.steady() + self.tick_seconds()
        self._items = self._queue.end()
        self.handle(self._without_singles(), ticking=True, last=True)

    def _without_singles(self) -> Sequence[Item]:
        singles = [item for item in self._items if isinstance(item, SingleReport)]
        if not singles:
            return cast("Sequence[Item]", self._items)
        others: list[Item] = [item for item in self._items if not isinstance(item, SingleReport)]
        return [*self._randomized(singles), *others]

    def _release_forks(self) -> None:
        """Let waiting forks proceed."""
        for pause in tuple(self._pauses):
            pause.reached.open()

    def _finish(self) -> None:
        """Close everything and release all who wait for this thread, however it ended."""
        error = self.death or str(ClosedError())
        try:
            self.release(error)
        finally:
            for item in (*self._items, *self._queue.end()):
                self._abandon(item, error)
            self._is_over = True
            self._release_forks()

    def _abandon(self, item: Queued, error: str) -> None:
        """Drop an item that was never taken. What happened to those taken last is unknown."""
        if isinstance(item, FlushRequest) and not item.done.is_open:
            item.settle(error)
        elif isinstance(item, Reports) and item not in self._items:
            self.drop(item, error)
        item.done.open()
