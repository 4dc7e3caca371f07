"""The unbiased shares of one final window, the input of sequences and of the detection of changes."""

from math import inf
from typing import NamedTuple

import numpy as np

from aggregator.estimation import window_estimate
from aggregator.records.estimate import EstimateRecord
from aggregator.records.window_counts import WindowCounts
from estimators.arrays import FloatArray
from estimators.collection import Collection
from estimators.mechanisms.hashing.function_pool import FunctionPool
from estimators.mechanisms.hashing.prefix_tree import PrefixTree
from estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from estimators.mechanisms.matrix.pair import PairKRR
from estimators.mechanisms.mechanism import OneStep
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor
from estimators.mechanisms.square_wave import SquareWave


class WindowShares(NamedTuple):
    """Shares of all values of a collection in one window.

    Parameters
    ----------
    start : of the window, unix seconds.
    reports : N, >= 1.
    unbiased : float64 array (n,), unconstrained estimates, in the order of the collection's labels.
    std_error : float64 array (n,), > 0; inf where nothing is known.
    """

    start: int
    reports: int
    unbiased: FloatArray
    std_error: FloatArray


def shares_of_counts(collection: Collection, start: int, counts: WindowCounts) -> WindowShares | None:
    """Estimate the shares of a window; None with fewer reports than minimum_reports, or for a number.

    Raises
    ------
    ValueError, ArithmeticError if no estimate fits the counts.
    """
    if counts.reports < collection.minimum_reports or isinstance(collection.mechanism, SquareWave):
        return None
    result = window_estimate.estimate(collection, counts)
    assert result.unbiased is not None  # noqa: S101 - for mypy: numbers alone lack it
    places = slice(collection.entries)  # the last share of k-RR may be of `other`
    return WindowShares(start, counts.reports, result.unbiased[places], result.std_error[places])


def shares_of_record(record: EstimateRecord) -> WindowShares | None:
    """Return the shares of a final estimate with all its values; None for others."""
    if not record.final or record.omitted or record.parts > 1 or not record.unbiased:
        return None
    errors = [inf if error is None else error for error in record.std_error]
    return WindowShares(
        record.window_start, record.reports, np.array(record.unbiased), np.array(errors, np.float64)
    )


def repeats_noise(collection: Collection) -> bool:
    """Whether windows have the permanent noise of returning clients in common."""
    return not isinstance(collection.mechanism, OneStep | OneHotPair)


def most_step(collection: Collection) -> float:
    """Return the number of reports times the most that one report adds to an estimated share."""
    match collection.mechanism:
        case Rappor() | HotRappor() as bits:
            return 1 / (bits.q_star - bits.p_star)
        case PairKRR() as pair:
            first, second = pair.fields
            return 1 / (first.contrast * second.contrast)
        case FunctionPool() as pool:
            return 1 / pool.contrast
        case PrefixTree() as tree:
            return tree.cohorts / tree.oracle.contrast  # about one in L reports is of the last level
        case SquareWave():
            raise ValueError(f"shares of steps of a number cannot be watched, got {collection.name}")
        case mechanism:
            return 1 / mechanism.contrast
