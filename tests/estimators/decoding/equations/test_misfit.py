"""Misfit: its part of the error, what it covers, and candidates that it makes unreliable."""

import numpy as np
import pytest
from scipy.sparse import csc_array

from deniable.estimators.decoding.equations.misfit import (
    badly_fitting,
    misfit_weight,
    moderate,
    mostly_unexplained,
    ratio_limit,
    shift_deviation,
)
from deniable.estimators.frequency.estimate import QUANTILE_975
from tests.support.estimators.simulation import generator

ROWS, COLUMNS, SUPPORT = 1024, 300, 16


def test_moderation_weights_own_rows_against_16():
    factors = moderate(np.array([0.5, 2.0, 5.0]), np.array([16, 16, 48]), 1.5)
    np.testing.assert_allclose(factors, [1.5, 1.75, (1.5 + 3 * 5.0) / 4])
    assert moderate(np.array([0.5]), np.array([16]), 0.8)[0] == 1


def test_no_misfit_adds_no_error():
    assert shift_deviation(np.array([4.0, 4.0]), np.array([1.0, 0.5])).tolist() == [0, 0]
    assert shift_deviation(np.array([4.0]), np.array([5.0]))[0] == np.sqrt(4 * 4)
    assert misfit_weight(1.1, 700) == 1
    assert misfit_weight(1.2, 700) == 4
    assert misfit_weight(1.2, 70) == 1
    assert misfit_weight(1.08, 700) == 1
    assert misfit_weight(1.08, 700, is_incomplete=True) == 4
    assert misfit_weight(1.05, 700, is_incomplete=True) == 1


@pytest.mark.parametrize(("shift", "quantile"), [(5.9, 1.2815515655446004), (7.0, 0.8416212335729143)])
def test_intervals_cover_fixed_shifts_whatever_the_sampling_error(shift, quantile):
    """Half the interval is at least the shift and what 90, or 80 %, of sampling errors stay below."""
    sampling = np.linspace(0, 30, 3001)[1:]
    misfit = misfit_weight(2.0, 700) * shift_deviation(np.ones(1), np.array([2.0]))
    assert (QUANTILE_975 * np.hypot(sampling, misfit) >= shift + quantile * sampling).all()


def columns_of(rng):
    design = np.zeros((ROWS, COLUMNS))
    for column in range(COLUMNS):
        design[rng.choice(ROWS, SUPPORT, replace=False), column] = 1
    return csc_array(design)


def test_a_complete_list_is_rarely_called_unreliable():
    """300 windows, 1 % of which may flag a column: more than 15 do with probability 1e-6.

    Caught with 99.9 %: a limit for one column instead of 300 (some column is flagged in most windows).
    """
    rng = generator(1)
    design, explained = columns_of(rng), np.ones(ROWS, bool)
    flagged = sum(badly_fitting(design, explained, rng.chisquare(1, ROWS), 1.0).any() for _ in range(300))
    assert flagged <= 15


def test_rows_that_fit_far_worse_than_others_are_flagged():
    rng = generator(2)
    design, explained = columns_of(rng), np.ones(ROWS, bool)
    squares = np.ones(ROWS)
    squares[design[:, [5]].indices] = 6.0
    found = badly_fitting(design, explained, squares, 1.0)
    assert np.flatnonzero(found).tolist() == [5]
    assert not badly_fitting(design, explained, squares, 6.0).any()
    explained[design[:, [5]].indices] = False
    assert not badly_fitting(design, explained, squares, 1.0).any()


def test_too_few_explained_rows_are_flagged():
    """Column 0 has 4 rows, column 1 has 2. Of a complete list, half the rows are enough."""
    design = csc_array(np.array([[1, 1], [1, 1], [1, 0], [1, 0]], float))
    explained = np.array([True, True, False, True])
    assert mostly_unexplained(design, explained, True).tolist() == [False, True]
    assert mostly_unexplained(design, explained, False).tolist() == [False, False]
    assert mostly_unexplained(design, explained & [False, True, True, True], True).tolist() == [True, True]
    assert mostly_unexplained(design, np.array([False, False, False, True]), False).tolist() == [True, True]


def test_limit_of_the_ratio_falls_with_the_degrees_of_freedom():
    assert ratio_limit(718) == pytest.approx(1 + 4.75 * np.sqrt(2 / 718), abs=0.03)
    assert ratio_limit(0) == ratio_limit(1) == pytest.approx(23.93, abs=0.01)
