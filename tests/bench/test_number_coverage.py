"""The simulated coverage of numbers counts what intervals hold, and its table shows it."""

import numpy as np
import pytest

from bench.estimators.numbers.number_coverage import (
    FAMILIES,
    NAMES,
    SHAPES,
    NumberCell,
    again_table,
    covered_rows,
    families,
    judged,
    least_again,
    number_cell,
    number_table,
    numbers_of,
    report_counts_of,
)
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
    counts = report_counts_of(truth, mechanism, np.random.default_rng(1))
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


def test_table_has_a_row_for_each_epsilon():
    covered = (0.5, 1.0, 0.95, *[0.9] * 8)
    cells = [
        NumberCell(1000, 2.0, shape, covered, (0.1,) * 10, (0.3,) * 10, 0.2, 0.96, 0.04, 0.95)
        for shape in SHAPES
    ]
    lines = number_table(cells).splitlines()
    assert lines[2] == f"| N | epsilon | {' | '.join((*NAMES, *FAMILIES))} |"
    assert lines[4] == "| 1,000 | 2 | 50 | 100 | 95 | 90 | 90 | 90 | 90 | 90 | 90 | 90 | 90 | 96 | 4 | 95 |"
    said = "rows 50.0 %, least 50 %; mean 100.0 %, least 100 %; quantiles 90.6 %, least 90 %"
    assert [
        f"All {kind}: {said}; edges log 95.0 %, least 95 %." in lines for kind in ("smooth", "jagged")
    ] == [True, True]
    assert lines[-1] == (
        "| 1,000 | 2 | one end | 0.20000 | 0.10000 | 0.10000 | 0.10000 | 0.10000 | 0.30000 |"
    )


@pytest.mark.slow
def test_least_mean_of_each_kind_is_run_again_with_other_noise():
    cells = [
        NumberCell(
            10_000, 4.0, shape, (1.0, mean, *[1.0] * 9), (0.1,) * 10, (0.3,) * 10, 0.2, 0.96, 0.04, 0.95
        )
        for shape, mean in (("uniform", 0.9), ("normal", 0.8), ("rounded", 0.7))
    ]
    pairs = least_again(cells, runs=2)
    assert [(before.shape, again.shape) for before, again in pairs] == [("normal",) * 2, ("rounded",) * 2]
    first = number_cell(10_000, 4.0, "normal", runs=2)
    assert pairs[0][1].errors != first.errors
    again = f"{100 * pairs[1][1].covered[1]:.1f}"
    assert again_table(pairs, runs=2).splitlines()[-1] == f"| 10,000 | 4 | rounded | 70 | {again} |"
