"""RAPPOR over Bloom filters with cohorts: two steps of randomization for each bit of a hashed value."""

from dataclasses import dataclass
from typing import ClassVar, Self

from estimators.mechanisms.rappor_bits import TwoStepBits, check_thresholds, round_to_thresholds

LARGEST_BITS = 4096
LARGEST_COHORTS = 65535
BYTE_HASHED_BITS = 256


@dataclass(frozen=True)
class Rappor(TwoStepBits):
    """The channel that a producer runs, as the integers it compares with.

    A value sets up to `hashes` of `bits` bits, which ones depends on the client's cohort.

    Parameters
    ----------
    bits : length of the Bloom filter, a multiple of 8 in [8, 4096].
    hashes : hash functions (h), in [1, 16]; at most 8 when bits > 256, as far as one MD5 digest goes.
    cohorts : groups of clients with hash functions of their own, in [1, 65535].
    flip_threshold, p_threshold, q_threshold : as of TwoStepBits.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), sections 2 and 3; google/rappor.
    """

    #: What the collection file calls it.
    name: ClassVar[str] = "rappor"

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
        """Round f, p and q so that both epsilons fall, never rise.

        Parameters
        ----------
        bits, hashes, cohorts : as of the class.
        f, p, q : as of `round_to_thresholds`.

        Raises
        ------
        ValueError if a parameter is out of range, before or after rounding.
        """
        return cls(bits, hashes, cohorts, *round_to_thresholds(f, p, q))

    @property
    def ones(self) -> int:
        """Most true bits that are 1: `hashes`."""
        return self.hashes

    @property
    def width(self) -> int:
        """Counters in one row of counts: one for each bit."""
        return self.bits

    def parameters(self) -> dict[str, int | str]:
        """All that changes what a report means, exact: what a collection's fingerprint is made of."""
        return {
            "kind": self.name,
            "bits": self.bits,
            "hashes": self.hashes,
            "cohorts": self.cohorts,
            "flip_threshold": self.flip_threshold,
            "p_threshold": self.p_threshold,
            "q_threshold": self.q_threshold,
        }
