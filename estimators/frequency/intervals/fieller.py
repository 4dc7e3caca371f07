"""95 % intervals of a part's share of a whole where both are estimates, and noise may hide the whole."""

import numpy as np
from scipy.special import pdtrik

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import QUANTILE_975, Shares, shown_interval
from deniable.estimators.frequency.intervals.acceptance import LEVEL

_ONE_HOLDER = 0.25
# Beyond, a Poisson is normal.
_MOST_EXPECTED = 1e15


def _quantile(variance: FloatArray) -> FloatArray:
    """Return how many standard errors the interval reaches, float64 (K1, K2), >= 1.96.

    The quantile of a Poisson variable of this variance, in reports squared, plus that of one holder more than
    estimated, whose report is true or false.
    """
    expected = np.minimum(variance + _ONE_HOLDER, _MOST_EXPECTED)
    reach = pdtrik((1 + LEVEL) / 2, expected) + 1 - expected
    quantile: FloatArray = np.maximum(reach / np.sqrt(variance), QUANTILE_975)
    return quantile


def fieller_shares(
    frequency: FloatArray,
    part: FloatArray,
    whole: FloatArray,
    variances: tuple[FloatArray, FloatArray, FloatArray],
    step: float,
) -> Shares:
    """Return shares r = x / X with Fieller's intervals: all r with |x - r X| <= 1.96 s(r).

    The mean of x - r X is 0 at the true r, however small X is, and s(r) is its standard error. So the set
    covers r with 95 % without a choice of those wholes that noise has lifted, which would cover less. It is
    bounded if X is more than 1.96 standard errors above 0.

    A true part is in [0, X], so x is clipped to that first. The set then holds 0 or 1 where it would be
    empty in [0, 1], and all that it held before, so it covers at least as much.

    Parameters
    ----------
    frequency : float64 array (K1, K2), point estimates of r, in [0, 1].
    part : float64 array (K1, K2), x, unbiased.
    whole : float64 array (K1, 1), X, unbiased.
    variances : s(r)² at r = 0, 1/2 and 1, float64 arrays (K1, K2), > 0; it is quadratic.
    step : the most that one report adds to x, > 0.

    Returns
    -------
    Shares of shape (K1, K2). The standard error is s(r) / X at the estimated r; it is inf, and the interval
    all of [0, 1], where the set is not bounded, or holds all of [0, 1].

    Source: Fieller, "Some problems in interval estimation", J. R. Statist. Soc. B 16 (1954), section 3.
    """
    at_0, at_half, at_1 = variances
    square = 2 * (at_0 + at_1 - 2 * at_half)  # s(r)² = at_0 + slope r + square r²
    slope = at_1 - at_0 - square
    limit = _quantile(np.minimum(np.minimum(at_0, at_1), at_half) / step**2) ** 2
    bounded = (whole > 0) & (whole**2 > limit * square)
    x, known_whole = np.clip(part, 0, np.maximum(whole, 0)), np.where(bounded, whole, 1)
    # lead r² + 2 half r + last <= 0; its discriminant is >= 0, since r = x / X solves it.
    lead = np.where(bounded, whole**2 - limit * square, 1)
    half = -x * whole - limit * slope / 2
    last = x**2 - limit * at_0
    root = np.sqrt(np.maximum(half**2 - lead * last, 0))
    low, high = (-half - root) / lead, (-half + root) / lead
    low, high = shown_interval(np.where(bounded, low, 0), np.where(bounded, high, 1), frequency)
    is_known = bounded & ((low > 0) | (high < 1))
    ratio = np.clip(part / known_whole, 0, 1)
    error = np.sqrt(at_0 + slope * ratio + square * ratio**2) / known_whole
    return Shares(frequency, np.where(is_known, error, np.inf), low, high)
