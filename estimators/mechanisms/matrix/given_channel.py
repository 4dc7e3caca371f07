"""A channel given as a matrix, its probabilities rounded to multiples of 2^-64, with its exact epsilon."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import log_above

WORDS = 1 << 64
# Largest allowed distance of a given column's sum from 1.
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class GivenChannel:
    """A channel from n true values to m reports: P(report y | truth x) = words[x][y] / 2^64.

    Value x is reported as y when a uniform 64-bit word falls in the y-th of m intervals of these lengths.

    Parameters
    ----------
    words : for each of n >= 2 true values a tuple of m >= 2 integers >= 0 that sum to 2^64.

    Raises
    ------
    ValueError if there are too few tuples, or a tuple is too short, differs in length or has another sum.
    """

    words: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.words}
        if len(self.words) < 2 or len(lengths) > 1 or min(lengths) < 2:
            raise ValueError(
                "words must hold at least 2 tuples of the same length, at least 2,"
                f" got {len(self.words)} of lengths {sorted(lengths)}"
            )
        for column in self.words:
            if min(column) < 0 or sum(column) != WORDS:
                raise ValueError(
                    f"words must be >= 0 and sum to 2^64 for each value,"
                    f" got a least of {min(column)} and a sum of {sum(column)}"
                )

    @classmethod
    def from_matrix(cls, matrix: FloatArray) -> Self:
        """Round probabilities down to multiples of 2^-64; a column's remainder goes to its largest entry.

        Parameters
        ----------
        matrix : float64 array (m, n), P(report y | truth x) in row y and column x, each in [0, 1]; columns
            sum to 1 within 1e-9.

        Raises
        ------
        ValueError if the matrix has another shape, an entry is out of range or a column has another sum.
        """
        if matrix.ndim != 2 or min(matrix.shape) < 2:
            raise ValueError(f"matrix must have at least 2 rows and 2 columns, got shape {matrix.shape}")
        wrong = matrix[~((matrix >= 0) & (matrix <= 1))]
        if wrong.size:
            raise ValueError(f"matrix must hold probabilities in [0, 1], got {wrong[0]}")
        sums = matrix.sum(axis=0)
        if np.abs(sums - 1).max() > SUM_TOLERANCE:
            worst = sums[np.abs(sums - 1).argmax()]
            raise ValueError(f"matrix must have columns that sum to 1 within {SUM_TOLERANCE}, got {worst}")
        return cls(tuple(_whole_words(column) for column in (matrix / sums).T.tolist()))

    @property
    def channel(self) -> FloatArray:
        """P(report y | truth x) in row y and column x, float64 (m, n)."""
        return np.array([[count / WORDS for count in column] for column in self.words]).T

    @cached_property
    def epsilon(self) -> float:
        """Privacy loss of one report, nats, rounded up: ln of the largest ratio within a row.

        It is inf if some report is possible for one true value and impossible for another, and 0 if reports
        do not depend on the truth.
        """
        extremes = [(max(row), min(row)) for row in zip(*self.words, strict=True) if any(row)]
        if min(least for _, least in extremes) == 0:
            return math.inf
        ratio = max(Fraction(most, least) for most, least in extremes)
        return log_above(ratio) if ratio > 1 else 0.0

    @property
    def width(self) -> int:
        """Counters in one row of counts: one per possible report (m)."""
        return len(self.words[0])


def _whole_words(column: list[float]) -> tuple[int, ...]:
    """Round one column to integers that sum to 2^64; multiplying a float by 2^64 is exact."""
    words = [int(probability * WORDS) for probability in column]
    words[words.index(max(words))] += WORDS - sum(words)
    return tuple(words)
