"""The bounded queue between the threads that report and the thread that stores."""

import time
from collections import deque
from contextlib import suppress

from deniable.producers.concurrency.synchronization import AtomicSum, Latch, WakeUp
from deniable.producers.errors import ClosedError
from deniable.producers.pipeline.queueing.submission import FlushRequest, SingleReport, Submission

QUEUE_BYTES = 16 * 2**20


class SubmissionQueue:
    """Submissions and flush requests in order, for one consuming thread. Lock-free.

    Holds at most QUEUE_BYTES, or more if several threads found room at the same moment.
    """

    def __init__(self) -> None:
        self._items: deque[Submission | SingleReport | FlushRequest] = deque()
        self._bytes = AtomicSum()
        self._wake_up = WakeUp()
        self._waiting: deque[Latch] = deque()
        self._is_closed = False
        self._is_over = False

    def put(self, item: Submission | SingleReport | FlushRequest, seconds: float) -> bool:
        """Queue an item; False if there is no room within `seconds`. An empty queue has room for any item.

        Raises
        ------
        ClosedError after `close`.
        """
        deadline = time.monotonic() + seconds
        while not (self._is_closed or self._has_room(item)):
            freed = Latch()
            self._waiting.append(freed)
            # Ask again: room may have become free before `freed` was in the list.
            if not self._has_room(item) and not freed.wait(deadline - time.monotonic()):
                with suppress(ValueError):
                    self._waiting.remove(freed)
                return False
        if self._is_closed:
            raise ClosedError
        self._bytes.add(item.size)
        self._items.append(item)
        self._wake_up.notify()
        if self._is_over:
            self._take_back(item)
        return True

    def take(self, seconds: float) -> list[Submission | SingleReport | FlushRequest]:
        """Return everything queued; wait for an item, for `wake`, or `seconds`."""
        self._wake_up.wait(seconds)
        return self._taken()

    def rest(self, seconds: float) -> None:
        """Wait for a new item, for `wake`, or `seconds`, and take nothing."""
        self._wake_up.wait(seconds)

    def wake(self) -> None:
        """Make `take` return."""
        self._wake_up.notify()

    def close(self) -> None:
        """Refuse further items."""
        self._is_closed = True
        self._release_waiting()

    def end(self) -> list[Submission | SingleReport | FlushRequest]:
        """Close; return what is still queued. Nobody calls `take` again."""
        self._is_over = True
        self.close()
        return self._taken()

    def _taken(self) -> list[Submission | SingleReport | FlushRequest]:
        items: list[Submission | SingleReport | FlushRequest] = []
        with suppress(IndexError):  # one was taken back meanwhile
            for _ in range(len(self._items)):
                items.append(self._items.popleft())
        self._bytes.add(-sum(item.size for item in items))
        self._release_waiting()
        return items

    def _take_back(self, item: Submission | SingleReport | FlushRequest) -> None:
        """Refuse an item that came too late for `end`, unless `end` returned it."""
        with suppress(ValueError):  # `end` returned it
            self._items.remove(item)
            raise ClosedError

    def _release_waiting(self) -> None:
        with suppress(IndexError):
            while True:
                self._waiting.popleft().open()

    def _has_room(self, item: Submission | SingleReport | FlushRequest) -> bool:
        return not self._items or self._bytes.value + item.size <= QUEUE_BYTES
