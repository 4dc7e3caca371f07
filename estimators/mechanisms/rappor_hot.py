"""RAPPOR without hashing: one bit for each bucket, one of them set (one-hot, "basic"), or several (k-hot)."""

from dataclasses import dataclass
from typing import Self

from estimators.mechanisms.rappor_bits import TwoStepBits, check_thresholds, round_to_thresholds

LARGEST_BUCKETS = 4096


@dataclass(frozen=True)
class HotRappor(TwoStepBits):
    """The channel that a producer runs, as the integers it compares with.

    A client sets the bits of the buckets it contributes to, at most `hot` of them. What is estimated of a
    bucket is the share of reports whose client is in it: over all buckets the shares sum to `hot` at most.

    Parameters
    ----------
    buckets : number of buckets, in [2, 4096].
    hot : most buckets that one client is in, in [1, buckets]. Beyond half of the buckets, where two clients
        cannot differ in `hot` bits each way, both epsilons are upper bounds.
    flip_threshold, p_threshold, q_threshold : as of TwoStepBits.

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
        """Round f, p and q so that both epsilons fall, never rise.

        Parameters
        ----------
        buckets, hot : as of the class.
        f, p, q : as of `round_to_thresholds`.

        Raises
        ------
        ValueError if a parameter is out of range, before or after rounding.
        """
        return cls(buckets, hot, *round_to_thresholds(f, p, q))

    @property
    def ones(self) -> int:
        """Most true bits that are 1: `hot`."""
        return self.hot

    @property
    def bits(self) -> int:
        """Bits of a report: a multiple of 8, so up to 7 at the end are noise that belongs to no bucket."""
        return -(-self.buckets // 8) * 8

    @property
    def width(self) -> int:
        """Counters in one row of counts: one for each bit."""
        return self.bits

    @property
    def cohorts(self) -> int:
        """Groups of clients that are counted apart: 1, since nothing is hashed."""
        return 1

    @property
    def name(self) -> str:
        """What the collection file calls it."""
        return "rappor-one-hot" if self.hot == 1 else "rappor-k-hot"

    def parameters(self) -> dict[str, int | str]:
        """All that changes what a report means, exact: what a collection's fingerprint is made of."""
        return {
            "kind": "rappor-hot",
            "buckets": self.buckets,
            "hot": self.hot,
            "flip_threshold": self.flip_threshold,
            "p_threshold": self.p_threshold,
            "q_threshold": self.q_threshold,
        }
