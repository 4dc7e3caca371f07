"""A run of records leaves a ledger as its records one by one do, whatever is in it."""

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings

from deniable.aggregator.ledger import pack_ids, row_keys, row_values
from deniable.aggregator.ledger.acceptance import REASONS
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.outcomes import PackOutcomes, RunOutcome
from deniable.aggregator.ledger.runs import good_packs, pack_columns, run_windows, tally_groups
from deniable.aggregator.ledger.runs.run import Run
from deniable.protocol import wire
from tests.aggregator.ledger.runs.drawn_logs import flipped, logs, run_sizes, terms
from tests.support.aggregator.builders import (
    PARTITIONS,
    PLACE,
    T0,
    LogRecord,
    ids_of,
    pack_of,
    tallies_of,
)

EXAMPLES = 60
MORE_EXAMPLES = 400


def everything(ledger: Ledger) -> tuple[object, ...]:
    """What a ledger has counted, and the rows that it would store and publish."""
    changes = ledger.drain()
    dead, stored = set(changes.dead), stored_ids(changes.ids)
    published = {key: value for key, value in ledger.drain_unpublished().rows()}
    counted = (tallies_of(ledger), ledger.counts.rejected, ids_of(ledger), dict(ledger.counts.rows()))
    times = ledger.watermark_ms, ledger.closed_until_ms, ledger.closing
    return ledger.position, times, counted, dead, stored, published, ledger.drain_refusals()


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
    """As packs of many reports are counted, if all of a run are equally large; checksums in many blocks."""
    patch.setattr(tally_groups, "LARGE_REPORTS", 1)
    patch.setattr(pack_columns, "COPIED_AT_ONCE", 200)


def same_if_run(log: list[LogRecord], sizes: list[int]) -> None:
    """Counts the log in runs of these sizes, and one by one, and compares both after each run."""
    plain, fast = Ledger(0, PARTITIONS, terms()), Ledger(0, PARTITIONS, terms())
    rest = log
    for size in [*sizes, len(log)]:
        part, rest = rest[:size], rest[size:]
        if part:
            expected, outcome = one_by_one(plain, part), fast.apply_run(Run.of(part))
            assert shown(outcome) == shown(expected)
            assert everything(fast) == everything(plain)


@pytest.mark.slow
@pytest.mark.parametrize("examples", [EXAMPLES, pytest.param(MORE_EXAMPLES, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("way", [_as_it_is, _all_windows_collide, _every_other_way, _packs_beside_each_other])
def test_run_equals_its_records_one_by_one(
    way: Callable[[pytest.MonkeyPatch], None], examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    way(monkeypatch)
    settings(max_examples=examples)(given(logs(), run_sizes)(same_if_run))()


#: The least significant byte of a cohort, an id that stays in its partition, a checksum, and the payload.
@pytest.mark.parametrize("byte", [6, 35, 40, 47, 48, 51, wire.HEADER_BYTES, -1])
@pytest.mark.parametrize("sizes", [[3], [1, 2, 3]], ids=["equal", "unequal"])
def test_each_damaged_pack_of_a_run_is_refused(byte: int, sizes: list[int]) -> None:
    """The first, the last and each between them: nothing but its checksum shows the damage."""
    good = [
        wire.encode(pack_of(PLACE, T0, number, [1, 2, 3][: sizes[number % len(sizes)]], number % 2))
        for number in range(20)
    ]
    refused = {}
    for place in range(20):
        records = [flipped(each, byte) if number == place else each for number, each in enumerate(good)]
        ledger = Ledger(0, PARTITIONS, terms())
        log = [LogRecord(number, T0 * 1000, each) for number, each in enumerate(records)]
        outcome = ledger.apply_run(Run.of(log))
        refused[place] = [(number, each.reason) for number, each in outcome.rejections]
        assert outcome.packs == 20 - len(outcome.rejections)
    assert refused == {place: [(place, "malformed")] for place in range(20)}


@pytest.mark.slow
def test_strategy_produces_every_reason_and_good_packs() -> None:
    """Otherwise the comparison would prove less than it seems to."""
    seen = PackOutcomes()

    @settings(max_examples=EXAMPLES, derandomize=True)
    @given(logs())
    def collect(log: list[LogRecord]) -> None:
        seen.count_run(one_by_one(Ledger(0, PARTITIONS, terms()), log))

    collect()
    assert seen.packs > 100
    assert seen.rejected.keys() == set(REASONS)


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
