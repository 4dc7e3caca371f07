"""Symmetric channels: k values, the truth reported with one probability, every other value with another."""

from typing import Protocol

import numpy as np

from estimators.estimate import FloatArray


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


def symmetric_matrix(mechanism: SymmetricChannel) -> FloatArray:
    """Write the channel out: p on the diagonal, q elsewhere.

    Parameters
    ----------
    mechanism : SymmetricChannel.

    Returns
    -------
    float64 array (k, k), P(report y | truth x) in row y and column x; it takes 8 k² bytes.
    """
    matrix = np.full((mechanism.k, mechanism.k), mechanism.q)
    np.fill_diagonal(matrix, mechanism.p)
    return matrix
