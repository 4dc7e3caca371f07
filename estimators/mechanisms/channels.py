"""What estimation inverts: the channel of one RAPPOR bit, and the symmetric channel of k values."""

from typing import Protocol

import numpy as np

from estimators.arrays import FloatArray


class BitChannel(Protocol):
    """P(report 1) of every bit by its true value, both steps of randomization together; p* < q*."""

    @property
    def p_star(self) -> float:
        """P(report 1 | true bit 0), in (0, q*)."""

    @property
    def q_star(self) -> float:
        """P(report 1 | true bit 1), in (p*, 1)."""


class SymmetricChannel(Protocol):
    """What k-RR estimation inverts, be it one k-RR or two of them in a row."""

    @property
    def k(self) -> int:
        """Number of values, >= 2."""
        ...

    @property
    def p(self) -> float:
        """P(report v | truth v)."""
        ...

    @property
    def q(self) -> float:
        """P(report v | truth w), w != v; p + (k - 1) q = 1."""
        ...

    @property
    def contrast(self) -> float:
        """The difference p - q, rounded once, > 0."""
        ...


class SymmetricMechanism:
    """What every k-RR is beside its probabilities: to be inherited by a SymmetricChannel."""

    @property
    def channel(self: SymmetricChannel) -> FloatArray:
        """P(report y | truth x) in row y and column x, p or q, float64 (k, k), 8 k² bytes."""
        matrix = np.full((self.k, self.k), self.q)
        np.fill_diagonal(matrix, self.p)
        return matrix

    @property
    def width(self: SymmetricChannel) -> int:
        """Counters in one row of counts: one for each value."""
        return self.k

    @property
    def cohorts(self) -> int:
        """Groups of clients that are counted apart: 1, k-RR needs none."""
        return 1
