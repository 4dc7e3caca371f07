"""Which packs of the outbox are on their way, which have arrived, and which are to be sent again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from estimators.collection import Collection
from producers.connection import HopelessError
from producers.counters import Tally
from producers.delivery import Delivery, Parcel
from producers.outbox import Outbox, Waiting
from producers.store import StoreError
from producers.wire import MAX_RECORD_BYTES, Pack, WireError, decode, partition_of


@dataclass(frozen=True)
class _Sent:
    """A pack in flight."""

    fingerprint: int
    window_start: int
    reports: int
    size: int


class Dispatch:
    """Hands the packs of an outbox to a delivery, in the order of their numbers. Not thread-safe.

    Parameters
    ----------
    delivery : Delivery.
    partitions : of the topic.
    collections : by fingerprint, those that are counted by name; the outbox may hold packs of others.
    tally : counts what is acknowledged.
    """

    def __init__(
        self, delivery: Delivery, partitions: int, collections: Mapping[int, Collection], tally: Tally
    ) -> None:
        self._delivery = delivery
        self._partitions = partitions
        self._collections = collections
        self._tally = tally
        self._cursor = 0
        self._in_flight: dict[int, _Sent] = {}
        self._arrived: set[int] = set()

    @property
    def refusal(self) -> str | None:
        """Why nothing can be sent, however long one waits; None where it can."""
        trouble = self._delivery.trouble
        return str(trouble) if isinstance(trouble, HopelessError) else None

    @property
    def arrived(self) -> frozenset[int]:
        """Packs that the broker has, to be deleted from the outbox and then given to `forget`."""
        return frozenset(self._arrived)

    def forget(self, numbers: Iterable[int]) -> None:
        """These are deleted."""
        self._arrived.difference_update(numbers)

    def rewind(self) -> None:
        """Look at the outbox from its start: it may hold packs with lower numbers than before."""
        self._cursor = 0

    def settle(self) -> None:
        """Take note of what was acknowledged and of what was lost."""
        outcome = self._delivery.outcome()
        for number in outcome.lost:
            self._in_flight.pop(number, None)
            self._cursor = min(self._cursor, number - 1)
        for number, append_ms in outcome.acknowledged.items():
            sent = self._in_flight.pop(number, None)
            # Else it was lost first. It is sent again, and that it was there already is seen by its id.
            if sent is not None:
                self._arrived.add(number)
                self._count(sent, append_ms)

    def feed(self, outbox: Outbox) -> bool:
        """Hand over what there is room for; True when that was all.

        Raises
        ------
        StoreError if the outbox cannot be read.
        """
        while (room := self._delivery.room()) >= MAX_RECORD_BYTES:
            waiting = outbox.waiting(self._cursor, min(room, 4 * MAX_RECORD_BYTES))
            if not waiting:
                return True
            self._cursor = waiting[-1].number
            known = self._in_flight.keys() | self._arrived
            self._delivery.send([self._parcel(each) for each in waiting if each.number not in known])
        return False

    def is_through(self, number: int) -> bool:
        """Whether every pack up to this number has arrived."""
        return self._cursor >= number and all(each > number for each in self._in_flight)

    @property
    def cursor(self) -> int:
        """Number of the last pack that was handed over, or passed since it was on its way."""
        return self._cursor

    def _parcel(self, waiting: Waiting) -> Parcel:
        pack = unpacked(waiting.record)
        self._in_flight[waiting.number] = _Sent(
            pack.fingerprint, pack.window_start, pack.reports, len(waiting.record)
        )
        return Parcel(
            number=waiting.number,
            partition=partition_of(pack.pack_id, self._partitions),
            timestamp_ms=pack.window_start * 1000,
            record=waiting.record,
        )

    def _count(self, sent: _Sent, append_ms: int) -> None:
        collection = self._collections.get(sent.fingerprint)
        if collection is None:
            self._tally.acknowledged(None, sent.reports, sent.size, expired=False)
        else:
            expired = append_ms > 1000 * collection.closes_at(sent.window_start)
            self._tally.acknowledged(collection.name, sent.reports, sent.size, expired=expired)


def unpacked(record: bytes) -> Pack:
    """A pack or buffer out of the store.

    Raises
    ------
    StoreError if it is damaged.
    """
    try:
        return decode(record)
    except WireError as error:
        raise StoreError(f"a record of the store is damaged: {error}; put back a copy") from None
