"""The two randomization steps of a RAPPOR bit, permanent and instantaneous: exact losses, best thresholds."""

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import log_above
from deniable.estimators.mechanisms.traits import BitReports

WORDS = 1 << 32
LARGEST_EPSILON = 64
# Below this loss per differing bit, multiples of 2^-32 are too coarse to come close to it.
LEAST_LOSS_PER_BIT = 1e-6


class Thresholds(NamedTuple):
    """The three thresholds of Rappor and HotRappor."""

    flip_threshold: int
    p_threshold: int
    q_threshold: int


class TwoStepBits(BitReports):
    """Base class of all RAPPOR variants: how a bit is randomized, however the bits are set.

    The permanent response flips each bit with probability f/2 = flip_threshold / 2^32. A report then shows a
    1 with probability q where the permanent bit is 1, and with probability p where it is 0.

    Parameters
    ----------
    flip_threshold : (f/2) 2^32, in [0, 2^31).
    p_threshold : p 2^32, in (0, q_threshold).
    q_threshold : q 2^32, in (p_threshold, 2^32).

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), section 3.
    """

    keeps_permanent = True
    repeats_noise = True

    flip_threshold: int
    p_threshold: int
    q_threshold: int

    @property
    @abstractmethod
    def ones(self) -> int:
        """Largest number of true bits that are 1 (h), so two values differ in at most 2 h bits."""

    @property
    def min_ones(self) -> int:
        """Least number of true bits that are 1: none of a value that is not listed."""
        return 0

    @property
    @abstractmethod
    def used_bits(self) -> int:
        """Bits of a report without those of noise that pad it."""

    @property
    def f(self) -> float:
        """Share of permanent bits that are noise: twice the flip probability, in [0, 1)."""
        return self.flip_threshold / (WORDS // 2)

    @property
    def p(self) -> float:
        """P(report 1 | permanent bit 0)."""
        return self.p_threshold / WORDS

    @property
    def q(self) -> float:
        """P(report 1 | permanent bit 1)."""
        return self.q_threshold / WORDS

    @cached_property
    def p_star(self) -> float:
        """P(report 1 | true bit 0) = p (1 - f/2) + q f/2."""
        return float(_reported(self.flip_threshold, self.p_threshold, self.q_threshold))

    @cached_property
    def q_star(self) -> float:
        """P(report 1 | true bit 1) = q (1 - f/2) + p f/2."""
        return float(_reported(self.flip_threshold, self.q_threshold, self.p_threshold))

    @property
    def bit_channel(self) -> FloatArray:
        """P(report y | true bit x) in row y and column x, float64 (2, 2)."""
        return np.array([[1 - self.p_star, 1 - self.q_star], [self.p_star, self.q_star]])

    @cached_property
    def epsilon_one(self) -> float:
        """Privacy loss of one report with a fresh permanent response, nats, rounded up."""
        return loss_of_one_report(self.ones, self.flip_threshold, self.p_threshold, self.q_threshold)

    @cached_property
    def epsilon_inf(self) -> float:
        """Privacy loss of a permanent response, so of any reports from it; nats, rounded up; inf at f = 0."""
        return loss_of_permanent_response(self.ones, self.flip_threshold)

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats: `epsilon_one`."""
        return self.epsilon_one

    def thresholds_at(self, epsilon: float) -> Thresholds:
        """Return the best thresholds at another epsilon of one report: p and q are computed again."""
        if self.flip_threshold == 0:
            return Thresholds(*round_to_thresholds(0.0, 1 / (math.exp(epsilon / self.ones) + 1), 0.5))
        return choose_thresholds(self.ones, min(self.epsilon_inf, LARGEST_EPSILON), epsilon)


def check_thresholds(flip_threshold: int, p_threshold: int, q_threshold: int) -> None:
    """Raise ValueError unless the thresholds are in the ranges given in `TwoStepBits`."""
    if not 0 <= flip_threshold < WORDS // 2:
        raise ValueError(f"flip_threshold must be in [0, {WORDS // 2}), got {flip_threshold}")
    if not 0 < p_threshold < q_threshold < WORDS:
        raise ValueError(
            f"p_threshold must be in (0, q_threshold) and q_threshold below {WORDS},"
            f" got {p_threshold} and {q_threshold}"
        )


def round_to_thresholds(f: float, p: float, q: float) -> tuple[int, int, int]:
    """Round f up to a multiple of 2^-31, p up and q down to multiples of 2^-32; neither epsilon rises.

    Parameters
    ----------
    f : share of permanent bits that are noise, in [0, 1).
    p : P(report 1 | permanent bit 0), in (0, q).
    q : P(report 1 | permanent bit 1), in (p, 1).

    Returns
    -------
    flip_threshold, p_threshold and q_threshold.

    Raises
    ------
    ValueError if a parameter is out of range.
    """
    if not 0 <= f < 1:
        raise ValueError(f"f must be in [0, 1), got {f}")
    if not 0 < q < 1:
        raise ValueError(f"q must be in (0, 1), got {q}")
    if not 0 < p < q:
        raise ValueError(f"p must be in (0, q = {q}), got {p}")
    return math.ceil(Fraction(f) / 2 * WORDS), math.ceil(Fraction(p) * WORDS), math.floor(Fraction(q) * WORDS)


def loss_of_one_report(ones: int, flip_threshold: int, p_threshold: int, q_threshold: int) -> float:
    """Bound the loss of a report with a fresh permanent response: h ln(q* (1 - p*) / (p* (1 - q*))).

    Of two true values, each sets at most h = `ones` bits that the other does not. The ratio of probabilities
    is largest for the report that shows exactly the bits of one value: q* / p* for each of its h bits, and
    (1 - p*) / (1 - q*) for each of the other's.

    Parameters
    ----------
    ones : h, >= 1.
    flip_threshold : (f/2) 2^32, in [0, 2^31).
    p_threshold : p 2^32, in (0, q_threshold).
    q_threshold : q 2^32, in (p_threshold, 2^32).

    Returns
    -------
    epsilon, nats, rounded up.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), theorem 2.
    """
    p_star = _reported(flip_threshold, p_threshold, q_threshold)
    q_star = _reported(flip_threshold, q_threshold, p_threshold)
    return _times_above(ones, log_above(q_star * (1 - p_star) / (p_star * (1 - q_star))))


def loss_of_permanent_response(ones: int, flip_threshold: int) -> float:
    """Bound the loss of a permanent response: 2 h ln((1 - f/2) / (f/2)).

    Parameters
    ----------
    ones : h, >= 1.
    flip_threshold : (f/2) 2^32, in [0, 2^31).

    Returns
    -------
    epsilon, nats, rounded up; inf when the threshold is 0.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), theorem 1.
    """
    if flip_threshold == 0:
        return math.inf
    return _times_above(2 * ones, log_above(Fraction(WORDS - flip_threshold, flip_threshold)))


def _reported(flip_threshold: int, kept_threshold: int, flipped_threshold: int) -> Fraction:
    """Exact P(report 1), given the thresholds for a kept and for a flipped permanent bit."""
    kept = (WORDS - flip_threshold) * kept_threshold
    return Fraction(kept + flip_threshold * flipped_threshold, WORDS * WORDS)


def _times_above(factor: int, value: float) -> float:
    """Upper bound on the product; a float product is off by at most half a unit in the last place."""
    return math.nextafter(factor * value, math.inf)


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
    _check_epsilons(ones, epsilon_inf, epsilon_one)
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


def _check_epsilons(ones: int, epsilon_inf: float, epsilon_one: float) -> None:
    if ones < 1:
        raise ValueError(f"ones must be at least 1, got {ones}")
    if not 0 < epsilon_inf <= LARGEST_EPSILON:
        raise ValueError(f"epsilon_inf must be in (0, {LARGEST_EPSILON}], got {epsilon_inf}")
    least = LEAST_LOSS_PER_BIT * ones
    if not least <= epsilon_one <= epsilon_inf:
        raise ValueError(f"epsilon_one must be in [{least}, epsilon_inf = {epsilon_inf}], got {epsilon_one}")
