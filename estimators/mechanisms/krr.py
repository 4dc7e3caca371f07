"""k-ary randomized response (k-RR): report the truth with probability p, else another value uniformly."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

from deniable.estimators.mechanisms.directed_rounding import exp_below, log_above
from deniable.estimators.mechanisms.traits import SymmetricMechanism

WORDS = 1 << 64
LARGEST_K = 1 << 31
LARGEST_EPSILON = 16


@dataclass(frozen=True)
class KRR(SymmetricMechanism):
    """k-RR with an integer threshold, so that its probabilities and its epsilon are exact.

    The producer reports the true value iff a uniform 64-bit word is below `threshold`. Otherwise it draws a
    second word and reports other value number (word * (k - 1)) >> 64 of the k - 1 other values. Each of these
    gets floor(2^64 / (k - 1)) words or one more: `epsilon` uses the rarest, and q, for estimation, the mean.

    Parameters
    ----------
    k : number of values, in [2, 2^31].
    threshold : p 2^64, integer in (2^64 / k, 2^64), high enough that the truth is likelier than any other
        value.

    Raises
    ------
    ValueError if k or threshold is out of range.

    Source: Pinzón et al., "Estimating the true distribution of data collected with randomized response"
    (arXiv 2601.08603), "RR mechanism"; there p, q and K.
    """

    #: Name in the collection file.
    name: ClassVar[str] = "k-rr"
    title: ClassVar[str] = "k-RR"
    wire_number = 1

    k: int
    threshold: int

    def __post_init__(self) -> None:
        if not 2 <= self.k <= LARGEST_K:
            raise ValueError(f"k must be in [2, {LARGEST_K}], got {self.k}")
        least = least_threshold(self.k)
        if not least <= self.threshold < WORDS:
            raise ValueError(f"threshold must be in [{least}, {WORDS - 1}], got {self.threshold}")

    @classmethod
    def from_epsilon(cls, k: int, epsilon: float) -> Self:
        """Build the k-RR with the largest p whose exact epsilon does not exceed the declared one.

        Parameters
        ----------
        k : number of values, in [2, 2^31].
        epsilon : privacy loss of one report, nats, in (0, 16].

        Raises
        ------
        ValueError if a parameter is out of range, or epsilon is too small for 64-bit words.
        """
        if not 0 < epsilon <= LARGEST_EPSILON:
            raise ValueError(f"epsilon must be in (0, {LARGEST_EPSILON}], got {epsilon}")
        if not 2 <= k <= LARGEST_K:
            raise ValueError(f"k must be in [2, {LARGEST_K}], got {k}")
        # p / min q = T 2^64 / ((2^64 - T) rarest) <= e^epsilon, solved for the largest integer T.
        weight = exp_below(epsilon) * rarest(k)
        threshold = int(WORDS * weight / (WORDS + weight))
        if threshold < least_threshold(k):
            least = cls(k, least_threshold(k)).epsilon
            raise ValueError(f"epsilon must be in [{least}, {LARGEST_EPSILON}] for k = {k}, got {epsilon}")
        return cls(k, threshold)

    @classmethod
    def from_probability(cls, k: int, p: float) -> Self:
        """Build the k-RR that reports the truth with probability p, rounded down to a multiple of 2^-64.

        Up to that rounding its epsilon is ln(p (k - 1) / (1 - p)): ln 3 at p = 3/4 and k = 2.

        Parameters
        ----------
        k : number of values, in [2, 2^31].
        p : P(report v | truth v), in (1/k, 1). A survey that with probability r draws its answer uniformly
            from all k values, the truth included, has p = 1 - r + r/k.

        Raises
        ------
        ValueError if a parameter is out of range.
        """
        if not 2 <= k <= LARGEST_K:
            raise ValueError(f"k must be in [2, {LARGEST_K}], got {k}")
        if not 0 < p < 1 or (threshold := int(Fraction(p) * WORDS)) < least_threshold(k):
            raise ValueError(f"p must be in (1/{k}, 1), got {p}")
        return cls(k, threshold)

    @property
    def p(self) -> float:
        """P(report v | truth v)."""
        return self.threshold / WORDS

    @property
    def q(self) -> float:
        """Mean of P(report v | truth w) over the k - 1 values w != v: (1 - p) / (k - 1)."""
        return (WORDS - self.threshold) / (WORDS * (self.k - 1))

    @property
    def contrast(self) -> float:
        """Difference p - q, rounded once, so > 0 even where the floats p and q are equal."""
        return (self.k * self.threshold - WORDS) / (WORDS * (self.k - 1))

    @cached_property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats: ln(p / min q), rounded up."""
        truth = Fraction(self.threshold, WORDS)
        return log_above(truth / ((1 - truth) * Fraction(rarest(self.k), WORDS)))

    def at_epsilon(self, epsilon: float) -> Self:
        """Build it at another epsilon, see `Traits`."""
        return self.from_epsilon(self.k, epsilon)

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        return {"kind": self.name, "k": self.k, "threshold": self.threshold}


def rarest(k: int) -> int:
    """Number of 64-bit words that multiply-shift maps to the rarest of k - 1 numbers, k >= 2."""
    return WORDS // (k - 1)


def commonest(k: int) -> int:
    """Number of 64-bit words that multiply-shift maps to the commonest of k - 1 numbers, k >= 2."""
    return -(-WORDS // (k - 1))


def least_threshold(k: int) -> int:
    """Smallest threshold T with which the truth is likelier than the commonest other value, k >= 2.

    T / 2^64 > (1 - T / 2^64) c / 2^64, where c = `commonest(k)`.
    """
    return WORDS * commonest(k) // (WORDS + commonest(k)) + 1
