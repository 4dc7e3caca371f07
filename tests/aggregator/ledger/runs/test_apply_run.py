"""A run of records leaves a ledger as its records one by one do, whatever is in it."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggregator.ledger import pack_ids, row_keys, row_values
from aggregator.ledger.ledger import Ledger
from aggregator.ledger.outcomes import PackOutcomes, RunOutcome
from aggregator.ledger.runs import good_packs, pack_columns, run_windows, tally_groups
from aggregator.ledger.runs.run import Run
from aggregator.ledger.terms import Terms, terms_of
from estimators.mechanisms.hashing.local_hash import LocalHash
from estimators.mechanisms.krr import KRR
from producers import wire
from tests.support.aggregator.builders import (
    FRUIT,
    PARTITIONS,
    PLACE,
    T0,
    LogRecord,
    ids_of,
    pack_of,
    tallies_of,
)

STEPS_MS = [-5000, -1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 999, 1000, 4999, 5000, 5001, 10000, 20000]
UNKNOWN = replace(FRUIT, name="unknown")
BERRY = replace(FRUIT, name="berry", mechanism=KRR.from_epsilon(300, 2.0), values=(), other=False)
HASHED = replace(FRUIT, name="hashed", mechanism=LocalHash.from_epsilon(2.0, 80), values=(), other=False)
KNOWN = (FRUIT, PLACE, BERRY, HASHED)


def terms() -> dict[int, Terms]:
    """Room for one pack a window of one collection; another one is known in a part of the log only."""
    found = {each.fingerprint: terms_of(each) for each in KNOWN}
    spans = tuple(msgspec.structs.replace(each, window_packs=1) for each in found[FRUIT.fingerprint].spans)
    found[FRUIT.fingerprint] = msgspec.structs.replace(found[FRUIT.fingerprint], spans=spans)
    found[BERRY.fingerprint] = msgspec.structs.replace(found[BERRY.fingerprint], since=3, until=25)
    return found


@st.composite
def values(draw: st.DrawFn, now: int) -> bytes | None:
    """A pack, good or not; the small ranges produce many duplicates and full windows."""
    collection = draw(st.sampled_from([FRUIT, FRUIT, PLACE, PLACE, BERRY, HASHED, UNKNOWN]))
    number = draw(st.integers(0, 5))
    window = collection.window_start(now) + draw(st.sampled_from([0, 0, 0, 0, -10, -20, 10, 310, 3]))
    reports = [*[number % 4, 1, 3, 2][: draw(st.integers(1, 4))], draw(st.sampled_from([2, 2, 2, 4]))]
    cohort = draw(st.sampled_from([0, 0, 0, 0, 0, 1, 2, 9]))
    partition = draw(st.sampled_from([0, 0, 0, 0, 1]))
    pack = pack_of(collection, window, number, reports, cohort, partition)
    changes = draw(st.sampled_from([{}, {}, {}, {}, {"width": 8, "mechanism": wire.RAPPOR_NUMBER}]))
    if changes:
        pack = wire.Pack(
            changes["mechanism"], cohort, pack.fingerprint, window, 4, changes["width"], pack.pack_id, b"abcd"
        )
    if draw(st.integers(0, 9)) == 0:  # two ids that differ in their second halves only
        pack = _with_id(pack, pack.pack_id[:8] + bytes(7) + b"\1")
    return _damaged(draw, wire.encode(pack))


def _with_id(pack: wire.Pack, pack_id: bytes) -> wire.Pack:
    return wire.Pack(
        pack.mechanism,
        pack.cohort,
        pack.fingerprint,
        pack.window_start,
        pack.reports,
        pack.width,
        pack_id,
        pack.payload,
    )


def _damaged(draw: st.DrawFn, record: bytes) -> bytes | None:
    if draw(st.integers(0, 7)) < 7:
        return record
    match draw(
        st.sampled_from(["flipped", "cut", "longer", "version", "none", "empty", "text", "oversized"])
    ):
        case "flipped":
            place = draw(st.integers(0, len(record) - 1))
            return record[:place] + bytes([record[place] ^ 1]) + record[place + 1 :]
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


@st.composite
def logs(draw: st.DrawFn) -> list[LogRecord]:
    found, now_ms, offset = [], T0 * 1000, 0
    for step in draw(st.lists(st.sampled_from(STEPS_MS), min_size=12, max_size=40)):
        now_ms += step
        offset += draw(st.sampled_from([1, 1, 1, 1, 3]))
        found.append(LogRecord(offset, now_ms, draw(values(now_ms // 1000))))
    return found


def everything(ledger: Ledger) -> tuple[object, ...]:
    """What a ledger has counted, and the rows that it would store and publish."""
    changes = ledger.drain()
    dead, stored = set(changes.dead), stored_ids(changes.ids)
    published = {key: value for key, value in ledger.drain_unpublished().rows()}
    counted = (tallies_of(ledger), ledger.counts.rejected, ids_of(ledger), dict(ledger.counts.rows()))
    return ledger.position, ledger.watermark_ms, counted, dead, stored, published, ledger.drain_refusals()


def stored_ids(rows: Mapping[row_keys.IdsKey, bytes]) -> dict[row_keys.IdsKey, list[bytes]]:
    """The ids of each new row, in ascending order: a run stores them in another order."""
    size = row_values.ID_BYTES
    return {key: sorted(ids[at : at + size] for at in range(0, len(ids), size)) for key, ids in rows.items()}


def one_by_one(ledger: Ledger, log: list[LogRecord]) -> RunOutcome:
    outcome = RunOutcome()
    for number, record in enumerate(log):
        outcome.add(number, ledger.apply(record.offset, record.timestamp, record.value or b""))
    return outcome


def shown(outcome: RunOutcome) -> tuple[object, ...]:
    rejections = [
        (number, each.reason, each.fingerprint, each.window_start, each.reports)
        for number, each in outcome.rejections
    ]
    return outcome.packs, outcome.reports, rejections


def _as_it_is(_: pytest.MonkeyPatch) -> None: ...


def _all_windows_collide(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(run_windows, "_MIX", (run_windows._MIX[0] * 0, run_windows._MIX[1] * 0))


def _every_other_way(patch: pytest.MonkeyPatch) -> None:
    """The branches that only large runs take."""
    patch.setattr(pack_ids, "FEW_IDS", 0)
    patch.setattr(good_packs, "FEW_IDS", 0)
    patch.setattr(pack_columns, "COPIED_BYTES", 0)
    patch.setattr(tally_groups, "COPIED_BYTES", 0)
    patch.setattr(tally_groups, "DENSE_COUNTERS", 0)
    patch.setattr(tally_groups, "MOST_DENSE", 0)


def _packs_beside_each_other(patch: pytest.MonkeyPatch) -> None:
    """As packs of many reports are counted, if all of a run are equally large."""
    patch.setattr(tally_groups, "LARGE_REPORTS", 1)


@pytest.mark.parametrize("way", [_as_it_is, _all_windows_collide, _every_other_way, _packs_beside_each_other])
def test_run_equals_its_records_one_by_one(
    way: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    way(monkeypatch)

    @settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
    @given(logs(), st.lists(st.integers(1, 40), max_size=6))
    def check(log: list[LogRecord], sizes: list[int]) -> None:
        plain, fast = Ledger(0, PARTITIONS, terms()), Ledger(0, PARTITIONS, terms())
        rest = log
        for size in [*sizes, len(log)]:
            part, rest = rest[:size], rest[size:]
            if part:
                expected, outcome = one_by_one(plain, part), fast.apply_run(Run.of(part))
                assert shown(outcome) == shown(expected)
                assert everything(fast) == everything(plain)

    check()


def test_strategy_produces_every_reason_and_good_packs() -> None:
    """Otherwise the comparison would prove less than it seems to."""
    seen = PackOutcomes()

    @settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
    @given(logs())
    def collect(log: list[LogRecord]) -> None:
        seen.count_run(one_by_one(Ledger(0, PARTITIONS, terms()), log))

    collect()
    assert seen.packs > 100
    assert {
        "malformed",
        "unsupported_version",
        "oversized",
        "unknown_collection",
        "bad_cohort",
        "bad_value",
        "too_early",
        "too_late",
        "duplicate",
        "misrouted",
        "window_full",
    } <= seen.rejected.keys()


def test_good_packs_do_not_reach_the_slow_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise runs would be counted as they were before, and nobody would notice."""
    log = [
        LogRecord(number, T0 * 1000, wire.encode(pack_of(PLACE, number=number, cohort=number % 2)))
        for number in range(50)
    ]
    log[7] = LogRecord(7, T0 * 1000, b"no pack")
    ledger = Ledger(0, PARTITIONS, terms())
    left: list[int] = []
    count = ledger._count
    monkeypatch.setattr(ledger, "_count", lambda offset, *rest: left.append(offset) or count(offset, *rest))
    assert ledger.apply_run(Run.of(log)).packs == 49
    assert left == [7]


def test_part_of_a_run_keeps_values_and_headers() -> None:
    log = [
        LogRecord(5 + number, number, bytes([number]) * number, (("h", bytes([number])),))
        for number in range(9)
    ]
    part = Run.of(log).part(2, 7).part(1, 4)
    assert [part.record(number) for number in range(len(part))] == [each.value for each in log[3:6]]
    assert [part.headers_of(number) for number in range(3)] == [each.headers for each in log[3:6]]
    assert part.offsets.tolist() == [8, 9, 10]
