"""RAPPOR over Bloom filters with cohorts: each bit of a hashed value is randomized in two steps."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from deniable.estimators.mechanisms.rappor_bits import TwoStepBits, check_thresholds, round_to_thresholds
from deniable.estimators.mechanisms.traits import QuestionKind

LARGEST_BITS = 4096
#: With reports in fewer cohorts, strings are not told from unlisted ones that share their bits: nothing is
#: significant, and the interval of `other` is 0 to 1.
LEAST_COHORTS = 6
LARGEST_COHORTS = 65535
BYTE_HASHED_BITS = 256


@dataclass(frozen=True)
class Rappor(TwoStepBits):
    """Bloom RAPPOR with integer thresholds, so that its probabilities and its epsilons are exact.

    A value sets up to `hashes` of `bits` bits; which ones depends on the client's cohort.

    Parameters
    ----------
    bits : length of the Bloom filter (k), a multiple of 8 in [8, 4096].
    hashes : hash functions (h), in [1, 16]; at most 8 when bits > 256, because one MD5 digest has 16 bytes.
    cohorts : groups of clients (m), each with its own hash functions, in [1, 65535].
    flip_threshold : (f/2) 2^32, in [0, 2^31).
    p_threshold : p 2^32, in (0, q_threshold).
    q_threshold : q 2^32, in (p_threshold, 2^32).

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), sections 2 and 3; google/rappor.
    """

    #: Name in the collection file.
    name: ClassVar[str] = "rappor"
    kind = QuestionKind.STRINGS

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
        check_thresholds(self.flip_threshold, self.p_threshold, self.q_threshold)

    @classmethod
    def from_probabilities(cls, bits: int, hashes: int, cohorts: int, f: float, p: float, q: float) -> Self:
        """Build the mechanism from real f, p and q, rounded so that neither epsilon rises.

        Parameters
        ----------
        bits, hashes, cohorts : see the class.
        f : share of permanent bits that are noise, in [0, 1).
        p : P(report 1 | permanent bit 0), in (0, q).
        q : P(report 1 | permanent bit 1), in (p, 1).

        Raises
        ------
        ValueError if a parameter is out of range, before or after rounding.
        """
        return cls(bits, hashes, cohorts, *round_to_thresholds(f, p, q))

    @property
    def ones(self) -> int:
        """Largest number of true bits that are 1: `hashes`."""
        return self.hashes

    @property
    def min_ones(self) -> int:
        """Least number of true bits that are 1: hashes may collide."""
        return 1

    @property
    def used_bits(self) -> int:
        """All bits of a report."""
        return self.bits

    @property
    def width(self) -> int:
        """Counters in one row of counts: one per bit."""
        return self.bits

    def at_epsilon(self, epsilon: float) -> Self:
        """Build it at another epsilon of one report, see `Traits`."""
        return replace(self, **self.thresholds_at(epsilon)._asdict())

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        return {
            "kind": self.name,
            "bits": self.bits,
            "hashes": self.hashes,
            "cohorts": self.cohorts,
            "flip_threshold": self.flip_threshold,
            "p_threshold": self.p_threshold,
            "q_threshold": self.q_threshold,
        }
