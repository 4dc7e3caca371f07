"""RAPPOR without hashing: one bit per bucket; a client sets one bit (one-hot, "basic") or several (k-hot)."""

from dataclasses import dataclass, replace
from typing import Self

from deniable.estimators.mechanisms.rappor_bits import TwoStepBits, check_thresholds, round_to_thresholds
from deniable.estimators.mechanisms.traits import ValueBits

LARGEST_BUCKETS = 4096


@dataclass(frozen=True)
class HotRappor(TwoStepBits, ValueBits):
    """One-hot or k-hot RAPPOR with integer thresholds, so that its probabilities and epsilons are exact.

    A client sets the bits of its buckets, at most `hot` of them. The frequency of a bucket is the share of
    reports whose client is in it; the frequencies of all buckets sum to at most `hot`.

    Parameters
    ----------
    buckets : number of buckets, in [2, 4096].
    hot : largest number of buckets that one client is in, in [1, buckets]. Above buckets / 2, two clients
        cannot differ in `hot` bits each way, and both epsilons are upper bounds.
    flip_threshold : (f/2) 2^32, in [0, 2^31).
    p_threshold : p 2^32, in (0, q_threshold).
    q_threshold : q 2^32, in (p_threshold, 2^32).

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), section 2.1, "Basic One-time RAPPOR".
    """

    buckets: int
    hot: int
    flip_threshold: int
    p_threshold: int
    q_threshold: int

    def __post_init__(self) -> None:
        if not 2 <= self.buckets <= LARGEST_BUCKETS:
            raise ValueError(f"buckets must be in [2, {LARGEST_BUCKETS}], got {self.buckets}")
        if not 1 <= self.hot <= self.buckets:
            raise ValueError(f"hot must be in [1, buckets = {self.buckets}], got {self.hot}")
        check_thresholds(self.flip_threshold, self.p_threshold, self.q_threshold)

    @classmethod
    def from_probabilities(cls, buckets: int, hot: int, f: float, p: float, q: float) -> Self:
        """Build the mechanism from real f, p and q, rounded so that neither epsilon rises.

        Parameters
        ----------
        buckets, hot : see the class.
        f : share of permanent bits that are noise, in [0, 1).
        p : P(report 1 | permanent bit 0), in (0, q).
        q : P(report 1 | permanent bit 1), in (p, 1).

        Raises
        ------
        ValueError if a parameter is out of range, before or after rounding.
        """
        return cls(buckets, hot, *round_to_thresholds(f, p, q))

    @property
    def ones(self) -> int:
        """Largest number of true bits that are 1: `hot`."""
        return self.hot

    @property
    def max_values(self) -> int:
        """Largest number of values that one report is of: `hot`."""
        return self.hot

    @property
    def used_bits(self) -> int:
        """Bits that belong to a bucket: `buckets`."""
        return self.buckets

    @property
    def name(self) -> str:
        """Name in the collection file."""
        return "rappor-one-hot" if self.hot == 1 else "rappor-k-hot"

    def at_epsilon(self, epsilon: float) -> Self:
        """Build it at another epsilon of one report, see `Traits`."""
        return replace(self, **self.thresholds_at(epsilon)._asdict())

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        return {
            "kind": "rappor-hot",
            "buckets": self.buckets,
            "hot": self.hot,
            "flip_threshold": self.flip_threshold,
            "p_threshold": self.p_threshold,
            "q_threshold": self.q_threshold,
        }
