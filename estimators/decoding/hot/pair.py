"""Margins, conditional shares and the test of independence, from a bit for each pair of values."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.bit_rates import extract_rates
from deniable.estimators.decoding.hot.decode import decode_hot
from deniable.estimators.decoding.hot.rank_one_test import rank_one_test
from deniable.estimators.frequency.estimate import (
    QUANTILE_975,
    Estimate,
    PairEstimate,
    Shares,
    shown_interval,
)
from deniable.estimators.frequency.intervals.fieller import fieller_shares
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.pairs.conditional import columns_of
from deniable.estimators.frequency.significance import benjamini_hochberg, binomial_tail
from deniable.estimators.frequency.simplex import project_to_simplex
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair


def decode_pair(
    bit_counts: NDArray[np.int64],
    cohort_sizes: NDArray[np.int64],
    mechanism: OneHotPair,
    *,
    may_lack_bit: bool = False,
) -> Estimate:
    """Estimate the joint table, both margins, conditional shares, and whether the fields are independent.

    The joint table is that of `decode_hot`. The bits of a report are randomized independently, so the
    variance of a sum of debiased bits is the sum of theirs: for fixed true pairs every error is exact.
    Margins are sums of debiased bits, then the nearest shares >= 0 whose sum is <= 1. They have the noise of
    K2 or K1 bits, so they are less exact than the estimate of one field alone. Where clients may set no bit,
    margins are shares of all reports, of those with a bit; `other` is 1 minus the sum of all debiased bits.

    Parameters
    ----------
    bit_counts : int64 array (1, bits), reports that show a 1; bit a K2 + b is that of pair (a, b).
    cohort_sizes : int64 array (1,), number of reports (N), >= 1.
    mechanism : OneHotPair of the reports.
    may_lack_bit : whether a client sets no bit if a field does not list its value.

    Returns
    -------
    Estimate with arrays of shape (K1 K2,), fractions of all reports, by rows, and with `pair`; with `other`,
    the reports of clients without a bit, if there may be any.

    Raises
    ------
    ValueError if shapes do not match, there is no report, or a count is negative or above the reports.
    """
    joint = decode_hot(bit_counts, cohort_sizes, mechanism)
    rates = extract_rates(bit_counts[:, : mechanism.buckets], cohort_sizes, mechanism)
    table, variance = (each.reshape(mechanism.shape) for each in (rates.rate, rates.std_error**2))
    step = 1 / (joint.reports * (mechanism.q_star - mechanism.p_star))
    given_second = _given_rows(table.T, variance.T, step)
    ones = bit_counts[0, : mechanism.buckets].reshape(mechanism.shape)
    without_bit = float(np.clip(1 - table.sum(), 0, 1)), float(np.sqrt(variance.sum()))
    return replace(
        joint,
        other=without_bit if may_lack_bit else None,
        pair=PairEstimate(
            (
                _margin(table, variance, ones, joint, mechanism),
                _margin(table.T, variance.T, ones.T, joint, mechanism),
            ),
            _by_rows(_given_rows(table, variance, step)),
            _by_rows(Shares(*(column.T for column in columns_of(given_second)))),
            rank_one_test(ones, joint.reports, mechanism),
        ),
    )


def _margin(
    table: FloatArray, variance: FloatArray, ones: NDArray[np.int64], joint: Estimate, mechanism: OneHotPair
) -> Estimate:
    """Sum each row; a value is significant if its ones exceed what the N K2 bits of an empty row explain.

    The ones of a row are those of N K2 bits, of which its holders have one each: two binomials.
    """
    sums, error = table.sum(axis=1), np.sqrt(variance.sum(axis=1))
    frequency = np.maximum(sums, 0)
    if frequency.sum() > 1:
        frequency = project_to_simplex(sums)
    bits = table.shape[1]
    trials = joint.reports * bits
    ends = Inversion.of_bit(mechanism).score_interval(sums / bits, trials)
    low, high = shown_interval(ends.low * bits, ends.high * bits, frequency)
    significant = benjamini_hochberg(binomial_tail(ones.sum(axis=1), trials, mechanism.p_star))
    return Estimate(joint.estimator, joint.reports, frequency, error, low, high, significant)


def _given_rows(table: FloatArray, variance: FloatArray, step: float) -> Shares:
    """Return the shares r of each row, (K1, K2): x(i, j) - r x(i) has the variance of its independent bits.

    That is (1 - r)² v(i, j) + r² (v(i) - v(i, j)). Rows less than 1.96 standard errors above 0 say nothing:
    shares 0, and the interval is all.
    """
    row, whole = table.sum(axis=1, keepdims=True), variance.sum(axis=1, keepdims=True)
    frequency = np.zeros(table.shape)
    for each in np.flatnonzero(row > QUANTILE_975 * np.sqrt(whole)):
        frequency[each] = project_to_simplex(table[each] / row[each])
    variances = (variance, np.broadcast_to(whole / 4, table.shape), whole - variance)
    return fieller_shares(frequency, table, row, variances, step)


def _by_rows(shares: Shares) -> Shares:
    return Shares(*(column.ravel() for column in columns_of(shares)))
