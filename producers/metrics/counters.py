"""What became of reports: told to the caller at once, and in totals. Nothing here depends on a true value."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from producers.concurrency.synchronization import AtomicSum

Name = TypeVar("Name")


@dataclass(frozen=True)
class Receipt:
    """What became of the values of one call; the numbers sum to how many they were.

    Parameters
    ----------
    stored : durable; they will reach the broker whatever is killed.
    refused : over a limit of their clients, or of windows that are over or far in the future; never sent.
    dropped : for want of room in the queue or the outbox, or because the store failed; never sent.
    pending : not decided when the time of the caller had run out; they count as one of the above later. Only
        of those that the storing thread was at when it died nobody knows whether they are stored.
    why_dropped : a reason of those dropped; empty where there are none.
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
    """What waits for acknowledgement, and how much of the budgets is used.

    Parameters
    ----------
    packs, bytes : in the outbox.
    seconds : age of the oldest of them.
    budget_used : by collection with a budget, the largest ratio of epsilon spent to budget over its clients.
    """

    packs: int = 0
    bytes: int = 0
    seconds: float = 0.0
    budget_used: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Counters:
    """Totals since the start of this process; reports by name of their collection.

    Parameters
    ----------
    stored, dropped : reports, as of `Receipt`.
    refused : reports by collection and reason.
    acknowledged : reports that the broker has appended.
    expired : those of them whose append time lies past the end and grace of their window: counted by nobody.
    packs, bytes : acknowledged.
    backlog : what is left.
    unsendable : packs in the outbox that are damaged, of a later version, or larger than the broker takes.
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


class ReportTotals:
    """Counts up. The storing thread tells it what it did; any thread may tell of drops, and ask.

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
        self._packs = 0
        self._bytes = 0
        self._backlog = Backlog()
        self._unsendable = 0
        self._arrived = 0  # packs acknowledged since the backlog was looked at
        self._moved_at = time.monotonic()  # when a pack was last acknowledged, or none waited

    def settled(self, collection: str, stored: int, refused: Mapping[str, int]) -> None:
        """Count reports that were stored, and refused, those by reason."""
        self._stored[collection] += stored
        self._refused.update({(collection, reason): count for reason, count in refused.items()})

    def drop(self, collection: str, reports: int) -> None:
        """Count reports that were dropped. Any thread may call this."""
        self._dropped[collection].add(reports)

    def acknowledged(self, collection: str | None, reports: int, size: int, *, expired: bool) -> None:
        """Count a pack of `size` bytes that the broker has appended; None: its collection is not ours."""
        if collection is not None:
            self._acknowledged[collection] += reports
            self._expired[collection] += reports if expired else 0
        self._packs += 1
        self._bytes += size
        self._arrived += 1
        self._moved_at = time.monotonic()

    def left(self, backlog: Backlog) -> None:
        """Note what is left. What begins to wait now has not waited before."""
        none_waited = not self.sendable()
        self._backlog, self._arrived = backlog, 0
        if none_waited or not self.sendable():
            self._moved_at = time.monotonic()

    def unsendable(self, packs: int) -> None:
        """Note how many packs in the outbox cannot be sent."""
        self._unsendable = packs

    def sendable(self) -> int:
        """Packs that wait, as far as is known: of those that were left, those that have not arrived since."""
        return max(0, self._backlog.packs - self._unsendable - self._arrived)

    def standstill_seconds(self) -> float:
        """For how long packs have waited and none was acknowledged; 0 while none waits."""
        return time.monotonic() - self._moved_at if self.sendable() else 0.0

    def dropped(self) -> int:
        """Reports dropped so far."""
        return sum(total.value for total in self._dropped.values())

    def counters(self) -> Counters:
        """Totals at this moment. Any thread may call this."""
        # Copying a dict is one step of the interpreter, and what is written later is read first: nothing
        # seems to be acknowledged that was not stored.
        expired, acknowledged = dict(self._expired), dict(self._acknowledged)
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
        )


def _without_zeros(counts: Mapping[Name, int]) -> Mapping[Name, int]:
    return {name: count for name, count in counts.items() if count}
