"""Logs of good, bad, late, doubled and malformed records: each check of a run decides about some of them.

Most records are good packs, some with one fault. A check that is left out shows only in a pack that has no
other fault, and an order that is wrong only among packs that count.
"""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
from crc32c import crc32c
from hypothesis import strategies as st

from deniable.aggregator.ledger.terms import EVERY_COLLECTION, Terms, WindowTerms, closing_terms, terms_of
from deniable.aggregator.ledger.window_ends import Closing
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.protocol import wire
from deniable.protocol.marker import MARKER, RelaysSent, encode_relays
from tests.support.aggregator.builders import FRUIT, PLACE, RELAYS_KEY, T0, LogRecord, pack_of

#: All windows of `terms` close and die at multiples of this, and packs are too early from one on.
EDGES_MS = 5000
TO_AN_EDGE = 1
STEPS_MS = [-5000, -1, 999, 1000, 5001, 10000, 20000, *[TO_AN_EDGE] * 5]
SOME, MANY = 8, 4_000_000
UNKNOWN = replace(FRUIT, name="unknown")
BERRY = replace(FRUIT, name="berry", mechanism=KRR.from_epsilon(300, 2.0), values=(), other=False)
HASHED = replace(FRUIT, name="hashed", mechanism=LocalHash.from_epsilon(2.0, 80), values=(), other=False)
KNOWN = (FRUIT, PLACE, BERRY, HASHED)
#: The terms change with a window: each limit is raised for one collection, and lowered for another.
CHANGED = T0 + 20
BEGINNINGS = [T0, CHANGED + 10]
SPANS = {
    FRUIT.fingerprint: (WindowTerms(0, 15, 10, 1), WindowTerms(CHANGED, 5, 20, SOME)),
    PLACE.fingerprint: (WindowTerms(0, 5, 20, MANY), WindowTerms(CHANGED, 15, 10, MANY)),
    BERRY.fingerprint: (WindowTerms(0, 15, 10, MANY), WindowTerms(CHANGED, 5, 20, MANY)),
    HASHED.fingerprint: (WindowTerms(0, 5, 20, SOME), WindowTerms(CHANGED, 15, 10, 1)),
}
WINDOWS = [*[0] * 9, *[-10] * 4, -20, 10, 300, 310, 3]
#: Multiples of a window's length beyond the latest start, up to the largest number of 64 bits.
HUGE_WINDOWS = [-(-start // 10) * 10 for start in (wire.MAX_WINDOW_START + 1, 2**63, 2**64 - 10)]
#: A flipped bit at one of these leaves a pack that only its checksum shows to be damaged.
UNCHECKED = [6, 35, 40, 47, 48, 51, 52, -1]
KINDS = [
    *["good"] * 12,
    *["again"] * 5,
    *["flipped"] * 4,
    *["damaged"] * 4,
    *["other half"] * 2,
    *["bad value"] * 2,
    *["mechanism"] * 2,
    "width",
    "huge window",
    "cohort",
    "unknown",
    "misrouted",
    "marker",
    *["relays' marker"] * 2,
]


def terms() -> dict[int, Terms]:
    """Terms that change over time; one collection is known in a part of the log only."""
    found = {each.fingerprint: terms_of(each) for each in KNOWN}
    for fingerprint, spans in SPANS.items():
        found[fingerprint] = msgspec.structs.replace(found[fingerprint], spans=spans)
    found[EVERY_COLLECTION] = closing_terms(Closing(RELAYS_KEY), 0)
    found[BERRY.fingerprint] = msgspec.structs.replace(found[BERRY.fingerprint], since=3, until=25)
    return found


@st.composite
def logs(draw: st.DrawFn) -> list[LogRecord]:
    """Of one collection or some, quick or slow: in a slow one windows fill, in a quick one they end."""
    found: list[LogRecord] = []
    collections = draw(st.lists(st.sampled_from(KNOWN), min_size=1, max_size=3))
    steps = [*[0] * draw(st.sampled_from([2, 8, 30])), *STEPS_MS]
    now_ms, offset = draw(st.sampled_from(BEGINNINGS)) * 1000, 0
    for step in draw(st.lists(st.sampled_from(steps), min_size=12, max_size=40)):
        if step == TO_AN_EDGE:
            now_ms += -now_ms % EDGES_MS + draw(st.sampled_from([-1, 0, 1]))
        else:
            now_ms += step
        offset += draw(st.sampled_from([1, 1, 1, 1, 3]))
        value = _value(draw, collections, now_ms // 1000, [each.value for each in found])
        found.append(LogRecord(offset, now_ms, value))
    return found


#: Records of each run of a log: one run, or many, so that windows and ids of one are met again by the next.
run_sizes = st.just([40]) | st.lists(st.sampled_from([1, 2, 3, 4, 6, 10]), max_size=9)


def _value(
    draw: st.DrawFn, collections: Sequence[Collection], now: int, before: Sequence[bytes | None]
) -> bytes | None:
    kind = draw(st.sampled_from(KINDS))
    if kind == "again" and before:
        return draw(st.sampled_from(before))
    if kind == "marker":
        return MARKER
    if kind == "relays' marker":
        sent_ms = (now - draw(st.sampled_from([0, 5, 15]))) * 1000
        sent = RelaysSent(draw(st.integers(1, 9)), sent_ms, draw(st.sampled_from([0, 3000, 60_000])))
        return encode_relays(draw(st.sampled_from([RELAYS_KEY, RELAYS_KEY, bytes(16)])), sent)
    collection = UNKNOWN if kind == "unknown" else draw(st.sampled_from(collections))
    record = wire.encode(_pack(draw, kind, collection, now))
    match kind:
        case "flipped":
            place = draw(st.sampled_from(UNCHECKED) | st.integers(0, len(record) - 1))
            return flipped(record, place)
        case "damaged":
            return _damaged(draw, record)
        case "huge window":
            return _with_window(record, draw(st.sampled_from(HUGE_WINDOWS)))
        case _:
            return record


def _pack(draw: st.DrawFn, kind: str, collection: Collection, now: int) -> wire.Pack:
    """A pack with at most one fault; the small ranges produce many duplicates and full windows."""
    window = collection.window_start(now) + draw(st.sampled_from(WINDOWS))
    reports = [0, 3, 1, 2][: draw(st.integers(1, 4))]
    if kind == "bad value" and collection is not PLACE:
        reports.append(collection.width)
    cohort = draw(st.integers(0, collection.cohorts - 1)) + (kind == "cohort") * collection.cohorts
    pack = pack_of(collection, window, draw(st.integers(0, 15)), reports, cohort, int(kind == "misrouted"))
    match kind:
        case "other half":
            return replace(pack, pack_id=pack.pack_id[:8] + bytes(7) + b"\1")
        case "mechanism":
            return of_another_mechanism(pack)
        case "width":
            return replace(pack, mechanism=wire.RAPPOR_NUMBER, width=8, reports=len(pack.payload))
        case _:
            return pack


def of_another_mechanism(pack: wire.Pack) -> wire.Pack:
    """The same pack by a mechanism with reports of the same width."""
    number = wire.LONGITUDINAL_KRR_NUMBER
    return replace(pack, mechanism=number, reports=len(pack.payload) // wire.report_bytes(number, pack.width))


def flipped(record: bytes, place: int) -> bytes:
    """The record with another lowest bit at a place, which counts from its end if negative."""
    damaged = bytearray(record)
    damaged[place] ^= 1
    return bytes(damaged)


def _with_window(record: bytes, start: int) -> bytes:
    """The record of another window, which may be one that `wire.encode` refuses; its checksum is right."""
    checked, payload = bytearray(record[: wire.CHECKED_BYTES]), record[wire.HEADER_BYTES :]
    checked[16:24] = start.to_bytes(8, "little")
    return bytes(checked) + crc32c(payload, crc32c(bytes(checked))).to_bytes(4, "little") + payload


def _damaged(draw: st.DrawFn, record: bytes) -> bytes | None:
    match draw(st.sampled_from(["cut", "longer", "version", "none", "empty", "text", "oversized"])):
        case "cut":
            return record[: draw(st.integers(0, len(record)))]
        case "longer":
            return record + b"\0"
        case "version":
            return record[:4] + b"\2" + record[5:]
        case "none":
            return None
        case "empty":
            return b""
        case "oversized":
            return record.ljust(wire.MAX_RECORD_BYTES + 1, b"\0")
        case _:
            return b"no pack"
