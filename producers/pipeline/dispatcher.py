"""Which packs of the outbox are on their way, which have arrived, and which are to be sent again."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from estimators.collection import Collection
from producers.errors import HopelessError
from producers.metrics.counters import ReportTotals
from producers.storage.outbox import Outbox, StoredPack
from producers.storage.store import StoreError
from producers.transport.sender import Delivery, OutgoingPack
from producers.wire import (
    MAX_RECORD_BYTES,
    UNSUPPORTED_VERSION,
    Pack,
    WireError,
    decode,
    partition_of,
)

MOST_BATCH_BYTES = 1_048_588  # Kafka's default; the largest pack fits

_log = logging.getLogger(__name__)


class Dispatch:
    """Hands the packs of an outbox to a delivery, in the order of their numbers. Not thread-safe.

    A pack that is damaged, of a later version, or larger than the broker takes, is kept and passed over.

    Parameters
    ----------
    delivery : Delivery.
    partitions : of the topic.
    collections : by fingerprint, those that are counted by name; the outbox may hold packs of others.
    tally : counts what is acknowledged, and what cannot be sent.
    """

    def __init__(
        self, delivery: Delivery, partitions: int, collections: Mapping[int, Collection], tally: ReportTotals
    ) -> None:
        self._delivery = delivery
        self._partitions = partitions
        self._collections = collections
        self._tally = tally
        self._cursor = 0
        self._in_flight: dict[int, OutgoingPack] = {}
        self._arrived: set[int] = set()
        self._unsendable: dict[int, str] = {}
        self._too_large: set[int] = set()
        self._is_fed = False

    @property
    def refusal(self) -> str | None:
        """Why what is left cannot be sent, however long one waits; None while some of it can."""
        trouble = self._delivery.trouble
        if isinstance(trouble, HopelessError):
            return str(trouble)
        if not self._unsendable or self._in_flight or not self._is_fed:
            return None
        first, *others = self._unsendable.values()
        return f"{first} (and {len(others)} more)" if others else first

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
        for number in outcome.too_large:
            self._set_aside(number)
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
        self._is_fed = False
        while (room := self._delivery.room()) >= MAX_RECORD_BYTES:
            waiting = outbox.waiting(self._cursor, min(room, 4 * MAX_RECORD_BYTES))
            if not waiting:
                self._is_fed = True
                break
            known = self._in_flight.keys() | self._arrived | self._too_large
            self._hand_over([each for each in waiting if each.number not in known], outbox.path)
            self._cursor = waiting[-1].number
        return self._is_fed

    def is_through(self, number: int) -> bool:
        """Whether every pack up to this number has arrived."""
        left = self._in_flight.keys() | self._unsendable
        return self._cursor >= number and all(each > number for each in left)

    @property
    def cursor(self) -> int:
        """Number of the last pack that was handed over or passed over."""
        return self._cursor

    def _hand_over(self, waiting: Iterable[StoredPack], path: Path) -> None:
        outgoing: dict[int, OutgoingPack] = {}
        for each in waiting:
            try:
                pack = unpacked(each.record)
            except StoreError as error:
                self._pass_over(each.number, f"pack {each.number} in {path} cannot be sent: {error}")
                continue
            self._unsendable.pop(each.number, None)  # it was put in order
            outgoing[each.number] = OutgoingPack(
                each.number,
                partition_of(pack.pack_id, self._partitions),
                pack.fingerprint,
                pack.window_start,
                pack.reports,
                each.record,
            )
        self._delivery.send(outgoing.values())
        self._in_flight.update(outgoing)
        self._tally.unsendable(len(self._unsendable))

    def _set_aside(self, number: int) -> None:
        """Send it no more: each refusal costs all others their connection. The next producer tries again."""
        size = len(self._in_flight.pop(number).record)
        self._too_large.add(number)
        self._pass_over(
            number,
            f"pack {number} cannot be sent: the broker takes no record of {size} bytes; set "
            f"max.message.bytes of the topic to at least {MOST_BATCH_BYTES}, then start this producer anew",
        )
        self._tally.unsendable(len(self._unsendable))

    def _pass_over(self, number: int, trouble: str) -> None:
        if number not in self._unsendable:
            _log.error("%s", trouble)
        self._unsendable[number] = trouble

    def _count(self, sent: OutgoingPack, append_ms: int) -> None:
        collection = self._collections.get(sent.fingerprint)
        if collection is None:
            self._tally.acknowledged(None, sent.reports, len(sent.record), expired=False)
        else:
            expired = append_ms > 1000 * collection.closes_at(sent.window_start)
            self._tally.acknowledged(collection.name, sent.reports, len(sent.record), expired=expired)


def unpacked(record: bytes) -> Pack:
    """A pack or buffer out of the store.

    Raises
    ------
    StoreError if it is damaged, or of a later version.
    """
    try:
        return decode(record)
    except WireError as error:
        if error.reason == UNSUPPORTED_VERSION:
            raise StoreError(
                f"a record of the store is of a later version, or damaged: {error}; use the deniable that "
                "wrote it, or put back a copy"
            ) from None
        raise StoreError(f"a record of the store is damaged: {error}; put back a copy") from None
