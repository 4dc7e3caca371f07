"""Outcomes of reports, for each call and in total. Nothing here depends on a true value."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from deniable.producers.concurrency.synchronization import AtomicSum

Name = TypeVar("Name")

UNKNOWN = ""  # no collection has this name


@dataclass(frozen=True)
class Receipt:
    """The outcomes of the values of one call; the numbers sum to the number of values.

    Parameters
    ----------
    stored : durable; they will reach the broker whatever is killed.
    refused : over a limit of their clients, or in windows that are over or far ahead; never sent.
    dropped : because the queue or the outbox was full, or because the store failed; never sent.
    pending : undecided when the caller's time ran out; counted as one of the above later. If the storing
        thread dies while it handles them, it is unknown whether they are stored.
    why_dropped : a reason, if any were dropped; else empty.
    """

    stored: int = 0
    refused: int = 0
    dropped: int = 0
    pending: int = 0
    why_dropped: str = field(default="", compare=False, repr=False)

    def __add__(self, other: "Receipt") -> "Receipt":
        return Receipt(
            self.stored + other.stored,
            self.refused + other.refused,
            self.dropped + other.dropped,
            self.pending + other.pending,
            self.why_dropped or other.why_dropped,
        )


@dataclass(frozen=True)
class Backlog:
    """Packs that wait for acknowledgement.

    Parameters
    ----------
    packs, bytes : in the outbox.
    seconds : age of the oldest of them.
    """

    packs: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Counters:
    """Totals since the start of this process; reports by name of their collection.

    Packs kept by other producers of the folder count too; "" is the name of collections unknown to this one.

    Parameters
    ----------
    stored, dropped : reports, as in `Receipt`.
    refused : reports by collection and reason.
    acknowledged : reports that the broker has appended, or the edge has taken.
    expired : those of them appended after the end and grace of their window, so never counted. An edge gives
        no append time and rejects late reports itself: then none.
    packs, bytes : acknowledged.
    backlog : of the outbox.
    unsendable : packs in the outbox that are damaged, of a later version, larger than the broker takes, or
        made for another destination.
    budget_used : by collection with a budget, the largest ratio of epsilon spent to budget over its clients.
    is_budget_store_away : whether reports of clients wait, or are dropped, because they cannot be charged.
    rejected : stored reports that the edge rejected for good, by collection and reason; never counted.
    """

    stored: Mapping[str, int]
    dropped: Mapping[str, int]
    refused: Mapping[tuple[str, str], int]
    acknowledged: Mapping[str, int]
    expired: Mapping[str, int]
    packs: int
    bytes: int
    backlog: Backlog
    unsendable: int = 0
    budget_used: Mapping[str, float] = field(default_factory=dict)
    is_budget_store_away: bool = False
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)


class ReportTotals:
    """Running totals. The storing thread records outcomes; any thread may record drops and read totals.

    Parameters
    ----------
    collections : names.
    """

    def __init__(self, collections: Iterable[str]) -> None:
        self._stored: Counter[str] = Counter()
        self._dropped = {name: AtomicSum() for name in collections}
        self._refused: Counter[tuple[str, str]] = Counter()
        self._acknowledged: Counter[str] = Counter()
        self._expired: Counter[str] = Counter()
        self._rejected: Counter[tuple[str, str]] = Counter()
        self._packs = 0
        self._bytes = 0
        self._backlog = Backlog()
        self._unsendable = 0
        self._budget_used: Mapping[str, float] = {}
        self._is_away = False
        self._arrived = 0  # packs acknowledged or rejected since the backlog was read
        self._moved_at = time.monotonic()  # when one last was, or none waited

    def settled(self, collection: str, stored: int, refused: Mapping[str, int]) -> None:
        """Count stored reports, and refused ones by reason."""
        self._stored[collection] += stored
        self._refused.update({(collection, reason): count for reason, count in refused.items()})

    def drop(self, collection: str, reports: int) -> None:
        """Count reports that were dropped. Any thread may call this."""
        self._dropped[collection].add(reports)

    def acknowledged(self, collection: str | None, reports: int, size: int, *, expired: bool) -> None:
        """Count a pack of `size` bytes that the broker has appended; None: its collection is unknown."""
        name = collection or UNKNOWN
        self._acknowledged[name] += reports
        self._expired[name] += reports if expired else 0
        self._packs += 1
        self._bytes += size
        self._arrived += 1
        self._moved_at = time.monotonic()

    def rejected(self, collection: str | None, reports: int, reason: str) -> None:
        """Count a pack that the edge has rejected for good; None: its collection is unknown."""
        self._rejected[collection or UNKNOWN, reason] += reports
        self._arrived += 1
        self._moved_at = time.monotonic()

    def left(self, backlog: Backlog) -> None:
        """Record the backlog. If packs begin to wait now, their waiting time starts."""
        none_waited = not self.sendable()
        self._backlog, self._arrived = backlog, 0
        if none_waited or not self.sendable():
            self._moved_at = time.monotonic()

    def unsendable(self, packs: int) -> None:
        """Record the number of packs in the outbox that cannot be sent."""
        self._unsendable = packs

    def spent(self, budget_used: Mapping[str, float]) -> None:
        """Record the largest spending of a client by collection, see `Counters`."""
        self._budget_used = budget_used

    def away(self, *, is_away: bool) -> None:
        """Record whether the budget store is away."""
        self._is_away = is_away

    def sendable(self) -> int:
        """Return the number of waiting packs: the last backlog less packs that had an answer since."""
        return max(0, self._backlog.packs - self._unsendable - self._arrived)

    def standstill_seconds(self) -> float:
        """Return how long packs have waited without any acknowledgement; 0 while none waits."""
        return time.monotonic() - self._moved_at if self.sendable() else 0.0

    def dropped(self) -> int:
        """Return the number of dropped reports."""
        return sum(total.value for total in self._dropped.values())

    def counters(self) -> Counters:
        """Return the present totals. Any thread may call this."""
        # Copying a dict is one step of the interpreter. Totals that are written later are read first, so no
        # report appears to be acknowledged but not stored.
        expired, acknowledged = dict(self._expired), dict(self._acknowledged)
        rejected = dict(self._rejected)
        return Counters(
            stored=_without_zeros(dict(self._stored)),
            dropped=_without_zeros({name: total.value for name, total in self._dropped.items()}),
            refused=_without_zeros(dict(self._refused)),
            acknowledged=_without_zeros(acknowledged),
            expired=_without_zeros(expired),
            packs=self._packs,
            bytes=self._bytes,
            backlog=self._backlog,
            unsendable=self._unsendable,
            budget_used=self._budget_used,
            is_budget_store_away=self._is_away,
            rejected=_without_zeros(rejected),
        )


def _without_zeros(counts: Mapping[Name, int]) -> Mapping[Name, int]:
    return {name: count for name, count in counts.items() if count}
