"""Goodness of fit of a canary's counts to its true frequencies: likelihood-ratio chi-square."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, kl_div  # of scipy.special: scipy.stats takes half a second to load

from deniable.estimators.canary import report_shares
from deniable.estimators.frequency.krr import inv
from deniable.estimators.mechanisms.traits import SymmetricChannel

FALSE_ALARMS_A_YEAR = 0.1
YEAR_SECONDS = 365.25 * 86_400


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
