"""Intervals that hold the shares of all values at once, beside those of each value alone."""

from collections.abc import Callable

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import IntervalEnds, shown_interval
from deniable.estimators.frequency.intervals.acceptance import LEVEL, level_for_all


def shown_intervals(
    interval_at: Callable[[float], IntervalEnds], frequency: FloatArray, free: int | None = None
) -> tuple[FloatArray, FloatArray, IntervalEnds]:
    """Return the 95 % interval of each value alone, and those that hold all values at once with 95 %.

    Each of the latter has the level 1 - 0.05 / n (Bonferroni). That holds whatever the errors have in common,
    and for every choice among the values, such as the largest estimates. Errors of different values hardly
    depend on each other, so little is lost: exact levels would be nearer by a factor of 1.013 at most if they
    were independent (Sidak).

    Parameters
    ----------
    interval_at : returns the interval of each value at a level in (0, 1), arrays (n,).
    frequency : float64 array (n,), the point estimates.
    free : number of values that determine the errors of all; n if None.

    Returns
    -------
    low and high, float64 arrays (n,), and the ends for all values at once, which contain them.
    """
    low, high = shown_interval(*interval_at(LEVEL), frequency)
    ends = shown_interval(*interval_at(level_for_all(free or len(frequency))), frequency)
    return low, high, IntervalEnds(np.minimum(ends[0], low), np.maximum(ends[1], high))
