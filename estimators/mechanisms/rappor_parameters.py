"""From the two epsilons that a RAPPOR may cost to the f, p and q that keep both with the least noise."""

import math
from typing import NamedTuple

from estimators.mechanisms.rappor_bits import WORDS, loss_of_one_report, loss_of_permanent_response

LARGEST_EPSILON = 64
# Below this loss for each differing bit, thresholds over 2^32 are too coarse to come close.
LEAST_LOSS_PER_BIT = 1e-6


class Thresholds(NamedTuple):
    """The three integers that Rappor and HotRappor take last."""

    flip_threshold: int
    p_threshold: int
    q_threshold: int


def choose_thresholds(ones: int, epsilon_inf: float, epsilon_one: float) -> Thresholds:
    """Choose f, p and q that keep both epsilons with the least variance of a rare bit's rate.

    That variance is p* (1 - p*) / (N (q* - p*)²). A lower f allows every (p*, q*) that a higher one does,
    so f is as low as epsilon_inf permits: (1 - f/2) / (f/2) = A = e^(epsilon_inf / 2h). Among all p* and q*
    with q* (1 - p*) / (p* (1 - q*)) = R = e^(epsilon_one / h), write u = (1 - p*) / (1 - q*). The variance
    falls to its only minimum, q* = 1/2 and p* = 1/(R + 1), at u = 2R / (R + 1), and rises beyond. p >= 0
    asks for q*/p* = R/u <= A, and q <= 1 for u <= A. So u is that minimum, brought into [R/A, A], which is
    not empty while epsilon_one <= epsilon_inf.

    Given epsilon_one alone, the best is always f = 0, which protects no client who reports again.

    Parameters
    ----------
    ones : most true bits that are 1 (h): hashes of Bloom RAPPOR, `hot` of one-hot and k-hot; >= 1.
    epsilon_inf : loss of a permanent response, in (0, 64].
    epsilon_one : loss of one report, in [1e-6 ones, epsilon_inf].

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
