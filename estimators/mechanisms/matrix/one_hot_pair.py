"""A pair of fields with one bit for each pair of values: the whole epsilon protects the pair."""

import math
from dataclasses import dataclass
from typing import Self

from deniable.estimators.mechanisms.krr import LARGEST_EPSILON
from deniable.estimators.mechanisms.matrix.pair import LARGEST_CELLS
from deniable.estimators.mechanisms.rappor_bits import round_to_thresholds
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.traits import QuestionKind

LEAST_EPSILON = 1e-6  # below it, thresholds over 2^32 are too coarse


@dataclass(frozen=True)
class OneHotPair(HotRappor):
    """One-hot bits of all K1 K2 pairs of values: bit a K2 + b is that of value (a, b).

    `PairKRR` splits epsilon between two fields, so that noise of both multiplies. Here a pair is one value
    of K1 K2, and costs what a value of any one-hot collection costs. Bits have no permanent response: a
    report is randomized afresh.

    Parameters
    ----------
    buckets, hot, flip_threshold, p_threshold, q_threshold : see HotRappor; hot is 1, flip_threshold 0.
    columns : number of values of the second field (K2), >= 2, a divisor of `buckets`.

    Raises
    ------
    ValueError if a parameter is out of range.
    """

    kind = QuestionKind.PAIR
    repeats_noise = False

    columns: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.buckets > LARGEST_CELLS:
            raise ValueError(f"pairs of values must be at most {LARGEST_CELLS}, got {self.buckets}")
        if self.columns < 2 or self.buckets % self.columns or self.buckets < 2 * self.columns:
            raise ValueError(
                f"columns must be at least 2 and divide buckets = {self.buckets} into at least 2 rows,"
                f" got {self.columns}"
            )
        if self.hot != 1 or self.flip_threshold != 0:
            raise ValueError(
                f"hot must be 1 and flip_threshold 0 for pairs, got {self.hot} and {self.flip_threshold}"
            )

    @classmethod
    def from_epsilon(cls, k1: int, k2: int, epsilon: float) -> Self:
        """Build the mechanism with the least error at this epsilon: q = 1/2, p = 1 / (e^epsilon + 1).

        Parameters
        ----------
        k1, k2 : number of values of each field, >= 2, k1 k2 <= 2000.
        epsilon : privacy loss of one report, nats, in [1e-6, 16].

        Raises
        ------
        ValueError if a parameter is out of range.

        Source: Wang et al., "Locally differentially private protocols for frequency estimation" (USENIX
        Security 2017), section 4.3, optimized unary encoding.
        """
        if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
            raise ValueError(f"epsilon must be in [{LEAST_EPSILON}, {LARGEST_EPSILON}], got {epsilon}")
        return cls(k1 * k2, 1, *round_to_thresholds(0.0, 1 / (math.exp(epsilon) + 1), 0.5), k2)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table of pairs, K1 and K2."""
        return self.buckets // self.columns, self.columns

    @property
    def name(self) -> str:
        """Name in the collection file."""
        return "one-hot-pair"

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        return {
            "kind": self.name,
            "first_k": self.shape[0],
            "second_k": self.columns,
            "p_threshold": self.p_threshold,
            "q_threshold": self.q_threshold,
        }
