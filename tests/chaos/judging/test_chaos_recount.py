"""The fault suite's recount against packs counted by hand, and the figures of a verdict."""

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deniable.config.file import Configuration
from deniable.estimators.collection import Collection
from tests.chaos.judging.judge import Judge
from tests.chaos.judging.recount import Counted, Recount, Tallied, add_up
from tests.chaos.judging.service import Sample, longest_gap, longest_partition_gap, steps_back
from tests.chaos.judging.stored import Final, Stored
from tests.chaos.judging.verdict import (
    difference,
    doubled,
    finals_changed,
    finals_off,
    late,
    lateness,
    uncounted,
)
from tests.chaos.load.packs import MARKER, SPOILED, Draft, PackMaker, oversized
from tests.chaos.processes.collection_setup import HEAD, write

PARTITIONS = 4
T0 = 1_767_225_600  # a window start of every collection, unix seconds


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    return write(tmp_path / "deniable.yaml", "127.0.0.1:1", "test-", 1, HEAD)


def named(configuration: Configuration, name: str) -> Collection:
    return next(collection for collection in configuration.collections if collection.name == name)


def draft_of(collection: Collection, number: int = 0, window_start: int = T0) -> Draft:
    """Return a pack for partition 0 with an id from this number."""
    draft = PackMaker(collection, random.Random(number)).draft()
    pack_id = (PARTITIONS * number).to_bytes(8, "little") + bytes(8)
    return replace(draft, pack_id=pack_id, window_start=window_start, cohort=0)


def judge_of(configuration: Configuration) -> Judge:
    return Judge(configuration.by_fingerprint(), 0, PARTITIONS)


def test_buckets_are_counted_in_payload_order(configuration: Configuration) -> None:
    flash, judge = named(configuration, "flash"), judge_of(configuration)
    first, second = (
        replace(draft_of(flash, n), payload=bytes(p), reports=3)
        for n, p in enumerate(([0, 1, 1], [39, 1, 0]))
    )
    for draft in (first, second, first):
        judge.take(T0 * 1000, draft.encode())
    found = add_up([judge], configuration.by_fingerprint())
    counted = found.cells[flash.fingerprint, T0, 0]
    assert dict(enumerate(counted.counts.tolist())) == Counter([0, 1, 1, 39, 1, 0]) | dict.fromkeys(
        set(range(40)) - {0, 1, 39}, 0
    )
    assert (counted.reports, counted.packs, found.records) == (6, 2, 3)
    assert found.rejected == {"duplicate": 1}
    assert found.ids == {first.pack_id, second.pack_id}


def test_bits_are_counted_lowest_first(configuration: Configuration) -> None:
    place, judge = named(configuration, "place"), judge_of(configuration)
    rows = (1 << 0 | 1 << 9, 1 << 63 | 1 << 9)
    payload = b"".join(row.to_bytes(8, "little") for row in rows)
    judge.take(T0 * 1000, replace(draft_of(place), payload=payload, reports=2).encode())
    counted = add_up([judge], configuration.by_fingerprint()).cells[place.fingerprint, T0, 0]
    assert {i: c for i, c in enumerate(counted.counts.tolist()) if c} == {0: 1, 9: 2, 63: 1}


@pytest.mark.slow
def test_window_accepts_a_limited_number_of_packs(configuration: Configuration) -> None:
    """A full window still distinguishes duplicates from excess packs."""
    flash, judge = named(configuration, "flash"), judge_of(configuration)
    for number in (*range(flash.window_packs + 2), 0):
        judge.take(T0 * 1000, draft_of(flash, number).encode())
    judge.take(T0 * 1000, draft_of(flash, 0, T0 + 5).encode())
    assert judge.rejected == {"window_full": 2, "duplicate": 2}
    assert len(judge.ids) == flash.window_packs


def test_window_is_kept_until_its_retention_ends(configuration: Configuration) -> None:
    """Windows expire by the clock of their partition; only rejections by window expire with them."""
    flash, place = named(configuration, "flash"), named(configuration, "place")
    early, late = judge_of(configuration), judge_of(configuration)
    dies_ms = (T0 + 5 + 4 + 60) * 1000
    for judge, number in ((early, 0), (late, 1)):
        for value in (draft_of(flash, number).encode(), draft_of(flash, number).encode(), b"no pack"):
            judge.take(T0 * 1000, value)
    early.take(dies_ms, draft_of(place, 2).encode())
    late.take(dies_ms + 1, draft_of(place, 3).encode())
    found = add_up([early, late], configuration.by_fingerprint())
    cell, lasting = (flash.fingerprint, T0, 0), (place.fingerprint, T0, 0)
    assert (found.cells[cell].packs, found.kept.cells[cell].packs) == (2, 1)
    assert found.cells[lasting].packs == found.kept.cells[lasting].packs == 2
    assert (found.rejected, found.kept.rejected) == (
        {"duplicate": 2, "malformed": 2},
        {"duplicate": 1, "malformed": 2},
    )


def test_a_marker_that_no_worker_has_counted_ends_no_retention(configuration: Configuration) -> None:
    flash = named(configuration, "flash")
    for stored_to, kept in ((1, 1), (2, 0)):
        judge = Judge(configuration.by_fingerprint(), 0, PARTITIONS, stored_to=stored_to)
        judge.take(T0 * 1000, draft_of(flash).encode())
        judge.take((T0 + 70) * 1000, MARKER + bytes(1), 1)
        assert len(add_up([judge], configuration.by_fingerprint()).kept.cells) == kept


def test_lateness_depends_on_the_highest_append_time(configuration: Configuration) -> None:
    """A window of 5 s with 4 s of grace is open at 9 s, but not a millisecond later."""
    flash, judge = named(configuration, "flash"), judge_of(configuration)
    for number, milliseconds in enumerate((9000, 9001, 8000)):
        judge.take(T0 * 1000 + milliseconds, draft_of(flash, number).encode())
    assert judge.rejected == {"too_late": 2}
    judge.take(T0 * 1000, draft_of(flash, 4, T0 + 300).encode())
    judge.take(T0 * 1000, draft_of(flash, 5, T0 + 305).encode())
    assert judge.rejected == {"too_late": 2, "too_early": 1}


def test_every_malformed_pack_has_its_reason(configuration: Configuration) -> None:
    """Each kind is rejected; together they cover all reasons except two that need earlier packs."""
    judge = judge_of(configuration)
    for number, spoil in enumerate(SPOILED):
        judge.take(T0 * 1000, spoil(draft_of(named(configuration, "flash"), number)))
    judge.take(T0 * 1000, oversized())
    assert judge.rejected == {
        "malformed": 15,
        "unsupported_version": 1,
        "unknown_collection": 1,
        "bad_cohort": 1,
        "bad_value": 1,
        "too_early": 1,
        "too_late": 1,
        "misrouted": 1,
        "oversized": 1,
    }
    assert not judge.ids


def test_difference_is_the_sum_over_all_counters() -> None:
    def cell(*counts: int) -> Counted:
        return Counted(np.array(counts), sum(counts), 1)

    counted = Recount(cells={(1, T0, 0): cell(3, 4), (2, T0, 0): cell(5)}, rejected=Counter(a=2))
    stored = Stored(cells={(1, T0, 0): cell(3, 4), (2, T0, 0): cell(5)}, rejected=Counter(a=2))
    assert difference(counted, stored) == 0
    stored.cells[1, T0, 0] = cell(4, 2)
    assert difference(counted, stored) == 1 + 2 + 1
    del stored.cells[2, T0, 0]
    assert difference(counted, stored) == 4 + 5 + 5 + 1
    stored.rejected["b"] = 7
    assert difference(counted, stored) == 15 + 7


def test_verdict_has_other_figures() -> None:
    cells = {(1, T0, 0): Counted(np.array([3]), 3, 2)}
    counted = Recount(cells, kept=Tallied(cells))
    assert doubled(counted, Stored(cells={(1, T0, 0): Counted(np.array([4]), 4, 3)})) == 1
    assert finals_off(counted, [Final(1, T0, 3, 2, 0)]) == {(1, T0): 0}
    assert finals_off(counted, [Final(1, T0, 2, 1, 0)]) == {(1, T0): 2}
    assert uncounted({0: 5, 1: 7}, Stored(positions={0: 5, 1: 4})) == 3


def test_final_estimates_change_if_wrong_or_followed_by_another() -> None:
    counted = Recount({(1, T0 + n, 0): Counted(np.array([3]), 3, 2) for n in range(3)})
    finals = [Final(1, T0, 3, 2, 0), Final(1, T0 + 1, 2, 2, 0), Final(1, T0 + 2, 3, 2, 0, later=1)]
    assert finals_changed(finals_off(counted, finals), finals) == 2


def test_overdue_or_missing_final_estimates_are_late(configuration: Configuration) -> None:
    asked = {1: replace(named(configuration, "flash"), minimum_reports=2)}
    cells = {(1, T0 + n, 0): Counted(np.array([3]), reports, 1) for n, reports in ((0, 3), (5, 3), (10, 1))}
    cells[1, T0 + 20, 0] = Counted(np.array([3]), 3, 1)
    seconds = lateness([Final(1, T0 + n, 3, 1, (T0 + n + 9) * 1000 + 2500) for n in (0, 15)], asked)
    assert seconds == {(1, T0): 2.5, (1, T0 + 15): 2.5}
    # Only the second is late: of the others without an estimate, one is small and one still open.
    assert late(Recount(cells), seconds, asked, math.inf) == 1
    assert late(Recount(cells), seconds, asked, 2.0) == 2


def test_retired_collection_stops_counting_at_its_offset(configuration: Configuration) -> None:
    fruit = named(configuration, "fruit")
    judge = Judge(configuration.by_fingerprint(), 0, PARTITIONS, {fruit.fingerprint: 7})
    for offset in (6, 7):
        judge.take(T0 * 1000, draft_of(fruit, offset).encode(), offset)
    assert (judge.ids, judge.rejected) == ({draft_of(fruit, 6).pack_id}, {"unknown_collection": 1})


def test_gap_counts_only_while_records_wait() -> None:
    samples = [
        Sample(0.0, (0, 0), (9, 9)),  # workers start
        Sample(5.0, (1, 0), (9, 9)),
        Sample(6.0, (1, 0), (9, 9)),
        Sample(8.0, (9, 9), (9, 9)),  # 3 s
        Sample(20.0, (9, 9), (9, 9)),  # idle
        Sample(21.0, (9, 9), (10, 9)),
        Sample(22.0, (10, 9), (10, 9)),  # 2 s
    ]
    assert longest_gap(samples) == 3.0
    assert longest_gap([*samples, Sample(26.5, (10, 9), (11, 9))]) == 4.5
    assert longest_gap([]) == 0


def test_gap_of_one_partition_while_others_move() -> None:
    samples = [Sample(float(t), (t, min(t, 1) if t < 7 else t), (99, 99)) for t in range(9)]
    assert longest_gap(samples) == 1.0
    assert longest_partition_gap(samples, 2) == 6.0


def test_step_back_is_detected() -> None:
    samples = [Sample(0.0, (1, 5), (9, 9)), Sample(1.0, (2, 4), (9, 9)), Sample(2.0, (2, 6), (9, 9))]
    assert steps_back(samples) == 1
