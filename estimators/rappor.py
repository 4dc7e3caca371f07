"""RAPPOR over Bloom filters with cohorts: two steps of randomization for each bit of a hashed value."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

from estimators.logarithm import log_above

WORDS = 1 << 32
LARGEST_BITS = 4096
LARGEST_COHORTS = 65535
BYTE_HASHED_BITS = 256


@dataclass(frozen=True)
class Rappor:
    """The channel that a producer runs, as the integers it compares with.

    A value sets up to `hashes` of `bits` bits, which ones depends on the client's cohort. The permanent
    response flips each bit with probability f/2 = flip_threshold / 2^32. A report then shows a 1 with
    probability q where the permanent bit is 1, and with probability p where it is 0.

    Parameters
    ----------
    bits : length of the Bloom filter, a multiple of 8 in [8, 4096].
    hashes : hash functions (h), in [1, 16]; at most 8 when bits > 256, as far as one MD5 digest goes.
    cohorts : groups of clients with hash functions of their own, in [1, 65535].
    flip_threshold : (f/2) 2^32, in [0, 2^31).
    p_threshold : p 2^32, in (0, q_threshold).
    q_threshold : q 2^32, in (p_threshold, 2^32).

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), sections 2 and 3; google/rappor.
    """

    bits: int
    hashes: int
    cohorts: int
    flip_threshold: int
    p_threshold: int
    q_threshold: int

    def __post_init__(self) -> None:
        if not 8 <= self.bits <= LARGEST_BITS or self.bits % 8:
            raise ValueError(f"bits must be a multiple of 8 in [8, {LARGEST_BITS}], got {self.bits}")
        most = 16 if self.bits <= BYTE_HASHED_BITS else 8
        if not 1 <= self.hashes <= most:
            raise ValueError(f"hashes must be in [1, {most}] for {self.bits} bits, got {self.hashes}")
        if not 1 <= self.cohorts <= LARGEST_COHORTS:
            raise ValueError(f"cohorts must be in [1, {LARGEST_COHORTS}], got {self.cohorts}")
        if not 0 <= self.flip_threshold < WORDS // 2:
            raise ValueError(f"flip_threshold must be in [0, {WORDS // 2}), got {self.flip_threshold}")
        if not 0 < self.p_threshold < self.q_threshold < WORDS:
            raise ValueError(
                f"p_threshold must be in (0, q_threshold) and q_threshold below {WORDS},"
                f" got {self.p_threshold} and {self.q_threshold}"
            )

    @classmethod
    def from_probabilities(cls, bits: int, hashes: int, cohorts: int, f: float, p: float, q: float) -> Self:
        """Round f and p up and q down to multiples of 2^-31 and 2^-32: each rounding lowers both epsilons.

        Parameters
        ----------
        bits, hashes, cohorts : as of the class.
        f : share of permanent bits that are noise, in [0, 1).
        p : P(report 1 | permanent bit 0), in (0, q).
        q : P(report 1 | permanent bit 1), in (p, 1).

        Raises
        ------
        ValueError if a parameter is out of range, before or after rounding.
        """
        if not 0 <= f < 1:
            raise ValueError(f"f must be in [0, 1), got {f}")
        if not 0 < q < 1:
            raise ValueError(f"q must be in (0, 1), got {q}")
        if not 0 < p < q:
            raise ValueError(f"p must be in (0, q = {q}), got {p}")
        return cls(
            bits=bits,
            hashes=hashes,
            cohorts=cohorts,
            flip_threshold=math.ceil(Fraction(f) / 2 * WORDS),
            p_threshold=math.ceil(Fraction(p) * WORDS),
            q_threshold=math.floor(Fraction(q) * WORDS),
        )

    @property
    def f(self) -> float:
        """Share of permanent bits that are noise: twice the flip probability."""
        return self.flip_threshold / (WORDS // 2)

    @property
    def p(self) -> float:
        """P(report 1 | permanent bit 0)."""
        return self.p_threshold / WORDS

    @property
    def q(self) -> float:
        """P(report 1 | permanent bit 1)."""
        return self.q_threshold / WORDS

    @property
    def p_star(self) -> float:
        """P(report 1 | true bit 0) = p (1 - f/2) + q f/2."""
        return float(self._reported(self.p_threshold, self.q_threshold))

    @property
    def q_star(self) -> float:
        """P(report 1 | true bit 1) = q (1 - f/2) + p f/2."""
        return float(self._reported(self.q_threshold, self.p_threshold))

    @cached_property
    def epsilon_one(self) -> float:
        """Privacy loss of one report whose permanent response is fresh, rounded up.

        h ln(q* (1 - p*) / (p* (1 - q*))): two values differ in at most h bits each way, and the likeliest
        telling report shows q* against p* in the ones, 1 - p* against 1 - q* in the others.
        """
        p_star = self._reported(self.p_threshold, self.q_threshold)
        q_star = self._reported(self.q_threshold, self.p_threshold)
        return _times_above(self.hashes, log_above(q_star * (1 - p_star) / (p_star * (1 - q_star))))

    @cached_property
    def epsilon_inf(self) -> float:
        """Privacy loss of a permanent response, so of all reports made from it, rounded up; inf when f = 0.

        2 h ln((1 - f/2) / (f/2)).
        """
        if self.flip_threshold == 0:
            return math.inf
        odds = Fraction(WORDS - self.flip_threshold, self.flip_threshold)
        return _times_above(2 * self.hashes, log_above(odds))

    @property
    def epsilon(self) -> float:
        """Privacy loss of one report: `epsilon_one`."""
        return self.epsilon_one

    @property
    def width(self) -> int:
        """Counters in one row of counts: one for each bit."""
        return self.bits

    def parameters(self) -> dict[str, int | str]:
        """All that changes what a report means, exact: what a collection's fingerprint is made of."""
        return {
            "kind": "rappor",
            "bits": self.bits,
            "hashes": self.hashes,
            "cohorts": self.cohorts,
            "flip_threshold": self.flip_threshold,
            "p_threshold": self.p_threshold,
            "q_threshold": self.q_threshold,
        }

    def _reported(self, kept_threshold: int, flipped_threshold: int) -> Fraction:
        """P(report 1) of a true bit whose permanent bit, kept or flipped, shows a 1 with these thresholds."""
        kept = (WORDS - self.flip_threshold) * kept_threshold
        return Fraction(kept + self.flip_threshold * flipped_threshold, WORDS * WORDS)


def _times_above(factor: int, value: float) -> float:
    """Product that is not below the true one: a float product is off by half a unit in the last place."""
    return math.nextafter(factor * value, math.inf)
