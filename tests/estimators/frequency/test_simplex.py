"""Solutions on the simplex satisfy the optimality conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.frequency.simplex import minimize_quadratic, project_to_simplex
from tests.support.estimators.simulation import generator


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12))
def test_projection_is_the_nearest_distribution(values):
    """It is nearest iff no vertex is further in the direction of the removed part."""
    point = np.array(values)
    nearest = project_to_simplex(point)
    assert nearest.min() >= 0
    assert nearest.sum() == pytest.approx(1, abs=1e-12)
    lean = point - nearest
    assert lean.max() <= lean @ nearest + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_quadratic_is_at_its_minimum(seed):
    """It is the minimum iff the objective decreases towards no vertex. The last entry has no curvature."""
    rng = generator(seed)
    size = int(rng.integers(2, 60))
    rows = rng.random((size + 5, size)) * (rng.random((size + 5, size)) < 0.3)
    hessian = np.zeros((size + 1, size + 1))
    hessian[:size, :size] = rows.T @ rows + 1e-6 * np.eye(size)
    linear = np.append(rng.normal(size=size), 0.0)
    theta = minimize_quadratic(hessian, linear, np.full(size + 1, 1 / (size + 1)))
    gradient = hessian @ theta - linear
    assert theta.min() >= 0
    assert theta.sum() == pytest.approx(1, abs=1e-12)
    assert gradient @ theta - gradient.min() < 1e-9
    np.testing.assert_allclose(minimize_quadratic(hessian, linear, np.eye(size + 1)[0]), theta, atol=1e-6)
