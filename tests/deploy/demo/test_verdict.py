"""The demo's verdict: it passes what is honest and fails what is not, at the rates it states."""

from fractions import Fraction
from math import comb

import pytest

from deniable.deploy.demo.verdict import FALSE_ALARM_RATE, at_least, faults, most, tally
from tests.support.deploy.judged import REAL, judged


def test_misses_and_discoveries_are_named() -> None:
    one = judged(missed=2, false=1, found=3)
    assert one.misses() == ["real-0", "real-1"]
    assert one.discoveries() == ["real-0", "real-1", "decoy-0"]
    assert one.true_frequency("real-5") == 1 / REAL
    assert one.true_frequency("decoy-5") == 0


def test_decoys_are_no_part_of_the_coverage() -> None:
    one = judged(missed=0, false=0)
    one.estimate.low[REAL:] = 0.5
    assert one.misses() == []


@pytest.mark.parametrize(
    ("missed", "message"), [(0, []), (20, []), (21, ["21 of 121 intervals of 95 % miss"])]
)
def test_intervals_fail_from_21_misses_on(missed: int, message: list[str]) -> None:
    found = faults([judged(missed, 0)])
    assert [sentence.removesuffix(" the truth") for sentence in found] == message


@pytest.mark.parametrize(("false", "message"), [(18, []), (19, ["19 of 100 significant values are decoys"])])
def test_discoveries_fail_when_too_many_are_decoys(false: int, message: list[str]) -> None:
    assert faults([judged(0, false)]) == message


def test_both_collections_count_together() -> None:
    """16 + 105 values: neither collection alone would fail."""
    carrier, place = judged(7, 0, real=16, found=16), judged(14, 0, real=105)
    assert faults([place]) == []
    assert faults([carrier, place]) == ["21 of 121 intervals of 95 % miss the truth"]


def test_no_discoveries_at_all_are_no_false_ones() -> None:
    assert faults([judged(0, 0, found=0)]) == []


@pytest.mark.parametrize(
    ("hits", "trials", "rate"), [(0, 10, 0.05), (1, 10, 0.05), (21, 121, 0.05), (5, 5, 0.3)]
)
def test_the_tail_is_the_binomials(hits: int, trials: int, rate: float) -> None:
    exact = Fraction(rate)
    tail = 1 - sum(comb(trials, i) * exact**i * (1 - exact) ** (trials - i) for i in range(hits))
    assert at_least(hits, trials, rate) == pytest.approx(float(tail), rel=1e-9)


def test_the_rates_are_those_that_the_docstring_states() -> None:
    assert at_least(21, REAL, 0.05) < FALSE_ALARM_RATE == 1e-6 < at_least(20, REAL, 0.05)
    assert at_least(21, REAL, 0.30) > 0.998


def test_largest_allowed_count_is_where_the_test_fails() -> None:
    assert (most(REAL, 0.05), most(100, 0.05), most(0, 0.05)) == (20, 18, 0)


def test_the_tally_is_that_of_all_collections() -> None:
    counted = tally([judged(2, 1, found=3), judged(1, 0, found=5)])
    assert (counted.real, counted.missed, counted.found, counted.false) == (2 * REAL, 3, 8, 1)
