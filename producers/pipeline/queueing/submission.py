"""What a producer's threads pass to each other: randomized reports, and requests to send them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from deniable.producers.concurrency.synchronization import Latch
from deniable.producers.metrics.counters import Receipt
from deniable.producers.responders.batch import Deferred
from deniable.producers.storage.input_progress import InputProgress

STORED = Receipt(stored=1)
#: Takes reports in wire format, uint8 (n, bytes of a report).
SeenReports = Callable[[NDArray[np.uint8]], None]


@dataclass
class PendingReceipt:
    """The future receipt of queued reports, for which their caller waits.

    Parameters
    ----------
    reports : their number.
    """

    reports: int
    done: Latch = field(default_factory=Latch, init=False)
    _settled: Receipt | None = field(default=None, init=False)

    @property
    def receipt(self) -> Receipt:
        """Outcome of the reports; until they are settled they are pending."""
        return self._settled or Receipt(pending=self.reports)

    def settle(self, receipt: Receipt, calls: NDArray[np.int64] | None = None) -> None:
        """Set the receipt and wake the caller; `calls` as in `SharedReceipt`."""
        self._settled = receipt
        self.done.open()


class SharedReceipt(PendingReceipt):
    """The future receipts of several calls whose reports are stored or dropped together.

    Parameters
    ----------
    calls : pending receipt of each.
    """

    def __init__(self, calls: Sequence[PendingReceipt]) -> None:
        super().__init__(sum(each.reports for each in calls))
        self._calls = calls

    def settle(self, receipt: Receipt, calls: NDArray[np.int64] | None = None) -> None:
        """Settle all calls: dropped, or with the stored reports, whose calls are given, int64 (n,)."""
        kept = np.bincount([] if calls is None else calls, minlength=len(self._calls)).tolist()
        for call, stored in zip(self._calls, kept, strict=True):
            if receipt.dropped:
                call.settle(Receipt(dropped=call.reports, why_dropped=receipt.why_dropped))
            else:
                call.settle(STORED if stored == call.reports == 1 else Receipt(stored, call.reports - stored))
        super().settle(receipt)


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
    calls : int64 (n,), index of each report's call in a SharedReceipt; None if all are of one call.
    deferred : what makes the reports once their clients are charged; until then, `rows` are zeros. None if
        the rows are the reports.
    seen : is called with `rows` when they are stored, before the receipt is settled. It must neither fail nor
        wait, and what it does may depend on nothing else.
    """

    collection: str
    windows: NDArray[np.int64]
    cohorts: NDArray[np.uint16]
    rows: NDArray[np.uint8]
    clients: NDArray[np.uint8] | None
    pending_receipt: PendingReceipt
    progress: tuple[str, InputProgress] | None = None
    refused: Mapping[str, int] = field(default_factory=dict)
    calls: NDArray[np.int64] | None = None
    deferred: Deferred | None = None
    seen: SeenReports | None = None

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        clients = 0 if self.clients is None else self.clients.nbytes
        deferred = 0 if self.deferred is None else self.deferred.nbytes
        return self.windows.nbytes + self.cohorts.nbytes + self.rows.nbytes + clients + deferred

    @property
    def has_clients(self) -> bool:
        """Whether clients are charged for these reports."""
        return self.clients is not None

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
            calls=None if self.calls is None else self.calls[chosen],
            deferred=None if self.deferred is None else self.deferred.only(chosen),
        )

    def made(self) -> "Submission":
        """Return it with its deferred reports made."""
        return self if self.deferred is None else replace(self, rows=self.deferred.reports(), deferred=None)


@dataclass(frozen=True, eq=False)
class SingleReport:
    """One checked value, not yet randomized: the thread that takes it randomizes all that it finds together.

    Parameters
    ----------
    collection : its name.
    value : true value.
    client : None if the event is from a different client.
    time : unix seconds of the event.
    pending_receipt : settled when the report is stored, refused or dropped.
    """

    collection: str
    value: str | float = field(repr=False)
    client: str | None = field(repr=False)
    time: float = field(repr=False)
    pending_receipt: PendingReceipt

    size = 128

    @property
    def has_clients(self) -> bool:
        """Whether a client is charged for it."""
        return self.client is not None

    @property
    def done(self) -> Latch:
        """As of a Submission."""
        return self.pending_receipt.done


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
