"""The bounded queue between the threads that report and the thread that stores."""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from producers.concurrency.synchronization import AtomicSum, Latch, WakeUp
from producers.errors import ClosedError
from producers.metrics.counters import Receipt
from producers.storage.input_progress import InputProgress

QUEUE_BYTES = 16 * 2**20


@dataclass
class PendingReceipt:
    """The future receipt of queued reports, for which their caller waits.

    Parameters
    ----------
    reports : their number.
    receipt : their outcome; until `done` is open they are pending.
    """

    reports: int
    receipt: Receipt = field(init=False)
    done: Latch = field(default_factory=Latch, init=False)

    def __post_init__(self) -> None:
        self.receipt = Receipt(pending=self.reports)

    def settle(self, receipt: Receipt) -> None:
        """Set the receipt and wake the caller."""
        self.receipt = receipt
        self.done.open()


@dataclass(frozen=True, eq=False)
class Submission:
    """Randomized reports of one collection that are stored or dropped together, except refused ones.

    Parameters
    ----------
    collection : its name.
    windows : int64 (n,), window starts, unix seconds.
    cohorts : uint16 (n,).
    rows : uint8 (n, bytes of a report).
    clients : uint8 (n, CLIENT_KEY_BYTES), key of each report's client; None: each is from a different client.
    pending_receipt : settled when the reports are stored or dropped.
    progress : path of an input and how far it was read, stored in the same transaction.
    refused : reports of the call that were refused and are not among these, by reason.
    """

    collection: str
    windows: NDArray[np.int64]
    cohorts: NDArray[np.uint16]
    rows: NDArray[np.uint8]
    clients: NDArray[np.uint8] | None
    pending_receipt: PendingReceipt
    progress: tuple[str, InputProgress] | None = None
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        clients = 0 if self.clients is None else self.clients.nbytes
        return self.windows.nbytes + self.cohorts.nbytes + self.rows.nbytes + clients

    @property
    def done(self) -> Latch:
        """Open once the receipt is settled, or never can be because the storing thread died."""
        return self.pending_receipt.done

    def only(self, chosen: NDArray[np.bool_]) -> "Submission":
        """Return the chosen reports, bool (n,), with the same pending receipt."""
        if chosen.all():
            return self
        return replace(
            self,
            windows=self.windows[chosen],
            cohorts=self.cohorts[chosen],
            rows=self.rows[chosen],
            clients=None if self.clients is None else self.clients[chosen],
        )


@dataclass(eq=False)
class FlushRequest:
    """A request to pack and send everything queued before it.

    Parameters
    ----------
    until : number of the last pack to be acknowledged; 0 as long as it is not known.
    error : why not all can be acknowledged, once `done` is open; None if all is.
    """

    until: int = field(default=0, init=False)
    error: str | None = field(default=None, init=False)
    done: Latch = field(default_factory=Latch, init=False)

    size = 0

    def settle(self, error: str | None = None) -> None:
        """Settle: everything is acknowledged, or `error` says why not."""
        self.error = error
        self.done.open()


class SubmissionQueue:
    """Submissions and flush requests in order, for one consuming thread. Lock-free.

    Holds at most QUEUE_BYTES, or more if several threads found room at the same moment.
    """

    def __init__(self) -> None:
        self._items: deque[Submission | FlushRequest] = deque()
        self._bytes = AtomicSum()
        self._wake_up = WakeUp()
        self._waiting: deque[Latch] = deque()
        self._is_closed = False
        self._is_over = False

    def put(self, item: Submission | FlushRequest, seconds: float) -> bool:
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
                return False
        if self._is_closed:
            raise ClosedError
        self._bytes.add(item.size)
        self._items.append(item)
        self._wake_up.notify()
        if self._is_over:
            self._take_back(item)
        return True

    def take(self, seconds: float) -> list[Submission | FlushRequest]:
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

    def end(self) -> list[Submission | FlushRequest]:
        """Close; return what is still queued. Nobody calls `take` again."""
        self._is_over = True
        self.close()
        return self._taken()

    def _taken(self) -> list[Submission | FlushRequest]:
        items: list[Submission | FlushRequest] = []
        with suppress(IndexError):  # one was taken back meanwhile
            for _ in range(len(self._items)):
                items.append(self._items.popleft())
        self._bytes.add(-sum(item.size for item in items))
        self._release_waiting()
        return items

    def _take_back(self, item: Submission | FlushRequest) -> None:
        """Refuse an item that came too late for `end`, unless `end` returned it."""
        with suppress(ValueError):  # `end` returned it
            self._items.remove(item)
            raise ClosedError

    def _release_waiting(self) -> None:
        with suppress(IndexError):
            while True:
                self._waiting.popleft().open()

    def _has_room(self, item: Submission | FlushRequest) -> bool:
        return not self._items or self._bytes.value + item.size <= QUEUE_BYTES
