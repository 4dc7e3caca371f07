"""From an estimate, and what is true, to what is measured of it."""

import numpy as np
from numpy.typing import NDArray

from bench.estimators.conditional.judging import MOST_FALSE, Measured
from deniable.aggregator.estimation.window_estimate import estimate, whole_record_of
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import Estimate

ROUNDING = 1e-9  # of ends and true shares, relative to the range


def intervals(
    low: FloatArray, high: FloatArray, truth: FloatArray, least: float = 0.0, most: float = 1.0
) -> Measured:
    """Measure intervals of fixed values within [least, most]; one that is not finite is none."""
    known, slack = np.isfinite(low) & np.isfinite(high), ROUNDING * (most - least)
    missed = known & ((truth < low - slack) | (high + slack < truth))
    wide = ~known | ((low <= least + slack) & (high >= most - slack))
    return Measured(missed.astype(np.float64), wide)


def scalar(low: float | None, high: float | None, truth: float, most: float = 1.0) -> Measured:
    """Measure one interval within [0, most]; None where an end is not stated."""
    first, last = (np.array([np.nan if each is None else each], np.float64) for each in (low, high))
    return intervals(first, last, np.array([truth]), most=most)


def family(low: FloatArray, high: FloatArray, truth: FloatArray) -> Measured:
    """Measure whether intervals for all values at once hold all of them."""
    each = intervals(low, high, truth)
    return Measured(each.missed.max(keepdims=True), np.array([each.wide.mean() > 0.5]), MOST_FALSE)


def discoveries(significant: NDArray[np.bool_], is_false: NDArray[np.bool_]) -> Measured:
    """Measure the share of false discoveries among all, 0 if there is none."""
    share = (significant & is_false).sum() / max(1, significant.sum())
    return Measured(np.array([share]), np.zeros(1, np.bool_), MOST_FALSE)


def shares(found: Estimate, truth: FloatArray) -> dict[str, Measured]:
    """Measure what every estimate of shares has: of each value, discoveries, and all values at once."""
    measured = {
        "share": intervals(found.low, found.high, truth),
        "discoveries": discoveries(found.significant, truth == 0),
    }
    if found.for_all is not None:
        measured["all at once"] = family(found.for_all.low, found.for_all.high, truth)
    return measured


def window_of(counts: NDArray[np.int64], sizes: NDArray[np.int64] | None = None) -> WindowCounts:
    """Put counts into a window: int64 (cohorts, width), or (width,) if a report adds 1 to one of them."""
    if sizes is None:
        counts, sizes = counts[np.newaxis], np.array([counts.sum()])
    return WindowCounts(counts, sizes, 1, 0)


def estimated(
    collection: Collection, window: WindowCounts, truth: FloatArray, other: float | None = None
) -> dict[str, Measured]:
    """Estimate a window as workers do, and measure its shares and `other`.

    Parameters
    ----------
    collection, window : of the reports.
    truth : float64 (n,), share of each value.
    other : true share of `other`; None if it is not measured.
    """
    found = estimate(collection, window)
    measured = shares(found, truth)
    if other is not None:
        stated = whole_record_of(collection, 0, window, found, final=True).other
        ends = (stated.low, stated.high) if stated else (None, None)
        measured["other"] = scalar(*ends, other)
    return measured
