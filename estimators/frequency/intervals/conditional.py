"""Estimates and 95 % intervals of shares that are reported because they passed a threshold."""

import numpy as np
from scipy.special import log_ndtr

from deniable.estimators.arrays import FloatArray

_HALVINGS = 60
_FARTHEST = 40.0  # standard errors below an estimate; beyond, no share is at this distance from a threshold


def selected_quantile(
    estimate: FloatArray, std_error: FloatArray, threshold: FloatArray, probability: float
) -> FloatArray:
    """Return the share with which an estimate that passed its threshold is at most this one as often.

    A share f with the normal estimate X and error s is only reported if X > c. Then P(X <= x) is
    1 - Q((x - f) / s) / Q((c - f) / s), Q the tail of a normal, which falls with f. So the share at 0.5 is
    unbiased in the median, and those at 0.975 and 0.025 are the ends of an interval that covers f in 95 % of
    the times it is reported, however few those are. Far above the threshold they are x and x -+ 1.96 s.

    Parameters
    ----------
    estimate : float64 array (n,), x, unbiased before the selection, >= the threshold.
    std_error : float64 array (n,), s > 0.
    threshold : float64 array (n,), c.
    probability : in (0, 1).

    Returns
    -------
    float64 array (n,), any reals, not below x - 40 s.

    Source: Weinstein, Fithian, Benjamini, "Selection adjusted confidence intervals with more power to
    determine the sign" (JASA 108, 2013), section 2.
    """
    above, past = estimate / std_error, threshold / std_error
    low, high = above - _FARTHEST, above + _FARTHEST
    wanted = np.log1p(-probability)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        # Of the tails; it rises with the share.
        is_above = log_ndtr(middle - above) - log_ndtr(middle - past) > wanted
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    found: FloatArray = (low + high) / 2 * std_error
    return found


def selected_interval(
    estimate: FloatArray, std_error: FloatArray, threshold: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return low and high, float64 arrays (n,), of the 95 % interval of `selected_quantile`."""
    low, high = (selected_quantile(estimate, std_error, threshold, each) for each in (0.975, 0.025))
    return low, high
