"""Canary: a k-RR collection whose true distribution is known, and how far its counts are from it. Pure."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, kl_div  # of scipy.special: scipy.stats takes half a second to load

from estimators.arrays import FloatArray
from estimators.frequency.krr import inv
from estimators.mechanisms.channels import SymmetricChannel

FALSE_ALARMS_A_YEAR = 0.1
YEAR_SECONDS = 365.25 * 86_400
MOST_VALUES = 16
# Of a bucket. From here on false alarms are within 20 % of that, as the tests find by exact enumeration; of
# two values, whose statistic moves in steps, within 70 %. Pearson's would be up to 3 times as many.
LEAST_EXPECTED = 50


def true_frequencies(k: int) -> FloatArray:
    """Each value half as frequent as the one before it, float64 (k,), summing to 1; k in [2, 16].

    All differ, so that two values that change places are seen. Of equal ones reports would be alike
    at every epsilon, and a wrong one would not be seen.
    """
    weights = 0.5 ** np.arange(k)
    frequency: FloatArray = weights / weights.sum()
    return frequency


def report_shares(mechanism: SymmetricChannel) -> FloatArray:
    """P(report y) when the truth is drawn from `true_frequencies`, float64 (k,): p theta + q (1 - theta)."""
    truth = true_frequencies(mechanism.k)
    shares: FloatArray = mechanism.p * truth + mechanism.q * (1 - truth)
    return shares


def least_reports(mechanism: SymmetricChannel) -> int:
    """Reports from which on every bucket expects LEAST_EXPECTED."""
    return int(np.ceil(LEAST_EXPECTED / report_shares(mechanism).min()))


def chi_square(counts: NDArray[np.int64], mechanism: SymmetricChannel) -> float:
    """How far the unconstrained estimate is from the truth: chi-square with k - 1 degrees of freedom.

    A report is drawn twice, its value and its noise, each time independently of the others: reports are
    independent draws from `report_shares`, phi, and counts are multinomial, the draw of the values included.
    The estimate t of `inv` is an affine image of the counts, one to one, so the likelihood ratio of the
    hypothesis t = truth is that of the counts,

        2 N sum s ln(s / phi),    s = q + (p - q) t,

    which for large N is the quadratic form N (t - theta)' S^- (t - theta) with the covariance S / N of t,
    noise of the draw included. Its far tail is that of chi-square sooner than that of the quadratic form,
    which skew counts exceed too often.

    Parameters
    ----------
    counts : int64 array (k,), reports per value in one window; enough are `least_reports`.
    mechanism : k-RR, longitudinal or not, each report from a client of its own.

    Returns
    -------
    The statistic, >= 0.

    Raises
    ------
    ValueError if counts is not of shape (k,), negative or all 0.

    Source: Wilks, Annals of Mathematical Statistics 9 (1938), for the distribution.
    """
    estimated = mechanism.q + mechanism.contrast * inv(counts, mechanism)
    divergence = kl_div(np.maximum(estimated, 0), report_shares(mechanism)).sum()  # rounding may go below 0
    return float(2 * counts.sum() * divergence)


def alarm_threshold(k: int, window_seconds: int) -> float:
    """What the statistic exceeds FALSE_ALARMS_A_YEAR times a year, one window after the other, by chance.

    Parameters
    ----------
    k : number of values, >= 2.
    window_seconds : length of a window, in [1, a year].
    """
    return float(chdtri(k - 1, FALSE_ALARMS_A_YEAR * window_seconds / YEAR_SECONDS))
