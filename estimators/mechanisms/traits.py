"""What every mechanism says of itself, so that nothing else asks which class it is of."""

import math
from abc import ABC, abstractmethod
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar, NamedTuple, Protocol, Self

import numpy as np

from deniable.estimators.arrays import FloatArray


class BitChannel(Protocol):
    """P(report 1) given a true bit, after both steps of randomization; p* < q*."""

    @property
    def p_star(self) -> float:
        """P(report 1 | true bit 0), in (0, q*)."""

    @property
    def q_star(self) -> float:
        """P(report 1 | true bit 1), in (p*, 1)."""


class SymmetricChannel(Protocol):
    """A channel that reports the truth with probability p, each other value with q: k-RR, once or twice."""

    @property
    def k(self) -> int:
        """Number of values, >= 2."""
        ...

    @property
    def p(self) -> float:
        """P(report v | truth v), in (1/k, 1)."""
        ...

    @property
    def q(self) -> float:
        """P(report v | truth w), w != v; p + (k - 1) q = 1."""
        ...

    @property
    def contrast(self) -> float:
        """Difference p - q, rounded once, so > 0 even where the floats p and q are equal."""
        ...


class QuestionKind(StrEnum):
    """The kind of question that a collection asks; it decides what a report is of, and what is estimated."""

    VALUES = "values"  #: which of k listed values: a share of each
    STRINGS = "strings"  #: any string, of which candidates are decoded: a share of each
    NUMBER = "number"  #: a number in a range: a density, a mean and quantiles
    PAIR = "pair"  #: a value of each of two fields: a share of each pair


class ReportAtom(NamedTuple):
    """Reports with the same ratios of probabilities under two true values x and x'.

    Parameters
    ----------
    first, second : P(report | x) / c and P(report | x') / c; c is its least probability over all values.
    mass : sum of c over these reports.
    """

    first: Fraction
    second: Fraction
    mass: Fraction


class Traits(ABC):
    """Base class of all mechanisms.

    Parameters
    ----------
    kind : of the question that is answered.
    wire_number : of the form of its reports in a pack's header, in [1, 255].
    keeps_permanent : True if clients can keep a permanent response to each value.
    always_memoizes : True if they always do.
    is_of_bits : True if a report is bits, of which several may be 1; False if it is one bucket.
    is_in_browsers : True if the browser client randomizes by it, too.
    repeats_noise : True if the reports of a returning client have anything random in common.
    """

    kind: ClassVar[QuestionKind]
    wire_number: ClassVar[int]
    keeps_permanent: ClassVar[bool] = False
    always_memoizes: ClassVar[bool] = False
    repeats_noise: ClassVar[bool] = False
    is_of_bits: ClassVar[bool] = False
    is_in_browsers: ClassVar[bool] = True

    @property
    def domain_size(self) -> int:
        """Number of values or of pairs of values, `other` included; 0 for strings and numbers."""
        return 0

    @abstractmethod
    def at_epsilon(self, epsilon: float) -> Self:
        """Build the mechanism of this class with the least error at another epsilon of one report.

        Values, range, bits, hashes, cohorts and epsilon_inf stay the same.

        Parameters
        ----------
        epsilon : nats, within `mechanism.epsilon_range`.
        """

    @property
    def epsilon_of_all_buckets(self) -> float | None:
        """Loss of all reports of values in every bucket of longitudinal hashing, nats; None without it."""
        return None

    @property
    def max_values(self) -> int:
        """Largest number of values that one report is of: 1."""
        return 1

    def report_atoms(self) -> tuple[ReportAtom, ...]:
        """All reports by their ratios under the two values that differ most; empty if accounted otherwise."""
        return ()

    def permanent_parameters(self) -> dict[str, int | str]:
        """Parameters on which what clients keep depends, if fewer than all; else empty."""
        return {}

    @property
    @abstractmethod
    def width(self) -> int:
        """Counters in one row of counts."""

    @property
    def epsilon_inf(self) -> float:
        """Privacy loss of any reports of a value that share a permanent response, nats; inf without one."""
        return math.inf

    @property
    @abstractmethod
    def counter_rates(self) -> tuple[float, float]:
        """Largest and least probability that a report adds to a counter, over all true values."""

    @property
    @abstractmethod
    def max_step(self) -> float:
        """Number of reports times the most that one report adds to an estimated share; of a number, mean."""


class OneCohort(Traits):
    """Base class of mechanisms that count all clients together."""

    @property
    def cohorts(self) -> int:
        """Number of groups of clients that are counted separately, and so of rows of counters: 1."""
        return 1


class SymmetricMechanism(OneCohort):
    """Base class of every SymmetricChannel: its matrix and the shape of its counts."""

    kind = QuestionKind.VALUES

    @property
    def channel(self: SymmetricChannel) -> FloatArray:
        """P(report y | truth x) in row y and column x, float64 (k, k): p on the diagonal, else q."""
        matrix = np.full((self.k, self.k), self.q)
        np.fill_diagonal(matrix, self.p)
        return matrix

    @property
    def domain_size(self: SymmetricChannel) -> int:
        """Number of values: k."""
        return self.k

    @property
    def width(self: SymmetricChannel) -> int:
        """Counters in one row of counts: one per value."""
        return self.k

    @property
    def counter_rates(self: SymmetricChannel) -> tuple[float, float]:
        """P(report v | truth v) and P(report v | truth w)."""
        return self.p, self.q

    @property
    def max_step(self: SymmetricChannel) -> float:
        """Number of reports times the most that one report adds to an estimated share: 1 / (p - q)."""
        return 1 / self.contrast


class BitReports(Traits):
    """Base class of mechanisms whose report is bits, each likelier 1 where the true bit is."""

    wire_number = 2
    is_of_bits = True

    @property
    @abstractmethod
    def p_star(self) -> float:
        """P(report 1 | true bit 0), in (0, q*)."""

    @property
    @abstractmethod
    def q_star(self) -> float:
        """P(report 1 | true bit 1), in (p*, 1)."""

    @property
    def counter_rates(self) -> tuple[float, float]:
        """P(report 1 | true bit 1) and P(report 1 | true bit 0)."""
        return self.q_star, self.p_star

    @property
    def max_step(self) -> float:
        """Number of reports times the most that one report adds to an estimated share: 1 / (q* - p*)."""
        return 1 / (self.q_star - self.p_star)


class ValueBits(BitReports, OneCohort):
    """Base class of mechanisms whose report has a bit for each value, likelier set for the true one.

    Parameters
    ----------
    buckets : number of values, k, in [2, 4096].
    """

    kind = QuestionKind.VALUES

    buckets: int

    @property
    def f(self) -> float:
        """Share of permanent bits that are noise: 0 without a permanent response."""
        return 0.0

    @property
    def bits(self) -> int:
        """Bits of a report, a multiple of 8; up to 7 at the end belong to no bucket and hold only noise."""
        return -(-self.buckets // 8) * 8

    @property
    def width(self) -> int:
        """Counters in one row of counts: one per bit."""
        return self.bits

    @property
    def domain_size(self) -> int:
        """Number of values: `buckets`."""
        return self.buckets
