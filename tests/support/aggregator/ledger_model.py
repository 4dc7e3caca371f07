"""A model of a ledger: the rules as written, on dictionaries that never forget."""

from collections import Counter
from dataclasses import dataclass

from deniable.aggregator.ledger.ledger import Ledger
from deniable.estimators.collection import Collection
from deniable.protocol import wire
from deniable.protocol.marker import MARKER, RelaysSent, encode_relays
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, RELAYS_KEY, ids_of, tallies_of


@dataclass(frozen=True)
class Event:
    """One record of the log: of a pack, a relays' marker, or other bytes."""

    append_ms: int
    pack: wire.Pack | None
    other: bytes = b"no pack"
    relays: RelaysSent | None = None

    @property
    def record(self) -> bytes:
        if self.relays:
            return encode_relays(RELAYS_KEY, self.relays)
        return self.other if self.pack is None else wire.encode(self.pack)


class Model:
    """The rules of counting, applied literally to dictionaries that never forget."""

    def __init__(self) -> None:
        self.watermark_ms = self.closed_ms = 0
        self.relays = RelaysSent(0, 0, 0)
        self.tallies: dict[tuple[int, int, int], tuple[list[int], int, int]] = {}
        self.rejected: Counter[tuple[int, int, str]] = Counter()
        self.ids: dict[tuple[int, int], set[bytes]] = {}

    def apply(self, event: Event) -> None:
        self.watermark_ms = max(self.watermark_ms, event.append_ms)
        if event.relays and event.relays.number > self.relays.number:
            self.relays = event.relays
        longest_ms = self.watermark_ms - self.relays.wait_ms
        self.closed_ms = max(self.closed_ms, min(self.watermark_ms, self.relays.sent_ms), longest_ms)
        pack = event.pack
        if pack is None:
            if event.other != MARKER and not event.relays:
                self.rejected[0, 0, "malformed"] += 1
            return
        collection, window = COLLECTIONS[pack.fingerprint], (pack.fingerprint, pack.window_start)
        end_of_grace_ms = (pack.window_start + 10 + 5) * 1000
        ids = self.ids.get(window, set())
        reason = None
        if pack.pack_id[0] % 4 != 0:
            reason, window = "misrouted", (pack.fingerprint, 0)
        elif pack.window_start * 1000 - event.append_ms > 300_000:
            reason, window = "too_early", (pack.fingerprint, 0)
        elif not self.closed_ms <= end_of_grace_ms:
            reason, window = "too_late", (pack.fingerprint, 0)
        elif pack.pack_id in ids:
            reason = "duplicate"
        elif collection is FRUIT and 4 in bytes(pack.payload):
            reason = "bad_value"
        if reason:
            self.rejected[*window, reason] += 1
            return
        self.ids.setdefault(window, set()).add(pack.pack_id)
        self._count(pack, collection)

    def _count(self, pack: wire.Pack, collection: Collection) -> None:
        key = (pack.fingerprint, pack.window_start, pack.cohort)
        counts, reports, counted = self.tallies.get(key, ([0] * collection.width, 0, 0))
        if collection is FRUIT:
            for bucket in bytes(pack.payload):
                counts[bucket] += 1
        else:
            for row in wire.bit_rows(pack).tolist():
                for bit in range(16):
                    counts[bit] += (row[0] + 256 * row[1]) >> bit & 1
        self.tallies[key] = (counts, reports + pack.reports, counted + 1)

    def lives(self, window_start: int) -> bool:
        """Whether counts of a window are still stored; 0 means no window."""
        return not window_start or self.closed_ms <= (window_start + 10 + 5 + 20) * 1000

    def takes(self, window_start: int) -> bool:
        """Whether a window may still accept packs, so its ids are kept."""
        return self.closed_ms <= (window_start + 10 + 5) * 1000


def check_equal(ledger: Ledger, model: Model) -> None:
    assert (ledger.watermark_ms, ledger.closed_until_ms) == (model.watermark_ms, model.closed_ms)
    assert tallies_of(ledger) == {key: t for key, t in model.tallies.items() if model.lives(key[1])}
    assert ledger.counts.rejected == {key: n for key, n in model.rejected.items() if model.lives(key[1])}
    assert ids_of(ledger) == {key: ids for key, ids in model.ids.items() if model.takes(key[1])}
