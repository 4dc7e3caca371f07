"""Goodness of fit of a canary, a k-RR collection with known true frequencies: likelihood-ratio chi-square."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, kl_div  # of scipy.special: scipy.stats takes half a second to load

from estimators.arrays import FloatArray
from estimators.frequency.krr import inv
from estimators.mechanisms.channels import SymmetricChannel

FALSE_ALARMS_A_YEAR = 0.1
YEAR_SECONDS = 365.25 * 86_400
MOST_VALUES = 16
# Reports per bucket. With as many, the false-alarm rate is within 20 % of the nominal one (70 % for two
# values, whose statistic is coarse), as tests show by exact enumeration. Pearson's statistic would give up to
# 3 times as many false alarms.
LEAST_EXPECTED = 50


def true_frequencies(k: int) -> FloatArray:
    """Return frequencies that halve from each value to the next, float64 (k,), summing to 1; k in [2, 16].

    All differ, so that swapped values are detected. With equal frequencies reports would be uniform at every
    epsilon, and a wrong epsilon would go undetected.
    """
    weights = 0.5 ** np.arange(k)
    frequency: FloatArray = weights / weights.sum()
    return frequency


def report_shares(mechanism: SymmetricChannel) -> FloatArray:
    """P(report y), truths drawn from theta = `true_frequencies`, float64 (k,): p theta + q (1 - theta)."""
    truth = true_frequencies(mechanism.k)
    shares: FloatArray = mechanism.p * truth + mechanism.q * (1 - truth)
    return shares


def least_reports(mechanism: SymmetricChannel) -> int:
    """Return the smallest number of reports at which every bucket expects LEAST_EXPECTED."""
    return int(np.ceil(LEAST_EXPECTED / report_shares(mechanism).min()))


def chi_square(counts: NDArray[np.int64], mechanism: SymmetricChannel) -> float:
    """Likelihood-ratio statistic of the estimate against the true frequencies, chi-square with k - 1 degrees.

    Both the value and the noise of a report are drawn independently of all other reports. So reports are
    independent draws from phi = `report_shares`, and counts are multinomial. The estimate t of `inv` is a
    one-to-one affine function of the counts, so the likelihood ratio of the hypothesis t = theta is that of
    the counts,

        2 N sum s ln(s / phi),    s = q + (p - q) t.

    For large N it equals N (t - theta)' S^- (t - theta), where S / N is the covariance of t, sampling
    included. Its far tail converges to chi-square faster than that of this quadratic form (Pearson's
    statistic), which skewed counts exceed too often.

    Parameters
    ----------
    counts : int64 array (k,), reports per value in one window, in total at least `least_reports`.
    mechanism : k-RR, longitudinal or not; each report from a different client.

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
    """Return the threshold that a correct randomizer's statistic exceeds FALSE_ALARMS_A_YEAR times a year.

    Parameters
    ----------
    k : number of values, >= 2.
    window_seconds : length of a window, seconds, in [1, a year].
    """
    return float(chdtri(k - 1, FALSE_ALARMS_A_YEAR * window_seconds / YEAR_SECONDS))
