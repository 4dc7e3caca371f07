"""The exponent with which something grows with a size."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np


class Exponent(NamedTuple):
    """y grows like x^value.

    Parameters
    ----------
    value : slope of log y over log x by least squares.
    steps : slopes from each size to the next: where they differ, no single power says it.
    """

    value: float
    steps: tuple[float, ...]

    def __str__(self) -> str:
        shown = ", ".join(two_decimals(step) for step in self.steps)
        return f"{two_decimals(self.value)} ({shown})" if len(self.steps) > 1 else two_decimals(self.value)


def exponent(sizes: Sequence[float], values: Sequence[float]) -> Exponent:
    """Fit a power law.

    Parameters
    ----------
    sizes : n distinct ones, rising, n >= 2, above 0.
    values : n, above 0.

    Raises
    ------
    ValueError if there are fewer, not as many of both, sizes that do not rise, or any is not above 0.
    """
    if len(sizes) != len(values) or len(sizes) < 2:
        raise ValueError(f"sizes and values must be as many, 2 at least, got {len(sizes)} and {len(values)}")
    if min(*sizes, *values) <= 0 or any(a >= b for a, b in pairwise(sizes)):
        raise ValueError("sizes and values must be above 0, and sizes must rise")
    x, y = np.log(sizes), np.log(values)
    away = x - x.mean()
    slope = float(away @ (y - y.mean()) / (away @ away))
    return Exponent(slope, tuple((np.diff(y) / np.diff(x)).tolist()))


def two_decimals(slope: float) -> str:
    """Two decimals, without a negative zero."""
    return f"{round(slope, 2) + 0.0:.2f}"
