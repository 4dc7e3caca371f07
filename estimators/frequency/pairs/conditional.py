"""Conditional shares: of the reports whose first field has a value, the share with each second value."""

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import Shares
from deniable.estimators.frequency.intervals.fieller import fieller_shares
from deniable.estimators.frequency.pairs.table import variance_within_rows
from deniable.estimators.mechanisms.matrix.pair import PairKRR


def given_first(table: FloatArray, unconstrained: FloatArray, reports: int, mechanism: PairKRR) -> Shares:
    """Return each second value's share among the reports with the same first value.

    The share r solves x(i, j) - r x(i) = 0, where x is the inverted table; its interval is Fieller's. Where
    the noise of the row lets any share be true, the interval is all of [0, 1].

    Parameters
    ----------
    table : float64 array (K1, K2), the most likely table.
    unconstrained : float64 array (K1, K2), the inverted table.
    reports : N, >= 1.
    mechanism : PairKRR of the reports.

    Returns
    -------
    Shares of shape (K1 K2,); frequencies of one row sum to 1, or are 0 if the row is.
    """
    sums = table.sum(axis=1, keepdims=True)
    frequency = np.clip(np.divide(table, sums, out=np.zeros_like(table), where=sums > 0), 0, 1)
    at_0, at_half, at_1 = (
        variance_within_rows(table, np.full(table.shape, ratio), mechanism) / reports for ratio in (0, 0.5, 1)
    )
    whole = unconstrained.sum(axis=1, keepdims=True)
    step = 1 / (reports * mechanism.first.contrast * mechanism.second.contrast)
    found = fieller_shares(frequency, unconstrained, whole, (at_0, at_half, at_1), step)
    return Shares(*(column.ravel() for column in columns_of(found)))


def given_second(table: FloatArray, unconstrained: FloatArray, reports: int, mechanism: PairKRR) -> Shares:
    """Return each first value's share among the reports with the same second value, as `given_first`.

    Returns
    -------
    Shares of shape (K1 K2,), by rows of the table as given.
    """
    swapped = PairKRR(mechanism.second, mechanism.first)
    found = given_first(table.T, unconstrained.T, reports, swapped)
    return Shares(*(column.reshape(table.T.shape).T.ravel() for column in columns_of(found)))


def columns_of(shares: Shares) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the arrays of shares in the order of their fields."""
    return shares.frequency, shares.std_error, shares.low, shares.high
