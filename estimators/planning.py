"""Expected accuracy of a mechanism: standard errors, smallest detectable frequency, reports needed."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.equations.misfit import misfit_weight
from deniable.estimators.decoding.hashed.collisions import error_of_fixed
from deniable.estimators.decoding.screening import most_columns
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.number import expected_median_error
from deniable.estimators.frequency.pairs import table as pair_table
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import LARGEST_EPSILON
from deniable.estimators.mechanisms.matrix.one_hot_pair import LEAST_EPSILON
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism, bloom_of, pool_of, tree_of
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.traits import QuestionKind

LARGEST_REPORTS = 10**18
LEAST_STD_ERROR = 1e-9
VISIBLE_ERRORS = 6.0  # of a bit, above which the bits of an unlisted string are found
MOST_RANKS = 1_000_000  # of Zipf's law, in which further ones hardly matter
#: Probability that at least one value that nobody holds is detected (family-wise error rate).
FALSE_ALARM = 0.05
#: Probability that a value with the smallest detectable frequency is detected.
POWER = 0.9


@dataclass(frozen=True)
class Unlisted:
    """Reports of strings that are no candidates.

    Parameters
    ----------
    share : of all reports, in [0, 1).
    strings : number of different ones, >= 1, equally frequent; the fewer, the more they disturb.

    Raises
    ------
    ValueError if a parameter is out of range.
    """

    share: float = 0.0
    strings: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise ValueError(f"share of unlisted reports must be in [0, 1), got {self.share}")
        if self.strings < 1:
            raise ValueError(f"unlisted strings must be at least 1, got {self.strings}")


NONE_UNLISTED = Unlisted()


def expected_std_error(
    mechanism: Mechanism,
    reports: int,
    frequency: float = 0.0,
    candidates: int = 1,
    unlisted: Unlisted = NONE_UNLISTED,
) -> float:
    """Return the expected standard error of one frequency from N reports with independent noise.

    k-RR, one-hot and k-hot: sqrt((f p (1-p) + (1-f) q (1-q)) / N) / (p - q), exact. Local hashing: the same
    with q = 1/g, and what collisions add if frequencies follow Zipf's law and no frequent value is taken out.
    Bloom RAPPOR: that of weighted least squares with a background, if other strings
    spread evenly over the bits. Uneven unknown strings raise it, a steep distribution by up to a fifth. With
    more candidates than are decoded together it has the misfit of those that screening leaves out, if they
    follow Zipf's law.
    Square Wave: that of the share of numbers below the middle of the range, if they are spread evenly; so it
    is that of the median too, as a fraction of the range. `frequency` is not used. A pair of fields: that of
    one pair of values, if all other reports spread evenly over the values. A prefix tree: that of local
    hashing from the reports of one level, a sample of an L-th of all clients.

    Parameters
    ----------
    mechanism : any.
    reports : N, in [1, 10^18].
    frequency : f, frequency of the value, in [0, 1]; 0 for a rare one.
    candidates : number of strings decoded together, >= 1; only used for Bloom RAPPOR and local hashing.
    unlisted : reports of other strings; only used for Bloom RAPPOR and local hashing.

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
    match mechanism:
        case Rappor():
            screened = _screening(mechanism, reports, candidates, unlisted)
            noise = _bloom_std_error(mechanism, frequency, screened.chosen) / math.sqrt(reports)
            return noise * math.sqrt(_bloom_misfit(mechanism, reports, screened, unlisted))
        case SquareWave():
            return expected_median_error(mechanism, reports)
        case PairKRR():
            return pair_table.expected_std_error(frequency, reports, mechanism)
        case PrefixTree():
            of_level = max(1, reports // mechanism.cohorts)
            sampled = (1 - 1 / mechanism.cohorts) * frequency * (1 - frequency) / of_level
            oracle = expected_std_error(mechanism.oracle, of_level, frequency, candidates, unlisted)
            return math.hypot(oracle, math.sqrt(sampled))
        case _:
            of_value = Inversion.of_mechanism(mechanism)
            noise, of_absent = of_value.std_error(np.array([frequency, 0.0]), reports).tolist()
            return math.hypot(noise, _collision_error(mechanism, candidates, unlisted, of_absent))


def smallest_detectable(
    mechanism: Mechanism, reports: int, values: int, unlisted: Unlisted = NONE_UNLISTED
) -> float:
    """Return the frequency detected with probability 0.9 at a family-wise error rate of 0.05.

    Solves f = z_(1 - 0.05 / values) s(0) + z_0.9 s(f), where s is the standard error. A value is detected if
    its estimate exceeds the first term (Bonferroni, so Benjamini-Hochberg detects at least as many).

    Parameters
    ----------
    mechanism : any.
    reports : N, in [1, 10^18].
    values : number of values, or candidates, tested, >= 1.
    unlisted : reports of other strings; only used for Bloom RAPPOR and local hashing.

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
        mechanism, reports, 0.0, values, unlisted
    )
    beyond = NormalDist().inv_cdf(POWER)

    def lacks(frequency: float) -> bool:
        return frequency < critical + beyond * expected_std_error(
            mechanism, reports, frequency, values, unlisted
        )

    least = 0.0
    if (bloom := bloom_of(mechanism)) is not None:
        # A candidate that is not chosen looks like an unlisted string, and its bits are left out.
        least = _screening(bloom, reports, values, unlisted).least
    if lacks(1.0) or least > 1:
        return math.inf
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if lacks(middle) else (low, middle)
    return max(high, least)


def reports_needed(
    mechanism: Mechanism,
    std_error: float,
    frequency: float = 0.0,
    candidates: int = 1,
    unlisted: Unlisted = NONE_UNLISTED,
) -> int | None:
    """Return the number of reports at which the expected standard error is at most `std_error`.

    Parameters
    ----------
    mechanism : any.
    std_error : fraction of all reports, in [1e-9, 1].
    frequency : frequency of the value, in [0, 1]; 0 for a rare one.
    candidates : number of strings decoded together, >= 1; only used for Bloom RAPPOR and local hashing.
    unlisted : reports of other strings; only used for Bloom RAPPOR and local hashing.

    Returns
    -------
    N, >= 1; None if collisions of local hashing, or unlisted strings, alone cause a larger error.

    Raises
    ------
    ValueError if a parameter is out of range.
    """
    if not LEAST_STD_ERROR <= std_error <= 1:
        raise ValueError(f"std_error must be in [{LEAST_STD_ERROR}, 1], got {std_error}")
    is_smoothed = mechanism.kind is QuestionKind.NUMBER or tree_of(mechanism) or bloom_of(mechanism)
    if is_smoothed or (pool_of(mechanism) and unlisted.share > 0):
        return _fewest_reports(
            lambda reports: expected_std_error(mechanism, reports, frequency, candidates, unlisted), std_error
        )
    collisions = _collision_error(mechanism, candidates, unlisted, 0.0)
    if collisions >= std_error:
        return None
    alone = expected_std_error(mechanism, 1, frequency, candidates, unlisted)
    noise = math.sqrt(alone**2 - collisions**2)
    return max(1, math.ceil((noise / math.sqrt(std_error**2 - collisions**2)) ** 2))


def _fewest_reports(error_of: Callable[[int], float], std_error: float) -> int | None:
    """Bisect up to 10^18, where the error does not fall with the root of the number; None if none is enough.

    Of numbers, less is smoothed with more reports. Of Bloom RAPPOR, bits of unlisted strings become visible.
    A level of a prefix tree has a whole number of reports.
    """
    low, high = 0, LARGEST_REPORTS
    if error_of(high) > std_error:
        return None
    while high - low > 1:
        middle = (low + high) // 2 if high < 4 * low + 8 else math.isqrt(max(low, 1) * high)
        if error_of(middle) <= std_error:
            high = middle
        else:
            low = middle
    return high


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


def _collision_error(mechanism: Mechanism, candidates: int, unlisted: Unlisted, noise: float) -> float:
    """Error from collisions if frequencies are proportional to 1 / rank; 0 except for local hashing.

    sum f^2 is 1 for one candidate, 0.06 for 100 and 0.01 for 100,000. Unlisted strings add more the more
    notable they are beside the `noise` of a rare value, see `error_of_fixed`.
    """
    pool = pool_of(mechanism)
    if pool is None:
        return 0.0
    listed = (1 - unlisted.share) ** 2 * _zipf_concentration(min(candidates, MOST_RANKS))
    others = unlisted.share**2 / unlisted.strings
    of_listed, of_others = (math.sqrt(each * pool.collision_variance) for each in (listed, others))
    return math.hypot(of_listed, error_of_fixed(noise, of_others))


def _zipf_concentration(values: int) -> float:
    return float(_zipf_squares(values)[-1]) / _zipf_total(values) ** 2


@cache
def _zipf_squares(values: int) -> FloatArray:
    """Return the sums of the squares of 1, 1/2, ... 1/r for r up to `values`, float64 (values,)."""
    return np.cumsum(np.arange(1.0, values + 1) ** -2)


@cache
def _zipf_total(values: int) -> float:
    return float((1 / np.arange(1.0, values + 1)).sum())


def _check_epsilon(epsilon: float) -> None:
    if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise ValueError(f"epsilon must be in [{LEAST_EPSILON}, {LARGEST_EPSILON}], got {epsilon}")


def _bloom_std_error(mechanism: Rappor, frequency: float, chosen: int) -> float:
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
    crowding = rows / (rows - chosen)
    return math.sqrt(noise * crowding / (distinct * (1 - density))) / (q_star - p_star)


@dataclass(frozen=True)
class _Screening:
    """What `screen` is expected to do, if the candidates follow Zipf's law.

    Parameters
    ----------
    chosen : number of candidates decoded together.
    left : sum of the squared frequencies of the others.
    least : share of a candidate that is chosen with probability 0.9; 0 if all are.
    """

    chosen: int
    left: float
    least: float


def _screening(mechanism: Rappor, reports: int, candidates: int, unlisted: Unlisted) -> _Screening:
    """Follow `screen`: where there are too many candidates, it chooses those far above the noise in rounds.

    What is not chosen disturbs the others as unlisted strings do; the bits of these are found only later.
    """
    rows = mechanism.cohorts * mechanism.bits
    if candidates <= most_columns(rows):
        return _Screening(candidates, 0.0, 0.0)
    squares = _zipf_squares(min(candidates, MOST_RANKS))
    largest = (1 - unlisted.share) / _zipf_total(min(candidates, MOST_RANKS))
    others = unlisted.share**2 / unlisted.strings
    threshold = -NormalDist().inv_cdf(0.5 / candidates)
    chosen, left = 0, largest**2 * float(squares[-1])
    while True:
        noise = _bloom_std_error(mechanism, 0.0, chosen) / math.sqrt(reports)
        error = noise * math.sqrt(1 + _squares_over_noise(mechanism, reports, left + others))
        found = min(int(largest / (threshold * error)), most_columns(rows), len(squares))
        if found <= chosen:
            return _Screening(chosen, left, (threshold + NormalDist().inv_cdf(POWER)) * error)
        chosen, left = found, largest**2 * float(squares[-1] - squares[found - 1])


def _squares_over_noise(mechanism: Rappor, reports: int, squares: float) -> float:
    """Return the variance over bits of what strings with this sum of squared shares add, over the noise's."""
    density = 1 - (1 - 1 / mechanism.bits) ** mechanism.hashes
    return squares * density * (1 - density) / _bit_variance(mechanism, reports)


def _bit_variance(mechanism: Rappor, reports: int) -> float:
    density = 1 - (1 - 1 / mechanism.bits) ** mechanism.hashes
    contrast = mechanism.q_star - mechanism.p_star
    rate = mechanism.p_star + contrast * density
    return rate * (1 - rate) / contrast**2 * mechanism.cohorts / reports


def _bloom_misfit(mechanism: Rappor, reports: int, screened: _Screening, unlisted: Unlisted) -> float:
    """Return the factor on the variance of Bloom RAPPOR from strings that are not decoded.

    Each unlisted one raises d bits of every cohort by its share u. If u is 6 standard errors of a bit's
    residual, and they leave most bits alone, the bits are found and left out. Otherwise they are misfit:
    the variance of a bit grows by sum u² times density (1 - density), which enters with weight 4
    (`equations.misfit`). So does that of the candidates that screening leaves out.
    """
    density = 1 - (1 - 1 / mechanism.bits) ** mechanism.hashes
    clean = (1 - density) ** unlisted.strings
    rows = mechanism.cohorts * mechanism.bits
    of_bit = _bit_variance(mechanism, reports) * (1 + _squares_over_noise(mechanism, reports, screened.left))
    each = unlisted.share / unlisted.strings * math.sqrt(1 - screened.chosen / rows)
    is_visible = each >= VISIBLE_ERRORS * math.sqrt(of_bit) and clean > 0.5
    squares = screened.left + (0.0 if is_visible else unlisted.share**2 / unlisted.strings)
    ratio = _squares_over_noise(mechanism, reports, squares)
    factor = 1 + misfit_weight(1 + ratio, rows) ** 2 * ratio
    return factor / clean if is_visible else factor
