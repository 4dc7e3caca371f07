"""Least squares solves what the rows determine, and marks columns they cannot separate."""

import numpy as np
import pytest
from scipy.sparse import csc_array

from deniable.estimators.decoding.equations.least_squares import BitEquations, solve
from tests.support.estimators.simulation import generator


def rows_of(observed):
    size = len(observed)
    return BitEquations(observed, np.linspace(1, 2, size), np.ones(size), excess=1.0)


def test_solution_satisfies_the_normal_equations():
    rng = generator(1)
    design, observed = rng.random((40, 5)), rng.normal(size=40)
    rows = rows_of(observed)
    solution = solve(csc_array(design), rows)
    normal = (design.T * rows.weight) @ design
    np.testing.assert_allclose(solution.inverse, np.linalg.inv(normal), rtol=1e-9)
    np.testing.assert_allclose(solution.estimate, solution.inverse @ (design.T @ (rows.weight * observed)))
    np.testing.assert_allclose(solution.residual, observed - design @ solution.estimate)
    assert solution.chi_square_ratio == pytest.approx(rows.weight @ solution.residual**2 / 35)
    assert not solution.confused.any()


@pytest.mark.parametrize("apart", [0.0, 1e-7], ids=["equal", "equal but for a ten-millionth"])
def test_only_columns_equal_up_to_rounding_are_confused(apart):
    rng = generator(2)
    design = rng.random((40, 4))
    design[:, 3] = design[:, 1] + apart * rng.random(40)
    rows = rows_of(design @ np.array([0.5, 0.2, 0.1, 0.2]))
    solution = solve(csc_array(design), rows)
    assert solution.confused.tolist() == [False, True, False, True]
    np.testing.assert_allclose(solution.estimate[[0, 2]], [0.5, 0.1], atol=1e-6)
    assert solution.estimate[[1, 3]].sum() == pytest.approx(0.4, abs=1e-6)


def test_ratio_is_1_without_degrees_of_freedom():
    assert solve(csc_array(np.eye(3)), rows_of(np.ones(3))).chi_square_ratio == 1


def test_rows_left_out_have_no_influence():
    """A row that is off by 100 changes nothing once it is left out; degrees of freedom do not count it."""
    rng = generator(3)
    design, left_out = csc_array(rng.random((40, 5))), np.arange(40) == 7
    theta = np.array([0.3, 0.1, 0.2, 0.0, 0.4])
    observed = design @ theta
    observed[7] += 100
    rows = rows_of(observed)
    assert np.abs(solve(design, rows).estimate - theta).max() > 1
    solution = solve(design, rows.without(left_out))
    np.testing.assert_allclose(solution.estimate, theta, atol=1e-12)
    assert solution.freedom == 34
