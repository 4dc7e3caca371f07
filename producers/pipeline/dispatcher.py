"""Track which packs of the outbox are in flight, which have arrived, and which to send again."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deniable.estimators.collection import Collection
from deniable.producers.errors import HopelessError
from deniable.producers.metrics.counters import ReportTotals
from deniable.producers.pipeline.stored_packs import Destination
from deniable.producers.storage.outbox import Outbox, StoredPack
from deniable.producers.storage.store import StoreError
from deniable.producers.transport.packs import OutgoingPack
from deniable.producers.transport.sender import Delivery
from deniable.protocol.wire import MAX_RECORD_BYTES

if TYPE_CHECKING:
    from deniable.producers.transport.console import ConsoleDelivery
    from deniable.producers.transport.edge.delivery import EdgeDelivery

_log = logging.getLogger(__name__)


class Dispatch:
    """Passes the packs of an outbox to a delivery, in the order of their numbers. Not thread-safe.

    A pack that is damaged, of a later version, made for another destination, or larger than this one accepts,
    is kept and skipped.

    Parameters
    ----------
    delivery : to the destination.
    destination : that the packs must have been made for.
    collections : by fingerprint, those counted by name; the outbox may have packs of others.
    totals : counts acknowledged and unsendable packs.
    """

    def __init__(
        self,
        delivery: "Delivery | EdgeDelivery | ConsoleDelivery",
        destination: Destination,
        collections: Mapping[int, Collection],
        totals: ReportTotals,
    ) -> None:
        self._delivery = delivery
        self._destination = destination
        self._collections = collections
        self._totals = totals
        self._cursor = 0
        self._in_flight: dict[int, OutgoingPack] = {}
        self._arrived: set[int] = set()
        self._unsendable: dict[int, str] = {}
        self._too_large: set[int] = set()
        self._is_fed = False

    @property
    def refusal(self) -> str | None:
        """Why the remaining packs can never be sent; None while some can."""
        trouble = self._delivery.trouble
        if isinstance(trouble, HopelessError):
            return str(trouble)
        if not self._unsendable or self._in_flight or not self._is_fed:
            return None
        first, *others = self._unsendable.values()
        return f"{first} (and {len(others)} more)" if others else first

    @property
    def arrived(self) -> frozenset[int]:
        """Packs that were acknowledged, or rejected for good, to be deleted and then passed to `forget`."""
        return frozenset(self._arrived)

    def forget(self, numbers: Iterable[int]) -> None:
        """Forget packs that were deleted from the outbox."""
        self._arrived.difference_update(numbers)

    def rewind(self) -> None:
        """Read the outbox from its start again: it may have new packs with lower numbers."""
        self._cursor = 0

    def settle(self) -> None:
        """Record which packs were acknowledged, rejected and lost."""
        outcome = self._delivery.outcome()
        for number in outcome.lost:
            self._in_flight.pop(number, None)
            self._cursor = min(self._cursor, number - 1)
        for number in outcome.too_large:
            self._set_aside(number)
        for number, append_ms in outcome.acknowledged.items():
            sent = self._in_flight.pop(number, None)
            # Otherwise it was lost before. It is sent again, and its id shows that it is a duplicate.
            if sent is not None:
                self._arrived.add(number)
                self._count(sent, append_ms)
        for number, reason in outcome.rejected.items():
            sent = self._in_flight.pop(number, None)
            if sent is not None:
                self._arrived.add(number)
                self._totals.rejected(self._name_of(sent), sent.reports, reason)

    def feed(self, outbox: Outbox) -> bool:
        """Pass on as many packs as there is room for; return True if those were all.

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
        """Number of the last pack that was passed on or skipped."""
        return self._cursor

    def _hand_over(self, waiting: Iterable[StoredPack], path: Path) -> None:
        outgoing: dict[int, OutgoingPack] = {}
        for each in waiting:
            try:
                pack = self._destination.outgoing(each.number, each.record)
            except StoreError as error:
                self._pass_over(each.number, f"pack {each.number} in {path} cannot be sent: {error}")
                continue
            self._unsendable.pop(each.number, None)  # it was repaired
            outgoing[each.number] = pack
        self._delivery.send(outgoing.values())
        self._in_flight.update(outgoing)
        self._totals.unsendable(len(self._unsendable))

    def _set_aside(self, number: int) -> None:
        """Stop sending a pack: each refusal drops the connection of all. The next producer retries it."""
        size = len(self._in_flight.pop(number).record)
        self._too_large.add(number)
        self._pass_over(number, f"pack {number} cannot be sent: {self._destination.too_large(size)}")
        self._totals.unsendable(len(self._unsendable))

    def _pass_over(self, number: int, trouble: str) -> None:
        if number not in self._unsendable:
            _log.error("%s", trouble)
        self._unsendable[number] = trouble

    def _count(self, sent: OutgoingPack, append_ms: int | None) -> None:
        collection = self._collections.get(sent.fingerprint)
        ends = None if collection is None else 1000 * collection.closes_at(sent.window_start)
        expired = append_ms is not None and ends is not None and append_ms > ends
        self._totals.acknowledged(self._name_of(sent), sent.reports, len(sent.record), expired=expired)

    def _name_of(self, sent: OutgoingPack) -> str | None:
        collection = self._collections.get(sent.fingerprint)
        return None if collection is None else collection.name
