"""The bound that holds at every look: its equation solved, and its limits."""

import math

import numpy as np
import pytest

from deniable.estimators.frequency.intervals.bennett_bound import LOG_WEIGHTS, POINTS, bennett_bound


@pytest.mark.parametrize("step", [0.01, 1.3, 40.0])
@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_bound_is_where_the_mean_over_points_is_two_over_alpha(step: float, slope: float) -> None:
    """Solved beside it, point by point; never below, and at most 1 % above."""
    variance, rho, alpha = np.array([0.02, 3.0, 500.0]), np.array([0.1, 3.0, 80.0]), 1e-3
    bound = bennett_bound(variance, rho, np.array(step), np.array(slope), alpha)

    def log_mean(s: float, place: int) -> float:
        rates = POINTS / max(math.sqrt(rho[place]), step / 4)
        psi = (np.expm1(step * rates) - step * rates) / step**2
        gain = rates - psi * slope
        with np.errstate(over="ignore"):
            terms = np.where(gain > 0, LOG_WEIGHTS + gain * s - psi * variance[place], -np.inf)
        return float(np.logaddexp.reduce(terms))

    for place, s in enumerate(bound.tolist()):
        assert log_mean(s, place) >= math.log(2 / alpha) - 1e-9
        assert log_mean(0.99 * s, place) < math.log(2 / alpha)


def test_many_reports_have_the_bound_of_normal_errors() -> None:
    """Within 0.1 % of Robbins' mixture, from the first window to ten thousand rho."""
    rho, variance = np.ones(1), np.array([0.4, 1.0, 50.0, 1e4])
    bound = bennett_bound(variance, rho, np.array(1e-4), np.array(0.0), 0.01)
    expected = np.sqrt((variance + 1) * (np.log1p(variance) - 2 * math.log(0.01)))
    np.testing.assert_allclose(bound, expected, rtol=1e-3)


def test_unknown_variance_has_no_bound() -> None:
    found = bennett_bound(np.array([np.inf, 1.0]), np.ones(1), np.array(1.0), np.array(0.0), 0.05)
    assert found[0] == np.inf
    assert np.isfinite(found[1])
