"""Subset selection: report a set of w of the k values, the true one in it with probability p."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

from deniable.estimators.mechanisms.directed_rounding import exp_below, log_above
from deniable.estimators.mechanisms.krr import LARGEST_EPSILON, WORDS
from deniable.estimators.mechanisms.rappor_hot import LARGEST_BUCKETS
from deniable.estimators.mechanisms.traits import ReportAtom, ValueBits

LEAST_EPSILON = 1e-6


@dataclass(frozen=True)
class SubsetSelection(ValueBits):
    """Subset selection with an integer threshold, so that its probabilities and its epsilon are exact.

    The producer puts the true value into the set iff a uniform 64-bit word is below `threshold`, and fills
    the set with uniformly random other values. A report has a bit for each value: 1 for those in the set.

    Parameters
    ----------
    buckets : number of values (k), in [2, 4096].
    chosen : number of values in a set (w), in [1, k).
    threshold : p 2^64, integer in (2^64 w / k, 2^64).

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Ye, Barg, "Optimal schemes for discrete distribution estimation under locally differential
    privacy" (IEEE Transactions on Information Theory 2018), section III; there d = w.
    """

    #: Name in the collection file.
    name: ClassVar[str] = "subset-selection"
    title: ClassVar[str] = "subset selection"
    is_in_browsers = False

    buckets: int
    chosen: int
    threshold: int

    def __post_init__(self) -> None:
        if not 2 <= self.buckets <= LARGEST_BUCKETS:
            raise ValueError(f"buckets must be in [2, {LARGEST_BUCKETS}], got {self.buckets}")
        if not 1 <= self.chosen < self.buckets:
            raise ValueError(f"chosen must be in [1, buckets = {self.buckets}), got {self.chosen}")
        least = self.chosen * WORDS // self.buckets + 1
        if not least <= self.threshold < WORDS:
            raise ValueError(f"threshold must be in [{least}, {WORDS - 1}], got {self.threshold}")

    @classmethod
    def from_epsilon(cls, buckets: int, epsilon: float) -> Self:
        """Build the mechanism with the least variance of a rare value's share at this epsilon.

        Parameters
        ----------
        buckets : number of values, in [2, 4096].
        epsilon : privacy loss of one report, nats, in [1e-6, 16].

        Raises
        ------
        ValueError if a parameter is out of range.
        """
        if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
            raise ValueError(f"epsilon must be in [{LEAST_EPSILON}, {LARGEST_EPSILON}], got {epsilon}")
        if not 2 <= buckets <= LARGEST_BUCKETS:
            raise ValueError(f"buckets must be in [2, {LARGEST_BUCKETS}], got {buckets}")
        odds = exp_below(epsilon)
        below = min(max(int(buckets / (odds + 1)), 1), buckets - 1)
        sizes = (below, min(below + 1, buckets - 1))
        return min((cls._of_size(buckets, size, odds) for size in sizes), key=lambda each: each._variance)

    @classmethod
    def _of_size(cls, buckets: int, chosen: int, odds: Fraction) -> Self:
        weight = chosen * odds
        return cls(buckets, chosen, int(WORDS * weight / (weight + buckets - chosen)))

    @property
    def _p(self) -> Fraction:
        """P(the true value is in the set), exactly."""
        return Fraction(self.threshold, WORDS)

    @property
    def _q(self) -> Fraction:
        """P(another value is in the set): (p (w - 1) + (1 - p) w) / (k - 1) = (w - p) / (k - 1)."""
        return (self.chosen - self._p) / (self.buckets - 1)

    @property
    def _variance(self) -> Fraction:
        """N times the variance of the share of a value that nobody has."""
        return self._q * (1 - self._q) / (self._p - self._q) ** 2

    @cached_property
    def q_star(self) -> float:
        """P(bit of a value is 1 | that value): p."""
        return float(self._p)

    @cached_property
    def p_star(self) -> float:
        """P(bit of a value is 1 | another value): (w - p) / (k - 1)."""
        return float(self._q)

    @cached_property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats, rounded up: ln(p (k - w) / ((1 - p) w))."""
        return log_above(self._p * (self.buckets - self.chosen) / ((1 - self._p) * self.chosen))

    def at_epsilon(self, epsilon: float) -> Self:
        """Build it at another epsilon, see `Traits`; its sets have another size."""
        return self.from_epsilon(self.buckets, epsilon)

    def report_atoms(self) -> tuple[ReportAtom, ...]:
        """Sets with x alone, with x' alone, with both and with neither, beside a set without x: c each.

        Of the C(k - 1, w) sets without a value, each has the probability c = (1 - p) / C(k - 1, w); a set
        with it e^epsilon times as much. There are C(k - 2, w - 1) sets with x alone, so their mass is
        (1 - p) w / (k - 1); with both (1 - p) w (w - 1) / ((k - 1) (k - w)); with neither the rest.
        """
        k, w, lie, one = self.buckets, self.chosen, 1 - self._p, Fraction(1)
        odds = self._p * (k - w) / (lie * w)
        alone = lie * w / (k - 1)
        return (
            ReportAtom(odds, one, alone),
            ReportAtom(one, odds, alone),
            ReportAtom(odds, odds, alone * (w - 1) / (k - w)),
            ReportAtom(one, one, lie * (k - 1 - w) / (k - 1)),
        )

    def parameters(self) -> dict[str, int | str]:
        """Exact parameters that define the meaning of a report; they enter the collection's fingerprint."""
        return {
            "kind": self.name,
            "buckets": self.buckets,
            "chosen": self.chosen,
            "threshold": self.threshold,
        }
