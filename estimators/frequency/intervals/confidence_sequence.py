"""Intervals of a share that hold at every look: confidence sequences of the mean over windows.

The mean over windows is weighted by reports, so it is the share among all reports so far. A 95 % interval
of a roll-up holds it with 95 % at one time. These hold it at all times together, from the first window on,
however often anyone looks and whenever they stop.
"""

import math

import numpy as np
from scipy.special import ndtri

from estimators.arrays import FloatArray
from estimators.frequency.estimate import IntervalEnds

#: The width is least, in standard errors, after as many reports as in this many first windows.
TUNED_WINDOWS = 20


def mean_over_windows(unbiased: FloatArray, reports: FloatArray) -> FloatArray:
    """Return the mean after each window, weighted by reports.

    Parameters
    ----------
    unbiased : float64 array (windows, n), unconstrained estimates, in the order of the windows.
    reports : float64 array (windows,), reports of each window, > 0.

    Returns
    -------
    float64 array (windows, n), fractions of all reports so far, unbiased.
    """
    return np.cumsum(unbiased * reports[:, None], axis=0) / np.cumsum(reports)[:, None]


def sequence_of_independent(
    unbiased: FloatArray, std_error: FloatArray, reports: FloatArray, alpha: float
) -> IntervalEnds:
    """Return a confidence sequence for windows whose noise is independent.

    Let S be the sum of the windows' errors, each times its reports, and V the sum of their variances. For
    normal errors exp(l S - l² V / 2) is a martingale for every l, and so is the mean over l ~ N(0, 1 / rho):

        sqrt(rho / (V + rho)) exp(S² / (2 (V + rho))).

    By Ville's inequality it ever reaches 1 / alpha with probability at most alpha. So at all windows together

        |S| < sqrt((V + rho) ln((V + rho) / (rho alpha²))).

    Errors of windows are near normal, and their variances are estimates, so this holds asymptotically. Before
    the bound is added, means are clipped to [0, 1], which only brings them nearer to the true ones.

    Parameters
    ----------
    unbiased : float64 array (windows, n), unconstrained estimates, in the order of the windows.
    std_error : float64 array (windows, n), > 0; inf makes all ends from there on 0 and 1.
    reports : float64 array (windows,), reports of each window, > 0.
    alpha : probability that a value's true mean is ever missed, in (0, 1); divide by n for all values at
    once.

    Returns
    -------
    IntervalEnds of shape (windows, n), within [0, 1], low < high.

    Source: Robbins, "Statistical methods related to the law of the iterated logarithm", Ann. Math. Statist.
    41 (1970); Howard et al., "Time-uniform, nonparametric, nonasymptotic confidence sequences", Ann.
    Statist. 49 (2021), equation 14, and section 3.5 for rho; Waudby-Smith et al. (arXiv 2103.06476) for
    estimated variances.
    """
    variance = np.cumsum((std_error * reports[:, None]) ** 2, axis=0)
    rho = variance[0] * TUNED_WINDOWS / _tuning(alpha)
    with np.errstate(invalid="ignore"):
        bound = np.sqrt((variance + rho) * (np.log1p(variance / rho) - 2 * math.log(alpha)))
    half = np.where(np.isfinite(variance), bound, np.inf) / np.cumsum(reports)[:, None]
    return _around(mean_over_windows(unbiased, reports), half)


def sequence_of_any(
    unbiased: FloatArray, std_error: FloatArray, reports: FloatArray, alpha: float
) -> IntervalEnds:
    """Return a confidence sequence whatever the windows' errors have in common, as with returning clients.

    Window t has an interval that misses with probability alpha / (t (t + 1)). These sum to alpha, so all of
    them hold at once, and so do their means. The width does not fall with the number of windows: permanent
    noise of clients who return in every window does not average out.

    Parameters
    ----------
    unbiased, std_error, reports, alpha : see `sequence_of_independent`.

    Returns
    -------
    IntervalEnds of shape (windows, n), within [0, 1], low < high.
    """
    place = np.arange(1, len(reports) + 1)
    quantile = -ndtri(alpha / (place * (place + 1)) / 2)
    half = mean_over_windows(std_error * quantile[:, None], reports)
    return _around(mean_over_windows(unbiased, reports), half)


def sequence_of_totals(
    unbiased: FloatArray, std_error: FloatArray, reports: FloatArray, alpha: float, *, repeated: bool
) -> IntervalEnds:
    """Return the last look of a sequence from the sum of all windows, as a roll-up has it.

    The variance of a report is taken to be the same in all windows.

    Parameters
    ----------
    unbiased, std_error : float64 arrays (n,), of all windows together, for independent reports.
    reports : float64 array (windows,), reports of each window, > 0, in the order of the windows.
    alpha : see `sequence_of_independent`.
    repeated : True for `sequence_of_any`.

    Returns
    -------
    Ends of shape (n,), within [0, 1], low < high.
    """
    total = float(reports.sum())
    if repeated:
        place = np.arange(1, len(reports) + 1)
        quantile = -ndtri(alpha / (place * (place + 1)) / 2)
        width = float(np.sqrt(reports) @ quantile) / math.sqrt(total)
    else:
        rho = float(reports[0]) / total * TUNED_WINDOWS / _tuning(alpha)
        width = math.sqrt((1 + rho) * (math.log1p(1 / rho) - 2 * math.log(alpha)))
    return _around(unbiased, width * std_error)


def _tuning(alpha: float) -> float:
    """Return V / rho where the width in standard errors is least (Howard et al., section 3.5, nearly)."""
    return 2 * math.log(1 / alpha) + math.log1p(2 * math.log(1 / alpha))


def _around(mean: FloatArray, half: FloatArray) -> IntervalEnds:
    inside = np.clip(mean, 0, 1)
    return IntervalEnds(np.maximum(inside - half, 0), np.minimum(inside + half, 1))
