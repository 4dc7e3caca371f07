"""Fieller's intervals of a part of a noisy whole: they solve its equation, and cover without a selection."""

import numpy as np
import pytest

from deniable.estimators.frequency.intervals.fieller import fieller_shares
from tests.support.estimators.simulation import generator

Variances = tuple[np.ndarray, np.ndarray, np.ndarray]

#: What one report adds where errors are normal.
MANY = 1e-7


def separate(part: np.ndarray, rest: np.ndarray) -> Variances:
    """Variances of x - r X, where x and the rest of X have separate noise: (1 - r)² v + r² w."""
    return part, (part + rest) / 4, rest


def shares_of(part: float, whole: float, variances: Variances) -> tuple[float, float, float]:
    """Standard error, low and high of one share, whose point estimate is x / X in [0, 1]."""
    frequency = np.array([[min(max(part / whole, 0.0), 1.0)]])
    found = fieller_shares(frequency, np.array([[part]]), np.array([[whole]]), variances, MANY)
    return found.std_error.item(), found.low.item(), found.high.item()


@pytest.mark.parametrize("part", [0.3, 0.5, 0.6])
def test_ends_are_1_96_standard_errors_from_the_line(part):
    v, w = np.array([[0.0004]]), np.array([[0.0009]])
    error, low, high = shares_of(part, 1.0, separate(v, w))
    for end in (low, high):
        distance = abs(part - end) / np.sqrt((1 - end) ** 2 * v.item() + end**2 * w.item())
        assert distance == pytest.approx(1.959964, abs=1e-5)
    assert error == pytest.approx(np.sqrt((1 - part) ** 2 * v.item() + part**2 * w.item()))


@pytest.mark.parametrize(("part", "end"), [(-0.5, 0), (1.5, 1)])
def test_a_part_outside_of_the_whole_still_has_an_interval(part, end):
    """20 standard errors outside: the set itself would be empty."""
    v = np.array([[0.0004]])
    error, low, high = shares_of(part, 1.0, separate(v, v))
    assert low <= end <= high
    assert 0.03 < high - low < 0.05
    assert np.isfinite(error)


@pytest.mark.parametrize("whole", [-1.0, 0.01, 0.027])
def test_a_whole_that_noise_hides_says_nothing(whole):
    """Its standard error is .0141, so up to .0277 it may be 0."""
    v = np.array([[0.0001]])
    assert shares_of(0.02, whole, separate(v, v)) == (np.inf, 0, 1)


def test_an_interval_of_all_shares_says_nothing_though_the_whole_is_known():
    """The whole is 2.1 standard errors above 0, and half of it is the part."""
    v = np.array([[1.0]])
    assert shares_of(1.5, 3.0, separate(v, v)) == (np.inf, 0, 1)


@pytest.mark.parametrize("distance", [2.0, 3.0, 4.0, 6.0, 20.0])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.6, 1.0])
def test_all_intervals_together_cover_at_the_stated_rate(share, distance):
    """20,000 wholes that are `distance` standard errors above 0: 95 % and 5 deviations of .0015, 1e-6.

    Those chosen because noise lifts them over 4 standard errors cover 86 % of shares of 0.
    """
    rng, (v, w) = generator(1), (np.full((20_000, 1), 1.0), np.full((20_000, 1), 2.0))
    whole = distance * np.sqrt(3)
    part = rng.normal(share * whole, 1, v.shape)
    rest = rng.normal((1 - share) * whole, np.sqrt(2), v.shape)
    ratio = np.clip(part / np.where(part + rest > 0, part + rest, np.inf), 0, 1)
    found = fieller_shares(ratio, part, part + rest, separate(v, w), MANY)
    assert (found.low < found.high).all()
    assert ((found.low <= share) & (share <= found.high)).mean() > 0.9425
