"""The simulated coverage of numbers counts what intervals hold, and its rows show it."""

import numpy as np
import pytest

from bench.estimators.numbers import number_coverage
from bench.estimators.numbers.number_coverage import (
    CASE_OF,
    ERRORS,
    FAMILIES,
    NAMES,
    SHAPES,
    NumberCell,
    covered_rows,
    families,
    judged,
    least_again,
    number_cell,
    numbers_of,
    summary,
)
from bench.estimators.populations import channel_counts
from bench.sections import keep, table
from deniable.estimators.frequency.estimate import Estimate, IntervalEnds, QuantileEstimate, ScalarEstimate
from deniable.estimators.frequency.number import LEVELS
from deniable.estimators.mechanisms.square_wave import SquareWave


def test_intervals_are_judged_against_the_truth():
    empty = np.zeros(0)
    quantiles = tuple(QuantileEstimate(level, 5.0, 4.0, 6.0) for level in LEVELS)
    mean = ScalarEstimate(1.0, 0.5, 0.5, 1.5)
    found = Estimate("ems", 1, *[empty] * 4, empty > 0, mean=mean, quantiles=quantiles)
    assert judged(found, 1.25, np.array([3.0, 6.0, 6.5, *[5.0] * 5, 4.0])) == [
        (True, 0.25, 1.0),
        (False, 2.0, 2.0),
        (True, 1.0, 2.0),
        (False, 1.5, 2.0),
        *[(True, 0.0, 2.0)] * 5,
        (True, 1.0, 2.0),
    ]


def test_rows_count_by_their_true_share():
    rows = np.repeat([0.0, 1 / 32], 32)
    high = rows.copy()
    found = Estimate("ems", 1, *[rows] * 3, high, rows > 0)
    assert covered_rows(found, rows) == 1
    high[[0, 32, 40]] -= 1e-6
    assert covered_rows(found, rows) == 1 - 2 / 32


def test_families_are_all_rows_and_the_discoveries_of_nothing():
    shares = np.repeat([0.0, 1 / 32], 32)
    ends = IntervalEnds(np.zeros(64), np.ones(64))
    marked = np.isin(np.arange(64), [3, 4, 40, 41])
    found = Estimate("ems", 1, *[np.full(64, 1 / 64)] * 4, marked, for_all=ends)
    assert families(found, shares) == (True, 0.5)
    ends.high[50] = 0
    assert families(found, shares) == (False, 0.5)


def test_reports_follow_the_channel():
    """10 standard deviations of the commonest count, 1,000: a false alarm in 1e-20 of seeds."""
    mechanism = SquareWave.from_epsilon(0.0, 1.0, 16, 1.0)
    truth = np.full(16, 1000)
    counts = channel_counts(truth, mechanism, np.random.default_rng(1))
    assert counts.sum() == truth.sum()
    assert np.abs(counts - mechanism.channel @ truth).max() < 10 * np.sqrt(1000)


@pytest.mark.all
def test_numbers_are_in_the_range_and_the_same_each_time():
    for shape in SHAPES:
        numbers = numbers_of(shape, 1000)
        assert 0 <= numbers.min() <= numbers.max() <= 1
        assert (numbers.min() == numbers.max()) == (shape == "one end")
        np.testing.assert_array_equal(numbers, numbers_of(shape, 1000))


@pytest.mark.slow
def test_cell_has_a_figure_for_the_mean_and_each_quantile():
    found = number_cell(10_000, 4.0, "uniform", runs=2)
    assert [len(found.covered), len(found.errors), len(found.widths)] == [11, 10, 10]
    assert min(found.widths) > 0
    assert all(0 <= each <= 1 for each in found.covered)
    assert 0 < found.distance < 0.05


def a_cell(mean: float = 1.0) -> NumberCell:
    covered = (0.5, mean, 0.95, *[0.9] * 8)
    return NumberCell(covered, (0.1,) * 10, (0.3,) * 10, 0.2, 0.96, 0.04, 0.95)


def test_row_has_what_is_covered_and_errors():
    row = a_cell().row(1000, 2.0)
    errors = ["W1", *(f"error, {name}" for name in ERRORS), "width, 0.5"]
    assert list(row) == ["N", "epsilon", *NAMES, *FAMILIES, *errors]
    assert list(row.values())[:16] == [1000, "2", "50", "100", "95", *["90"] * 8, "96", "4", "95"]
    assert list(row.values())[16:] == ["0.20000", *["0.10000"] * 4, "0.30000"]
    assert summary([a_cell(), a_cell()]) == (
        "Rows 50.0 %, least 50 %; mean 100.0 %, least 100 %; quantiles 90.6 %, least 90 %;"
        " edges log 95.0 %, least 95 %."
    )


@pytest.mark.slow
def test_least_stored_mean_of_each_kind_is_run_again_with_other_noise(monkeypatch, tmp_path):
    monkeypatch.setattr(number_coverage, "FILE", tmp_path / "numbers.md")
    least = {"normal": 0.8, "rounded": 0.7}
    for shape in SHAPES:
        rows = [a_cell(mean).row(10_000, 4.0) for mean in (1.0, least.get(shape, 0.9))]
        keep(number_coverage.FILE, CASE_OF.format(shape), table(rows), [])
    rows = least_again(runs=2).rows
    assert [(row["shape"], row["before"]) for row in rows] == [("normal", "80"), ("rounded", "70")]
    again, other = (number_cell(10_000, 4.0, "normal", 2, seed) for seed in (2, 1))
    assert rows[0]["again"] == f"{100 * again.covered[1]:.1f}"
    assert again.errors != other.errors
