"""A pair of fields: each is randomized by a k-RR of its own, and one report holds both results."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import log_above
from deniable.estimators.mechanisms.krr import KRR, LARGEST_EPSILON, WORDS, rarest
from deniable.estimators.mechanisms.traits import OneCohort, QuestionKind

#: Largest number of pairs of values: a record of estimates holds them all.
LARGEST_CELLS = 2000


@dataclass(frozen=True)
class PairKRR(OneCohort):
    """Two k-RRs beside each other: value (a, b) is reported as (first of a, second of b).

    Pairs are numbered by rows: pair (a, b) is cell a * K2 + b of K1 K2. The randomness of the two fields is
    independent, so the channel is the Kronecker product of both, and the counts of reported pairs are all
    that a likelihood needs.

    Parameters
    ----------
    first, second : KRR of each field, K1 and K2 values, K1 K2 <= 2000; together of an epsilon <= 16.

    Raises
    ------
    ValueError if there are too many cells, or epsilon is too large.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), section 5.2, and Fanti, Pihur, Erlingsson,
    "Building a RAPPOR with the unknown" (PoPETs 2016), section 3, for two fields that are reported together.
    """

    #: Name in the collection file.
    name: ClassVar[str] = "k-rr-pair"
    kind = QuestionKind.PAIR
    wire_number = 7

    first: KRR
    second: KRR

    def __post_init__(self) -> None:
        if self.width > LARGEST_CELLS:
            raise ValueError(
                f"pairs of values must be at most {LARGEST_CELLS},"
                f" got {self.first.k} times {self.second.k} = {self.width}"
            )
        if self.epsilon > LARGEST_EPSILON:
            raise ValueError(
                f"epsilon of both fields together must be in (0, {LARGEST_EPSILON}], got {self.epsilon}"
            )

    @classmethod
    def from_epsilons(cls, k1: int, k2: int, epsilon_1: float, epsilon_2: float) -> Self:
        """Build the pair of the k-RRs with these epsilons.

        Parameters
        ----------
        k1, k2 : number of values of each field, >= 2, k1 k2 <= 2000.
        epsilon_1, epsilon_2 : privacy loss of each field's part, nats, > 0, together at most 16.

        Raises
        ------
        ValueError if a parameter is out of range.
        """
        return cls(KRR.from_epsilon(k1, epsilon_1), KRR.from_epsilon(k2, epsilon_2))

    @property
    def fields(self) -> tuple[KRR, KRR]:
        """The k-RRs of both fields."""
        return self.first, self.second

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table of pairs, K1 and K2."""
        return self.first.k, self.second.k

    @property
    def width(self) -> int:
        """Counters in one row of counts: one per reported pair, K1 K2."""
        return self.first.k * self.second.k

    @property
    def domain_size(self) -> int:
        """Number of pairs of values, K1 K2."""
        return self.width

    @property
    def counter_rates(self) -> tuple[float, float]:
        """P(report of a pair | that pair), and the least P(report of it | another pair)."""
        return self.first.p * self.second.p, self.first.q * self.second.q

    @property
    def max_step(self) -> float:
        """Number of reports times the most that one report adds to an estimated share."""
        return 1 / (self.first.contrast * self.second.contrast)

    @property
    def channel(self) -> FloatArray:
        """P(report y | truth x) in row y and column x, float64 (K1 K2, K1 K2)."""
        return np.kron(self.first.channel, self.second.channel).astype(np.float64)

    @cached_property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats, rounded up: ln of the product of both fields' p / min q."""
        return log_above(_ratio(self.first) * _ratio(self.second))

    def at_epsilon(self, epsilon: float) -> Self:
        """Build it at another epsilon, of which the fields keep their parts, see `Traits`."""
        part = self.first.epsilon / (self.first.epsilon + self.second.epsilon)
        rest = math.nextafter(epsilon - epsilon * part, 0)  # so that rounding cannot raise the sum
        return self.from_epsilons(*self.shape, epsilon * part, rest)

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        return {
            "kind": self.name,
            "first_k": self.first.k,
            "first_threshold": self.first.threshold,
            "second_k": self.second.k,
            "second_threshold": self.second.threshold,
        }


def _ratio(field: KRR) -> Fraction:
    """Return p / min q, the largest ratio of two probabilities of one report."""
    truth = Fraction(field.threshold, WORDS)
    return truth / ((1 - truth) * Fraction(rarest(field.k), WORDS))
