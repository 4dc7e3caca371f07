"""Least squares solves what the rows determine, and marks columns they cannot separate."""

import numpy as np
import pytest
from scipy.sparse import csc_array

from estimators.decoding.least_squares import BitEquations, moderate, solve
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


def test_moderation_weights_own_rows_against_16():
    factors = moderate(np.array([0.5, 2.0, 5.0]), np.array([16, 16, 48]), 1.5)
    np.testing.assert_allclose(factors, [1.5, 1.75, (1.5 + 3 * 5.0) / 4])
    assert moderate(np.array([0.5]), np.array([16]), 0.8)[0] == 1
