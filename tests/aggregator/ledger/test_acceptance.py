"""Which packs count: every reason, the time limits, and how much senders can make a ledger remember."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from deniable.aggregator.ledger.acceptance import REASONS, Acceptance, Rejection
from deniable.aggregator.ledger.terms import terms_of
from deniable.protocol import wire
from tests.support.aggregator.builders import (
    COLLECTIONS,
    FRUIT,
    PARTITIONS,
    PLACE,
    T0,
    TERMS,
    ids_of,
    new_ledger,
    pack_of,
    record_of,
)

NOW_MS = T0 * 1000
CLOSES_MS = FRUIT.closes_at(T0) * 1000
FEW = {name: terms_of(replace(collection, window_packs=2)) for name, collection in COLLECTIONS.items()}
Seen = Mapping[tuple[int, int], set[bytes]]


def accept(
    record: bytes, append_ms: int = NOW_MS, watermark_ms: int | None = None, seen: Seen | None = None
) -> wire.Pack:
    watermark = append_ms if watermark_ms is None else watermark_ms
    return Acceptance(FEW, 0, PARTITIONS).accept(7, record, append_ms, watermark, seen or {})


def reject(
    record: bytes, append_ms: int = NOW_MS, watermark_ms: int | None = None, seen: Seen | None = None
) -> tuple[str, int, int]:
    """Reason, fingerprint and window of the rejection; reports are included if the fingerprint is known."""
    with pytest.raises(Rejection) as caught:
        accept(record, append_ms, watermark_ms, seen)
    assert str(caught.value) == caught.value.reason
    assert caught.value.reports == (wire.decode(record).reports if caught.value.fingerprint else 0)
    return caught.value.reason, caught.value.fingerprint, caught.value.window_start


def test_good_pack_counts() -> None:
    assert accept(record_of(reports=[0, 3, 3])) == pack_of(reports=[0, 3, 3])


STRANGER = replace(FRUIT, name="stranger")
BAD_HEADERS = {
    "mechanism": ("malformed", wire.encode(replace(pack_of(), mechanism=wire.LONGITUDINAL_KRR_NUMBER))),
    "width": ("malformed", wire.encode(replace(pack_of(), width=5))),
    "window": ("malformed", record_of(window_start=T0 + 1)),
    "misrouted": ("misrouted", record_of(partition=1)),
    "cohort": ("bad_cohort", record_of(PLACE, cohort=PLACE.cohorts)),
    "krr_cohort": ("bad_cohort", record_of(cohort=1)),
    "early": ("too_early", record_of(window_start=T0 + 310)),
    "late": ("too_late", record_of(window_start=T0 - 20)),
}
UNREADABLE = {
    "empty": ("malformed", b""),
    "damaged": ("malformed", record_of()[:-1] + b"\x02"),
    "version": ("unsupported_version", record_of()[:4] + b"\x02" + record_of()[5:]),
    "size": ("oversized", bytes(wire.MAX_RECORD_BYTES + 1)),
    "stranger": ("unknown_collection", record_of(STRANGER)),
}


@pytest.mark.parametrize(("reason", "record"), UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_pack_has_no_window(reason: str, record: bytes) -> None:
    assert reject(record) == (reason, 0, 0)


@pytest.mark.parametrize(("reason", "record"), BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_bad_header_affects_only_its_collection(reason: str, record: bytes) -> None:
    """Senders can invent any number of windows, but no known fingerprints."""
    fingerprint = wire.decode(record).fingerprint
    assert reject(record) == (reason, fingerprint, 0)


def test_timely_pack_is_attributed_to_its_window() -> None:
    window = (FRUIT.fingerprint, T0)
    first, second = pack_of(number=1), pack_of(number=2)
    assert reject(wire.encode(first), seen={window: {first.pack_id}}) == ("duplicate", *window)
    full = {window: {first.pack_id, second.pack_id}}
    assert reject(record_of(number=3), seen=full) == ("window_full", *window)
    assert reject(wire.encode(first), seen=full) == ("duplicate", *window)
    assert reject(record_of(reports=[0, 4])) == ("bad_value", *window)


def test_limit_of_ids_applies_per_window() -> None:
    full = {(FRUIT.fingerprint, T0): {bytes(16), bytes(15) + b"1"}}
    assert accept(record_of(window_start=T0 + 10), seen=full)
    assert accept(record_of(PLACE), seen=full)
    assert accept(record_of(), seen={(FRUIT.fingerprint, T0): {bytes(15) + b"1"}})


def test_every_reason_is_tested_here() -> None:
    tested = {reason for reason, _ in [*UNREADABLE.values(), *BAD_HEADERS.values()]}
    assert tested | {"duplicate", "window_full", "bad_value"} == set(REASONS)


def test_grace_includes_its_last_millisecond() -> None:
    assert accept(record_of(), CLOSES_MS)
    assert reject(record_of(), CLOSES_MS + 1)[0] == "too_late"


def test_lateness_uses_the_highest_append_time() -> None:
    assert accept(record_of(), CLOSES_MS - 1, CLOSES_MS)
    assert reject(record_of(), CLOSES_MS, CLOSES_MS + 1)[0] == "too_late"


def test_too_early_means_over_300_seconds_ahead() -> None:
    assert wire.EARLY_SECONDS == 300
    assert accept(record_of(), NOW_MS - 300_000)
    assert reject(record_of(), NOW_MS - 300_001)[0] == "too_early"


def test_earliness_uses_the_append_time_of_the_record() -> None:
    assert reject(record_of(), NOW_MS - 300_001, NOW_MS)[0] == "too_early"


def test_late_twin_is_late_before_it_is_a_duplicate() -> None:
    """Its id may be forgotten by then, so the reason must not depend on the id."""
    seen = {(FRUIT.fingerprint, T0): {pack_of().pack_id}}
    assert reject(record_of(), CLOSES_MS + 1, seen=seen)[0] == "too_late"


def test_pack_with_a_bad_value_leaves_only_the_reason() -> None:
    """The same id may arrive again in a good pack, which then counts."""
    ledger = new_ledger()
    ledger.apply(0, NOW_MS, record_of(number=1, reports=[0, 4]))
    assert (ledger.counts.tallies, ids_of(ledger)) == ({}, {})
    assert isinstance(ledger.apply(1, NOW_MS, record_of(number=1, reports=[0, 2])), wire.Pack)
    tally = ledger.counts.tallies[FRUIT.fingerprint, T0, 0]
    np.testing.assert_array_equal(tally.counts, [1, 0, 1, 0])


def test_each_partition_takes_its_own_packs() -> None:
    for partition in range(PARTITIONS):
        acceptance = Acceptance(TERMS, partition, PARTITIONS)
        assert acceptance.accept(0, record_of(number=7, partition=partition), NOW_MS, NOW_MS, {})
        with pytest.raises(Rejection, match=r"^misrouted$"):
            acceptance.accept(0, record_of(partition=(partition + 1) % PARTITIONS), NOW_MS, NOW_MS, {})
