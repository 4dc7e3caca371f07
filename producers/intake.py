"""The bounded queue between the threads that report and the thread that stores."""

import threading
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from producers.counters import Receipt
from producers.progress import Progress

QUEUE_BYTES = 16 * 2**20


@dataclass
class Ticket:
    """What a caller waits with, after the reports themselves are gone.

    Parameters
    ----------
    reports : how many.
    receipt : what became of them; until `done` is set they are pending.
    """

    reports: int
    receipt: Receipt = field(init=False)
    done: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        self.receipt = Receipt(pending=self.reports)

    def settle(self, receipt: Receipt) -> None:
        """Say what became of them."""
        self.receipt = receipt
        self.done.set()


@dataclass(frozen=True)
class Submission:
    """Randomized reports of one collection that are stored or dropped together, but for refused ones.

    Parameters
    ----------
    collection : its name.
    windows : int64 (n,), window starts, unix seconds.
    cohorts : uint16 (n,).
    rows : uint8 (n, bytes of a report).
    clients : uint8 (n, CLIENT_KEY_BYTES), key of each report's client; None: each is a client of its own.
    ticket : to be settled.
    progress : path of an input and how far it was read, noted in the transaction that keeps the reports.
    """

    collection: str
    windows: NDArray[np.int64]
    cohorts: NDArray[np.uint16]
    rows: NDArray[np.uint8]
    clients: NDArray[np.uint8] | None
    ticket: Ticket
    progress: tuple[str, Progress] | None = None

    @property
    def size(self) -> int:
        """Bytes it holds, about."""
        clients = 0 if self.clients is None else self.clients.nbytes
        return self.windows.nbytes + self.cohorts.nbytes + self.rows.nbytes + clients


@dataclass
class Seal:
    """Asks for all that was queued before it to be packed and sent.

    Parameters
    ----------
    until : number of the last pack to be acknowledged; 0 as long as it is not known.
    error : why it cannot be had, once `done` is set; None when all is acknowledged.
    """

    until: int = field(default=0, init=False)
    error: str | None = field(default=None, init=False)
    done: threading.Event = field(default_factory=threading.Event, init=False)

    size = 0

    def settle(self, error: str | None = None) -> None:
        """Say that all is acknowledged, or why not."""
        self.error = error
        self.done.set()


class ClosedError(RuntimeError):
    """The producer takes nothing more."""

    def __init__(self) -> None:
        super().__init__("the producer is closed")


class Intake:
    """Submissions and seals in the order of their coming, QUEUE_BYTES at most; thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._items: list[Submission | Seal] = []
        self._bytes = 0
        self._woken = False
        self._closed = False

    def put(self, item: Submission | Seal, seconds: float) -> bool:
        """Queue it; False when there was no room within so many seconds. An empty queue has room for any.

        Raises
        ------
        ClosedError after `close`.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._closed or self._has_room(item), seconds):
                return False
            if self._closed:
                raise ClosedError
            self._items.append(item)
            self._bytes += item.size
            self._changed.notify_all()
        return True

    def take(self, seconds: float) -> list[Submission | Seal]:
        """All that is queued; waits for something, for `wake` or for so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._woken, seconds)
            items, self._items, self._bytes, self._woken = self._items, [], 0, False
            self._changed.notify_all()
        return items

    def wake(self) -> None:
        """Let `take` return."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def close(self) -> None:
        """Take nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _has_room(self, item: Submission | Seal) -> bool:
        return not self._items or self._bytes + item.size <= QUEUE_BYTES
