"""The f, p and q with the least estimation error that keep a RAPPOR within epsilon_inf and epsilon_one."""

import math
from typing import NamedTuple

from deniable.estimators.mechanisms.rappor_bits import WORDS, loss_of_one_report, loss_of_permanent_response

LARGEST_EPSILON = 64
# Below this loss per differing bit, multiples of 2^-32 are too coarse to come close to it.
LEAST_LOSS_PER_BIT = 1e-6


class Thresholds(NamedTuple):
    """The three thresholds of Rappor and HotRappor."""

    flip_threshold: int
    p_threshold: int
    q_threshold: int


def choose_thresholds(ones: int, epsilon_inf: float, epsilon_one: float) -> Thresholds:
    """Choose f, p and q that minimize the variance of a rare bit's estimated rate under both epsilons.

    That variance is p* (1 - p*) / (N (q* - p*)²). Any (p*, q*) that is feasible for some f is feasible for
    every smaller f, so f is as small as epsilon_inf allows: (1 - f/2) / (f/2) = A = e^(epsilon_inf / 2h).
    The bound epsilon_one fixes q* (1 - p*) / (p* (1 - q*)) = R = e^(epsilon_one / h). Parametrize these
    (p*, q*) by u = (1 - p*) / (1 - q*). The variance has a single minimum at u = 2R / (R + 1), where
    q* = 1/2 and p* = 1/(R + 1). p >= 0 requires q*/p* = R/u <= A, and q <= 1 requires u <= A. So u is the
    minimum clipped to [R/A, A], which is not empty because epsilon_one <= epsilon_inf.

    With epsilon_one alone f = 0 would be optimal, but would not protect clients that report repeatedly.

    Parameters
    ----------
    ones : largest number of true bits that are 1 (h): `hashes` of Bloom RAPPOR, `hot` of one-hot and k-hot;
        >= 1.
    epsilon_inf : privacy loss of a permanent response, nats, in (0, 64].
    epsilon_one : privacy loss of one report, nats, in [1e-6 ones, epsilon_inf].

    Returns
    -------
    Thresholds whose exact losses are at most the two epsilons, and as close to them as 32 bits allow.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Wang et al., "Locally differentially private protocols for frequency estimation" (USENIX Security
    2017), section 4.2, for q* = 1/2 and p* = 1/(e^epsilon + 1) without a permanent step.
    """
    _check(ones, epsilon_inf, epsilon_one)
    flip = max(1, math.ceil(WORDS / (1 + math.exp(epsilon_inf / (2 * ones)))))
    while loss_of_permanent_response(ones, flip) > epsilon_inf:
        flip += 1
    odds_kept = (WORDS - flip) / flip
    ratio = math.exp(epsilon_one / ones)
    u = min(max(2 * ratio / (ratio + 1), ratio / odds_kept), odds_kept)
    p_star, q_star = (u - 1) / (ratio - 1), (u - 1) / (ratio - 1) * ratio / u
    phi = flip / WORDS
    # p* = p (1 - phi) + q phi and q* = q (1 - phi) + p phi, solved for p and q.
    p = (p_star * (1 - phi) - q_star * phi) / (1 - 2 * phi)
    q = (q_star * (1 - phi) - p_star * phi) / (1 - 2 * phi)
    p_threshold, q_threshold = max(1, math.ceil(p * WORDS)), min(WORDS - 1, math.floor(q * WORDS))
    while loss_of_one_report(ones, flip, p_threshold, q_threshold) > epsilon_one:
        p_threshold += 1
    return Thresholds(flip, p_threshold, q_threshold)


def _check(ones: int, epsilon_inf: float, epsilon_one: float) -> None:
    if ones < 1:
        raise ValueError(f"ones must be at least 1, got {ones}")
    if not 0 < epsilon_inf <= LARGEST_EPSILON:
        raise ValueError(f"epsilon_inf must be in (0, {LARGEST_EPSILON}], got {epsilon_inf}")
    least = LEAST_LOSS_PER_BIT * ones
    if not least <= epsilon_one <= epsilon_inf:
        raise ValueError(f"epsilon_one must be in [{least}, epsilon_inf = {epsilon_inf}], got {epsilon_one}")
