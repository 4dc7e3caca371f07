"""Intervals of shares, by default of 95 %, from normal estimates with known standard errors."""

from functools import cache

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import IntervalEnds
from deniable.estimators.frequency.intervals.acceptance import (
    LEVEL,
    is_accepted,
    quantile_of,
    radius_of,
    region_of,
)

# Bisections of an interval's end: to 1e-15 of the range.
_HALVINGS = 50
# Smaller errors, relative to `most`, are taken for this: far below what a float tells apart, and 1 over it is
# no overflow.
_LEAST_ERROR = 1e-200


def unified_interval(
    estimate: FloatArray, std_error: FloatArray, most: float = 1.0, level: float = LEVEL
) -> IntervalEnds:
    """Return the interval of Feldman and Cousins of every share.

    It covers every share in [0, most] with the probability `level`, if the errors are normal. At 95 % it is
    one-sided if the estimate is less than 1.645 standard errors above 0 or below `most`, and estimate ± 1.96
    standard errors if it is more than 3.92 away from both. It holds the estimate clipped to [0, most]. Its
    width is never 0: the upper end of an estimate of -x standard errors approaches 1.35 / x of them, and ends
    that are the same float are moved to the next ones.

    An estimate that was clipped to [0, most] gets the same interval or a wider one, which covers shares less
    than 1.96 standard errors from a boundary with 95 to 97.5 %.

    Parameters
    ----------
    estimate : float64 array (n,), unbiased, so it may be negative or above `most`.
    std_error : float64 array (n,), > 0; inf where nothing is known.
    most : largest possible share, > 0.
    level : probability of covering the true share, in [0.9, 1).

    Returns
    -------
    low and high, float64 arrays (n,), 0 <= low < high <= most; 0 and `most` where the error is inf.

    Source: Feldman, Cousins, Phys. Rev. D 57 (1998), section IV B and table X.
    """
    low, high = np.zeros(len(estimate)), np.full(len(estimate), float(most))
    is_known = np.isfinite(std_error)
    error = np.maximum(std_error[is_known], _LEAST_ERROR * most)
    x, bound = estimate[is_known] / error, most / error
    high[is_known] = most * _upper_end(x, bound, level)
    low[is_known] = most * (1 - _upper_end(bound - x, bound, level))
    is_point = low >= high
    low[is_point] = np.maximum(np.nextafter(low[is_point], -np.inf), 0)
    high[is_point] = np.minimum(np.nextafter(high[is_point], np.inf), most)
    return IntervalEnds(low, high)


def _upper_end(estimate: FloatArray, most: FloatArray, level: float) -> FloatArray:
    """Return the upper end over B; estimates and B, float64 arrays (n,), in standard errors.

    If B is at least twice the quantile (3.92 for 95 %), the regions of shares below B / 2 do not depend on B,
    and those above are their mirror images. The end solves x = m - r, or, for x < 0, x = (m - r² / m) / 2,
    with r from a table.
    """
    below, above, radius = _table(level)
    is_negative = estimate < 0
    found = np.where(
        is_negative, np.interp(estimate, below, radius), np.interp(most - estimate, above, radius)
    )
    falling = found**2 / (np.hypot(estimate, found) + np.abs(estimate))
    end = np.minimum(np.where(is_negative, falling, estimate + found) / most, 1)
    is_wide = most < 2 * quantile_of(level)
    end[is_wide] = _bisected_end(estimate[is_wide], most[is_wide], level)
    return end


@cache
def _table(level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Both ends and the radius of regions far from the upper boundary, by ascending share.

    Shares below 0.2, with a lower end below -6, have the radius at 0: of a normal, 1e-9 is below -6.
    """
    quantile = quantile_of(level)
    share = np.linspace(0.2, quantile + 0.04, 721)
    most = np.full(len(share), 4 * quantile)
    radius = radius_of(share, most, level)
    below, above = region_of(share, most, radius)
    return below, above, radius


def _bisected_end(estimate: FloatArray, most: FloatArray, level: float) -> FloatArray:
    """Return the largest accepted share over B: all below it, down to the best share, are accepted too."""
    low, high = np.clip(estimate / most, 0, 1), np.ones(len(estimate))
    accepted = is_accepted(estimate, most, most, level)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = is_accepted(estimate, middle * most, most, level)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.where(accepted, 1, high)
