"""Intervals for known standard errors: published values, exact coverage, and what they never do."""

import time

import numpy as np
import pytest
from scipy.special import ndtr

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.intervals.acceptance import is_accepted, radius_of, region_of
from deniable.estimators.frequency.intervals.unified import unified_interval

ERRORS = (1e-6, 0.001, 0.05, 0.2, 0.255, 0.2552, 0.3, 1.0, 20.0)
#: The smallest and the largest, and where the interval of a half is the whole range at first.
HARD = (1e-6, 0.2552, 20.0)


def of_one(estimate: float, std_error: float) -> tuple[float, float]:
    low, high = unified_interval(np.array([estimate]), np.array([std_error]))
    return float(low[0]), float(high[0])


@pytest.mark.parametrize(
    ("estimate", "low", "high"),
    [(-3.0, 0.0, 0.42), (-1.0, 0.0, 1.10), (0.0, 0.0, 1.96), (1.0, 0.0, 2.96), (5.0, 3.04, 6.96)],
)
@pytest.mark.parametrize("error", [0.001, 0.1])
def test_published_intervals(estimate: float, low: float, high: float, error: float) -> None:
    """Table X of Feldman and Cousins, 95 %: in standard errors, to two decimals. Mirrored at 1."""
    found = np.array(of_one(estimate * error, error)) / error
    np.testing.assert_allclose(found, [low, high], atol=0.006)
    mirrored = (1 - np.array(of_one(1 - estimate * error, error))) / error
    np.testing.assert_allclose(mirrored, [high, low], atol=0.006)


@pytest.mark.parametrize(
    ("share", "most"),
    [(0.0, 9), (0.1, 9), (0.7, 9), (1.5, 9), (4.5, 9), (8.8, 9), (1, 2.5), (0.3, 1), (1, 1)],
)
def test_regions_match_a_search_over_all_estimates(share: float, most: float) -> None:
    """Rank estimates 0.001 apart by their likelihood ratio, and take the first ones up to 95 %."""
    estimates = np.arange(-8, most + 8, 0.001)
    best = np.clip(estimates, 0, most)
    ranked = np.argsort((estimates - share) ** 2 - (estimates - best) ** 2, kind="stable")
    mass = np.cumsum(np.exp(-((estimates[ranked] - share) ** 2) / 2)) * 0.001 / np.sqrt(2 * np.pi)
    taken = estimates[ranked[mass <= 0.95]]
    m, b = np.array([share]), np.array([float(most)])
    below, above = region_of(m, b, radius_of(m, b))
    assert max(below[0], -8) == pytest.approx(taken.min(), abs=0.005)
    assert min(above[0], most + 8) == pytest.approx(taken.max(), abs=0.005)
    inside = (below[0] + 1e-6 <= estimates) & (estimates <= above[0] - 1e-6)
    accepted = is_accepted(estimates, np.full(len(estimates), share), np.full(len(estimates), float(most)))
    np.testing.assert_array_equal(accepted, inside)


def ends_over(error: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimates from 9 standard errors below 0 to 9 above 1, and the ends of their intervals."""
    near = np.linspace(-9, 9, 18_001) * error
    estimates = np.unique(np.concatenate([near, 1 + near, np.linspace(0, 1, 1001)]))
    return estimates, *unified_interval(estimates, np.full(len(estimates), error))


hard_errors = pytest.mark.parametrize(
    "error", [each if each in HARD else pytest.param(each, marks=pytest.mark.nightly) for each in ERRORS]
)


@pytest.mark.slow
@hard_errors
@pytest.mark.parametrize("shares", [11, pytest.param(41, marks=pytest.mark.nightly)])
def test_every_share_is_covered_with_95_percent(error: float, shares: int) -> None:
    """Exact: the estimates whose interval holds a share are an interval, and its probability is summed.

    Its ends are known to half of 0.01 standard errors, which is a probability of 0.0005.
    """
    distances = np.linspace(0, 5, shares) * error
    errors = np.linspace(-9, 9, 1801)
    for share in np.clip(np.concatenate([distances, 1 - distances, [0.5]]), 0, 1):
        low, high = unified_interval(share + errors * error, np.full(len(errors), error))
        first, last = np.flatnonzero((low <= share) & (share <= high))[[0, -1]]
        covered = ndtr(errors[last] + 0.005) - ndtr(errors[first] - 0.005)
        assert covered == pytest.approx(0.95, abs=9e-4)


@pytest.mark.slow
@pytest.mark.parametrize("error", ERRORS)
def test_intervals_are_monotone_never_empty_and_hold_the_nearest_share(error: float) -> None:
    estimates, low, high = ends_over(error)
    assert (np.diff(low) >= -1e-12).all()
    assert (np.diff(high) >= -1e-12).all()
    assert (low < high).all()
    assert low.min() == 0
    assert high.max() == 1
    best = np.clip(estimates, 0, 1)
    assert ((low <= best) & (best <= high)).all()
    assert (low[estimates <= 1.64 * error] == 0).all()


@pytest.mark.parametrize("error", [1e-12, 1e-17, 1e-100, 1e-300, 5e-324])
@pytest.mark.parametrize("estimate", [-5.0, 0.0, 0.5, 1.0, 5.0])
def test_errors_that_floats_do_not_tell_apart_still_give_a_width(estimate: float, error: float) -> None:
    low, high = of_one(estimate, error)
    assert 0 <= low < high <= 1
    assert low <= np.clip(estimate, 0, 1) <= high
    assert high - low < 1e-11


def test_intervals_of_shares_far_from_0_and_1_are_symmetric() -> None:
    low, high = of_one(0.4, 0.05)
    assert low == pytest.approx(0.4 - 1.959964 * 0.05, abs=1e-8)
    assert high == pytest.approx(0.4 + 1.959964 * 0.05, abs=1e-8)


@pytest.mark.slow
@hard_errors
def test_clipping_an_estimate_only_widens_its_interval(error: float) -> None:
    estimates, low, high = ends_over(error)
    clipped = unified_interval(np.clip(estimates, 0, 1), np.full(len(estimates), error))
    assert (clipped[0] <= low + 1e-12).all()
    assert (clipped[1] >= high - 1e-12).all()


def test_without_information_the_interval_is_everything() -> None:
    assert of_one(0.0, np.inf) == of_one(0.7, np.inf) == (0.0, 1.0)
    assert of_one(0.3, 1e9) == (0.0, 1.0)


def test_a_larger_bound_scales_with_the_estimate() -> None:
    estimates, errors = np.array([-0.1, 0.2, 1.4, 2.9]), np.array([0.1, 0.15, 0.9, 0.2])
    tripled = unified_interval(3 * estimates, 3 * errors, most=3)
    for ends, scaled in zip(unified_interval(estimates, errors), tripled, strict=True):
        np.testing.assert_allclose(3 * ends, scaled, rtol=1e-12)


@pytest.mark.nightly
def test_1_400_000_intervals_take_less_than_a_second() -> None:
    """CPU time, best of 3 runs; 0.2 s on an idle machine."""
    estimates = np.random.default_rng(1).normal(0, 0.001, 1_400_000)
    errors = np.full(len(estimates), 0.001)
    times = []
    for _ in range(3):
        start = time.process_time()
        unified_interval(estimates, errors)
        times.append(time.process_time() - start)
    assert min(times) < 1
