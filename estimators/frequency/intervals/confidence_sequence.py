"""Intervals of a share that hold at every look: confidence sequences of the mean over windows.

The mean over windows is weighted by reports, so it is the share among all reports so far. A 95 % interval
of a roll-up holds it with 95 % at one time. These hold it at all times together, from the first window on,
however often anyone looks and whenever they stop.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import IntervalEnds
from deniable.estimators.frequency.intervals.bennett_bound import bennett_bound

#: The width is least, in standard errors, after as many reports as in this many first windows.
TUNED_WINDOWS = 20
ALL_LOOKS = slice(None)


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


class ReportSteps(NamedTuple):
    """What one report does to an estimate, times the number of reports.

    Parameters
    ----------
    most : the most that one report's error is, >= 0; 0 takes errors to be normal.
    slope : by how much the variance of a report is larger for each unit by which the share is.
    """

    most: float = 0.0
    slope: float = 0.0


#: Errors are taken to be normal: for windows of many reports.
NORMAL = ReportSteps()


def sequence_of_independent(
    unbiased: FloatArray,
    std_error: FloatArray,
    reports: FloatArray,
    alpha: float,
    steps: ReportSteps = NORMAL,
    looks: slice = ALL_LOOKS,
) -> IntervalEnds:
    """Return a confidence sequence for windows whose noise is independent.

    Let S be the sum of the windows' errors, each times its reports, and V the sum of their variances. S is a
    sum over reports, too, each of which adds at most `steps.most`. So S stays within `bennett_bound` at all
    windows together, however few reports there are. With `NORMAL` that is Robbins' normal mixture,

        |S| < sqrt((V + rho) ln((V + rho) / (rho alpha²))).

    V is that of the estimated shares; if their mean is too low by x, it is larger by `steps.slope` x, which
    the bound solves for. Where V is not linear in the share, slope 0, this holds asymptotically. So does
    rho, which is taken from the first window. Before the bound is added, means are clipped to [0, 1], which
    only brings them nearer to the true ones.

    Parameters
    ----------
    unbiased : float64 array (windows, n), unconstrained estimates, in the order of the windows.
    std_error : float64 array (windows, n), > 0; inf makes all ends from there on 0 and 1.
    reports : float64 array (windows,), reports of each window, > 0.
    alpha : probability that a value's true mean is ever missed, in (0, 1); divide by n for all values at
        once.
    steps : of one report, in fractions like `unbiased`.
    looks : after which windows ends are returned, all of them unless given.

    Returns
    -------
    IntervalEnds of shape (looks, n), within [0, 1], low < high.

    Source: Robbins, "Statistical methods related to the law of the iterated logarithm", Ann. Math. Statist.
    41 (1970); Howard et al., "Time-uniform, nonparametric, nonasymptotic confidence sequences", Ann.
    Statist. 49 (2021), equation 14, and section 3.5 for rho; Waudby-Smith et al. (arXiv 2103.06476) for
    estimated variances.
    """
    variance = np.cumsum((std_error * reports[:, None]) ** 2, axis=0)
    rho = variance[0] * TUNED_WINDOWS / _tuning(alpha)
    total = np.cumsum(reports)[looks, None]
    mean = mean_over_windows(unbiased, reports)[looks]
    # Shares of windows are clipped for their variances. Of one near 1 that leaves out half of the noise.
    clipped = mean_over_windows(np.clip(unbiased, 0, 1), reports)[looks]
    left_out = np.maximum(steps.slope * (np.clip(mean, 0, 1) - clipped) * total, 0)
    return _within(mean, variance[looks] + left_out, rho, total, alpha, steps)


def sequence_of_any(
    unbiased: FloatArray,
    std_error: FloatArray,
    reports: FloatArray,
    alpha: float,
    steps: ReportSteps = NORMAL,
    looks: slice = ALL_LOOKS,
) -> IntervalEnds:
    """Return a confidence sequence whatever the windows' errors have in common, as with returning clients.

    Window t has an interval that misses with probability alpha / (t (t + 1)). These sum to alpha, so all of
    them hold at once, and so do their means. The width does not fall with the number of windows: permanent
    noise of clients who return in every window does not average out. Intervals are those of normal errors,
    and the term of Bernstein's inequality for what single reports add; so they hold asymptotically.

    Parameters
    ----------
    unbiased, std_error, reports, alpha, steps, looks : see `sequence_of_independent`.

    Returns
    -------
    IntervalEnds of shape (looks, n), within [0, 1], low < high.
    """
    place = np.arange(1, len(reports) + 1)
    quantile = quantiles_of_any(place, alpha)
    half = mean_over_windows(std_error * quantile[:, None], reports)
    few = np.cumsum(_steps_of_any(place, alpha, steps)) / np.cumsum(reports)
    return around(mean_over_windows(unbiased, reports)[looks], (half + few[:, None])[looks])


def sequence_of_totals(
    unbiased: FloatArray,
    std_error: FloatArray,
    reports: FloatArray,
    alpha: float,
    steps: ReportSteps = NORMAL,
    *,
    repeated: bool,
) -> IntervalEnds:
    """Return the last look of a sequence from the sum of all windows, as a roll-up has it.

    The variance of a report is taken to be the same in all windows.

    Parameters
    ----------
    unbiased, std_error : float64 arrays (n,), of all windows together, for independent reports.
    reports : float64 array (windows,), reports of each window, > 0, in the order of the windows.
    alpha, steps : see `sequence_of_independent`.
    repeated : True for `sequence_of_any`.

    Returns
    -------
    Ends of shape (n,), within [0, 1], low < high.
    """
    total = float(reports.sum())
    if repeated:
        place = np.arange(1, len(reports) + 1)
        width = float(np.sqrt(reports) @ quantiles_of_any(place, alpha)) / math.sqrt(total)
        few = float(_steps_of_any(place, alpha, steps).sum()) / total
        return around(unbiased, width * std_error + few)
    variance = (std_error * total) ** 2
    rho = variance * float(reports[0]) / total * TUNED_WINDOWS / _tuning(alpha)
    return _within(unbiased, variance, rho, np.array(total), alpha, steps)


def sequence_of_parts(
    mean: FloatArray, std_error: FloatArray, first: FloatArray, alpha: float
) -> IntervalEnds:
    """Return the last look of a sequence over parts that are joined by inverse variance.

    In `sequence_of_independent` a window may have any weight that is known before it. Here it is its reports
    over the variance of a report, which is the same in all windows of a part, and estimated. So V is the sum
    of the windows' precisions, 1 / e², and the mean over windows is that over parts, 1 / e² its weights.
    Errors are taken to be normal, as what a report of former parameters adds is not known: so this holds for
    windows of many reports.

    Parameters
    ----------
    mean, std_error : float64 arrays (n,), of all parts together; errors > 0, inf where nothing is known.
    first : float64 array (n,), in (0, 1], the part of the precision that a value's first window has.
    alpha : see `sequence_of_independent`.

    Returns
    -------
    Ends of shape (n,), within [0, 1], low < high.
    """
    rho = first * TUNED_WINDOWS / _tuning(alpha)
    return _within(mean, std_error**2, rho * std_error**2, np.ones(1), alpha, NORMAL)


def quantiles_of_any(place: NDArray[np.int64], alpha: float) -> FloatArray:
    """Return the half width of a window's interval in standard errors, see `sequence_of_any`.

    Parameters
    ----------
    place : int64 array (windows,), of each window in their order, from 1.
    alpha : see `sequence_of_independent`.
    """
    found: FloatArray = -ndtri(alpha / (place * (place + 1)) / 2)
    return found


def _steps_of_any(place: NDArray[np.int64], alpha: float, steps: ReportSteps) -> FloatArray:
    """Return the term b l / 3 of Bernstein's inequality of each window, times its reports, (windows,)."""
    found: FloatArray = steps.most / 3 * np.log(2 * place * (place + 1) / alpha)
    return found


def _within(
    mean: FloatArray,
    variance: FloatArray,
    rho: FloatArray,
    total: FloatArray,
    alpha: float,
    steps: ReportSteps,
) -> IntervalEnds:
    """Return the ends of the means of `total` reports, whose sum of errors has this variance."""
    if steps == NORMAL:
        return around(mean, _normal_bound(variance, rho, alpha) / total)
    most = np.array(steps.most)
    slope = max(steps.slope, 0.0), max(-steps.slope, 0.0)
    above = bennett_bound(variance, rho, most, np.array(slope[0]), alpha)
    below = above if slope[0] == slope[1] else bennett_bound(variance, rho, most, np.array(slope[1]), alpha)
    inside = np.clip(mean, 0, 1)
    return IntervalEnds(np.maximum(inside - below / total, 0), np.minimum(inside + above / total, 1))


def _normal_bound(variance: FloatArray, rho: FloatArray, alpha: float) -> FloatArray:
    """Return the bound of the normal mixture, see `sequence_of_independent`."""
    with np.errstate(invalid="ignore"):
        bound = np.sqrt((variance + rho) * (np.log1p(variance / rho) - 2 * math.log(alpha)))
    return np.where(np.isfinite(variance), bound, np.inf)


def _tuning(alpha: float) -> float:
    """Return V / rho where the width in standard errors is least (Howard et al., section 3.5, nearly)."""
    return 2 * math.log(1 / alpha) + math.log1p(2 * math.log(1 / alpha))


def around(mean: FloatArray, half: FloatArray) -> IntervalEnds:
    """Return the ends of intervals around means, which are clipped to [0, 1] first, as the ends are."""
    inside = np.clip(mean, 0, 1)
    return IntervalEnds(np.maximum(inside - half, 0), np.minimum(inside + half, 1))
