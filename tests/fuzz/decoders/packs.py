"""Packs: what any producer, or anybody else who can write to `reports`, sends to workers.

Each input goes through the wire format into a ledger. A checksum would keep nearly all mutations out, so most
get the right one; many get the fingerprint, mechanism and width of a collection too.
"""

import json
from collections.abc import Iterator
from contextlib import suppress

from crc32c import crc32c

from deniable.aggregator.ledger.acceptance import REASONS, Rejection
from deniable.aggregator.ledger.ledger import Ledger
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.protocol import wire
from tests.support.paths import VECTORS

EXPECTED = json.loads((VECTORS / "wire.json").read_text())
MECHANISMS = {
    "small": KRR.from_epsilon(4, 2.0),
    "byte": KRR.from_epsilon(256, 2.0),
    "short": KRR.from_epsilon(1000, 2.0),
    "large": KRR.from_epsilon(70_000, 2.0),
    "repeated": LongitudinalKRR.from_epsilons(16, 4.0, 2.0),
    "bloom": Rappor.from_probabilities(64, 2, 3, 0.25, 0.35, 0.65),
    "hot": HotRappor.from_probabilities(10, 1, 0.25, 0.35, 0.65),
}
COLLECTIONS = [
    Collection(name, each, window_seconds=10, window_packs=500) for name, each in MECHANISMS.items()
]
APPEND_MS = 1_767_225_609_000
WINDOW = 1_767_225_600
LEDGER_RECORDS = 100_000  # then a new one, or the ids of all packs would be kept


def _pack(collection: Collection, reports: int) -> wire.Pack:
    number = collection.mechanism.wire_number
    size = reports * wire.report_bytes(number, collection.width)
    head = (number, 0, collection.fingerprint, WINDOW, reports, collection.width)
    return wire.Pack(*head, bytes(16), bytes(size))


SEEDS = [
    *(wire.encode(_pack(collection, reports)) for collection in COLLECTIONS for reports in (1, 5)),
    *(bytes.fromhex(vector["record"]) for kind in ("good", "bad") for vector in EXPECTED[kind]),
]
HEADS = [wire.encode(_pack(collection, 1))[:32] for collection in COLLECTIONS]


def mutate(mutated: bytes, seed: int) -> bytes:
    """Of 16: 1 is left as it is, 1 cut short; the others are made to fit themselves, 7 a collection too."""
    data = bytearray(mutated)
    kind, choice = seed % 16, seed // 16
    if kind == 0 or len(data) < wire.HEADER_BYTES:
        return bytes(data)
    if kind == 1:
        return bytes(data[: choice % len(data)])
    if kind < 9:
        head = HEADS[choice % len(HEADS)]
        data[:6], data[8:24], data[28:32] = head[:6], head[8:24], head[28:32]
    if kind != 2:
        size = wire.report_bytes(data[5], int.from_bytes(data[28:32], "little")) or 1
        reports = (len(data) - wire.HEADER_BYTES) // size
        data[24:28] = reports.to_bytes(4, "little")
        del data[wire.HEADER_BYTES + reports * size :]
    data[48:52] = crc32c(bytes(data[52:]), crc32c(bytes(data[:48]))).to_bytes(4, "little")
    return bytes(data)


def _ledgers() -> Iterator[tuple[Ledger, int]]:
    while True:
        ledger = Ledger(0, 2)
        ledger.agree({each.fingerprint: each for each in COLLECTIONS}, 1)
        yield from ((ledger, offset) for offset in range(LEDGER_RECORDS))


_next_ledger = _ledgers()
outcomes = dict.fromkeys(("counted", *REASONS), 0)  # how many inputs had each, for whoever runs this target


def check(data: bytes) -> None:
    """Raise WireError, or decode what encodes to the same bytes; a ledger counts it, or gives a reason."""
    with suppress(wire.WireError):
        assert wire.encode(wire.decode(data)) == data
    ledger, offset = next(_next_ledger)
    outcome = ledger.apply(offset, APPEND_MS, data)
    assert ledger.position == offset + 1
    reason = outcome.reason if isinstance(outcome, Rejection) else "counted"
    outcomes[reason] += 1
