"""What a mechanism will be able to tell, before a single report: errors, detectable frequencies, reports."""

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
#: Chance that a value nobody holds passes for found, over all values together.
FALSE_ALARM = 0.05
#: Chance that a value of the smallest detectable frequency is found.
POWER = 0.9


def expected_std_error(
    mechanism: Mechanism, reports: int, frequency: float = 0.0, candidates: int = 1
) -> float:
    """Standard error of one frequency to expect from N reports, made of independent noise.

    k-RR, one-hot and k-hot: sqrt((f p (1-p) + (1-f) q (1-q)) / N) / (p - q), exact. Bloom RAPPOR: that of
    weighted least squares with a background, when other strings spread evenly over the bits; unknown strings
    that do not raise it, and a steep distribution by up to a fifth.

    Parameters
    ----------
    mechanism : KRR, LongitudinalKRR, HotRappor or Rappor that will make the reports.
    reports : N, in [1, 10^18].
    frequency : of the value in question, in [0, 1]; 0 for a rare one.
    candidates : strings decoded together, >= 1; of no effect but with Bloom RAPPOR.

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
    """Frequency that is found with probability 0.9, when one of all rare values is found in error with 0.05.

    The f of f = z_(1 - 0.05 / values) s(0) + z_0.9 s(f), s the standard error: a value is found when its
    estimate exceeds the first term (Bonferroni's bound, so no more than Benjamini-Hochberg finds).

    Parameters
    ----------
    mechanism, reports : as of `expected_std_error`.
    values : values, or candidates, that are looked at, >= 1.

    Returns
    -------
    Fraction of all reports, in (0, 1]; inf when not even a value that all hold is found so surely.

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
    """Count the reports after which the expected standard error is as wanted.

    Parameters
    ----------
    mechanism, frequency, candidates : as of `expected_std_error`.
    std_error : wanted, fraction of all reports, in [1e-9, 1].

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
    """Build the one-hot RAPPOR of least error for one report: f = 0, q* = 1/2, p* = 1 / (e^epsilon + 1).

    Parameters
    ----------
    buckets : number of values, in [2, 4096].
    epsilon : privacy loss of one report, in [1e-6, 16].

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Wang et al. (USENIX Security 2017), section 4.3, optimized unary encoding.
    """
    _check_epsilon(epsilon)
    return HotRappor.from_probabilities(buckets, 1, 0.0, 1 / (math.exp(epsilon) + 1), 0.5)


def best_bloom(epsilon: float) -> Rappor:
    """Build the Bloom RAPPOR of 8 cohorts, 128 bits and 2 hashes of least error for one report.

    As one-hot, but each of the two hashes has half of epsilon: f = 0, q* = 1/2, p* = 1 / (e^(epsilon/2) + 1).

    Parameters
    ----------
    epsilon : privacy loss of one report, in [1e-6, 16].

    Raises
    ------
    ValueError if epsilon is out of range.
    """
    _check_epsilon(epsilon)
    return Rappor.from_probabilities(128, 2, 8, 0.0, 1 / (math.exp(epsilon / 2) + 1), 0.5)


def krr_limit(rappor: HotRappor, epsilon: float) -> float:
    """Number of values below which k-RR has a smaller error for rare values than this one-hot RAPPOR.

    k-RR has N Var = (K - 2 + e^epsilon) / (e^epsilon - 1)², RAPPOR V = p*(1 - p*) / (q* - p*)²: the limit is
    V (e^epsilon - 1)² + 2 - e^epsilon. With q* = 1/2 and p* = 1 / (e^epsilon + 1) it is 3 e^epsilon + 2.

    Parameters
    ----------
    rappor : HotRappor; its number of buckets is of no effect.
    epsilon : of k-RR, in [1e-6, 16].

    Returns
    -------
    Limit of K, any real.

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
    """Error times sqrt(N): one column of d distinct bits in each cohort beside an even background.

    A report of another string shows a bit with share d / bits, a bit of the candidate's own with
    mu = f + (1 - f) d / bits. Of the column remains d (1 - d / bits) beside a constant. Decoding n columns on
    r rows takes r / (r - n) of the variance.
    """
    distinct = mechanism.bits * (1 - (1 - 1 / mechanism.bits) ** mechanism.hashes)
    density = distinct / mechanism.bits
    share = frequency + (1 - frequency) * density
    p_star, q_star = mechanism.p_star, mechanism.q_star
    noise = share * q_star * (1 - q_star) + (1 - share) * p_star * (1 - p_star)
    rows = mechanism.cohorts * mechanism.bits
    crowding = rows / (rows - candidates) if candidates <= most_columns(rows) else 1.0
    return math.sqrt(noise * crowding / (distinct * (1 - density))) / (q_star - p_star)
