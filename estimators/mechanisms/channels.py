"""The channels that estimators invert: one RAPPOR bit, and k values under k-RR."""

from typing import Protocol

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.traits import OneCohort, QuestionKind


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
