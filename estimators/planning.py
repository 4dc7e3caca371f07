"""Expected accuracy of a mechanism: standard errors, smallest detectable frequency, reports needed."""

import math
from statistics import NormalDist

import numpy as np

from estimators.decoding.screening import most_columns
from estimators.frequency.inversion import Inversion
from estimators.mechanisms.krr import LARGEST_EPSILON
from estimators.mechanisms.mechanism import Mechanism
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor

LEAST_EPSILON = 1e-6  # below it, RAPPOR's thresholds over 2^32 are too coarse
LARGEST_REPORTS = 10**18
LEAST_STD_ERROR = 1e-9
#: Probability that at least one value that nobody holds is detected (family-wise error rate).
FALSE_ALARM = 0.05
#: Probability that a value with the smallest detectable frequency is detected.
POWER = 0.9


def expected_std_error(
    mechanism: Mechanism, reports: int, frequency: float = 0.0, candidates: int = 1
) -> float:
    """Return the expected standard error of one frequency from N reports with independent noise.

    k-RR, one-hot and k-hot: sqrt((f p (1-p) + (1-f) q (1-q)) / N) / (p - q), exact. Bloom RAPPOR: that of
    weighted least squares with a background, if other strings spread evenly over the bits. Uneven unknown
    strings raise it, a steep distribution by up to a fifth.

    Parameters
    ----------
    mechanism : KRR, LongitudinalKRR, HotRappor or Rappor.
    reports : N, in [1, 10^18].
    frequency : f, frequency of the value, in [0, 1]; 0 for a rare one.
    candidates : number of strings decoded together, >= 1; only used for Bloom RAPPOR.

    Returns
    -------
    Fraction of all reports, > 0.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Wang et al., "Locally differentially private protocols for frequency estimation" (USENIX Security
    2017), equation 3.
    """
    if not 1 <= reports <= LARGEST_REPORTS:
        raise ValueError(f"reports must be in [1, {LARGEST_REPORTS}], got {reports}")
    if not 0 <= frequency <= 1:
        raise ValueError(f"frequency must be in [0, 1], got {frequency}")
    if candidates < 1:
        raise ValueError(f"candidates must be at least 1, got {candidates}")
    if isinstance(mechanism, Rappor):
        return _bloom_std_error(mechanism, frequency, candidates) / math.sqrt(reports)
    if isinstance(mechanism, HotRappor):
        inversion = Inversion.of_bit(mechanism)
    else:
        inversion = Inversion.of_symmetric(mechanism)
    return float(inversion.std_error(np.array([frequency]), reports)[0])


def smallest_detectable(mechanism: Mechanism, reports: int, values: int) -> float:
    """Return the frequency detected with probability 0.9 at a family-wise error rate of 0.05.

    Solves f = z_(1 - 0.05 / values) s(0) + z_0.9 s(f), where s is the standard error. A value is detected if
    its estimate exceeds the first term (Bonferroni, so Benjamini-Hochberg detects at least as many).

    Parameters
    ----------
    mechanism : KRR, LongitudinalKRR, HotRappor or Rappor.
    reports : N, in [1, 10^18].
    values : number of values, or candidates, tested, >= 1.

    Returns
    -------
    Fraction of all reports, in (0, 1]; inf if even a value that everybody holds is detected less often.

    Raises
    ------
    ValueError if a parameter is out of range.
    """
    if values < 1:
        raise ValueError(f"values must be at least 1, got {values}")
    critical = NormalDist().inv_cdf(1 - FALSE_ALARM / values) * expected_std_error(
        mechanism, reports, 0.0, values
    )
    beyond = NormalDist().inv_cdf(POWER)

    def lacks(frequency: float) -> bool:
        return frequency < critical + beyond * expected_std_error(mechanism, reports, frequency, values)

    if lacks(1.0):
        return math.inf
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if lacks(middle) else (low, middle)
    return high


def reports_needed(
    mechanism: Mechanism, std_error: float, frequency: float = 0.0, candidates: int = 1
) -> int:
    """Return the number of reports at which the expected standard error is at most `std_error`.

    Parameters
    ----------
    mechanism : KRR, LongitudinalKRR, HotRappor or Rappor.
    std_error : fraction of all reports, in [1e-9, 1].
    frequency : frequency of the value, in [0, 1]; 0 for a rare one.
    candidates : number of strings decoded together, >= 1; only used for Bloom RAPPOR.

    Returns
    -------
    N, >= 1.

    Raises
    ------
    ValueError if a parameter is out of range.
    """
    if not LEAST_STD_ERROR <= std_error <= 1:
        raise ValueError(f"std_error must be in [{LEAST_STD_ERROR}, 1], got {std_error}")
    return max(1, math.ceil((expected_std_error(mechanism, 1, frequency, candidates) / std_error) ** 2))


def best_one_hot(buckets: int, epsilon: float) -> HotRappor:
    """Build the one-hot RAPPOR with the least error per report: f = 0, q* = 1/2, p* = 1 / (e^epsilon + 1).

    Parameters
    ----------
    buckets : number of values, in [2, 4096].
    epsilon : privacy loss of one report, nats, in [1e-6, 16].

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Wang et al. (USENIX Security 2017), section 4.3, optimized unary encoding.
    """
    _check_epsilon(epsilon)
    return HotRappor.from_probabilities(buckets, 1, 0.0, 1 / (math.exp(epsilon) + 1), 0.5)


def best_bloom(epsilon: float) -> Rappor:
    """Build the Bloom RAPPOR with 8 cohorts, 128 bits and 2 hashes that has the least error per report.

    Each of the two hashes gets half of epsilon: f = 0, q* = 1/2, p* = 1 / (e^(epsilon/2) + 1).

    Parameters
    ----------
    epsilon : privacy loss of one report, nats, in [1e-6, 16].

    Raises
    ------
    ValueError if epsilon is out of range.
    """
    _check_epsilon(epsilon)
    return Rappor.from_probabilities(128, 2, 8, 0.0, 1 / (math.exp(epsilon / 2) + 1), 0.5)


def krr_limit(rappor: HotRappor, epsilon: float) -> float:
    """Return the number of values below which k-RR has a smaller error for rare values than one-hot RAPPOR.

    N Var is (k - 2 + e^epsilon) / (e^epsilon - 1)² for k-RR and V = p*(1 - p*) / (q* - p*)² for RAPPOR, equal
    at k = V (e^epsilon - 1)² + 2 - e^epsilon. With q* = 1/2 and p* = 1 / (e^epsilon + 1) that is
    3 e^epsilon + 2.

    Parameters
    ----------
    rappor : HotRappor; its number of buckets is not used.
    epsilon : privacy loss of one k-RR report, nats, in [1e-6, 16].

    Returns
    -------
    Limit of k, any real.

    Raises
    ------
    ValueError if epsilon is out of range.

    Source: Wang et al. (USENIX Security 2017), equations 3 and 4, and section 5.
    """
    _check_epsilon(epsilon)
    variance = expected_std_error(rappor, 1) ** 2
    return variance * math.expm1(epsilon) ** 2 + 2 - math.exp(epsilon)


def _check_epsilon(epsilon: float) -> None:
    if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise ValueError(f"epsilon must be in [{LEAST_EPSILON}, {LARGEST_EPSILON}], got {epsilon}")


def _bloom_std_error(mechanism: Rappor, frequency: float, candidates: int) -> float:
    """Return the standard error times sqrt(N): one column of d distinct bits per cohort, even background.

    Another string sets a given bit with probability d / bits, so a bit of the candidate is set with share
    mu = f + (1 - f) d / bits. The column's sum of squares, orthogonal to a constant, is d (1 - d / bits).
    Decoding n columns on r rows multiplies the variance by r / (r - n).
    """
    distinct = mechanism.bits * (1 - (1 - 1 / mechanism.bits) ** mechanism.hashes)
    density = distinct / mechanism.bits
    share = frequency + (1 - frequency) * density
    p_star, q_star = mechanism.p_star, mechanism.q_star
    noise = share * q_star * (1 - q_star) + (1 - share) * p_star * (1 - p_star)
    rows = mechanism.cohorts * mechanism.bits
    crowding = rows / (rows - candidates) if candidates <= most_columns(rows) else 1.0
    return math.sqrt(noise * crowding / (distinct * (1 - density))) / (q_star - p_star)
