"""The two randomization steps of a RAPPOR bit, permanent and instantaneous, and their exact privacy loss."""

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import log_above

WORDS = 1 << 32


class TwoStepBits(ABC):
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

    flip_threshold: int
    p_threshold: int
    q_threshold: int

    @property
    @abstractmethod
    def ones(self) -> int:
        """Largest number of true bits that are 1 (h), so two values differ in at most 2 h bits."""

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
