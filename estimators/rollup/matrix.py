"""Roll-ups of mechanisms whose counts are those of reported cells: k-RR, numbers and pairs."""

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.decoding.hot.pair import decode_pair
from deniable.estimators.frequency import krr as krr_estimate
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.number import estimate_number
from deniable.estimators.frequency.pairs.estimate import estimate_pair
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.rollup.overlap import RollUp, client_overlap, with_returning_clients


def roll_up_krr(
    counts: NDArray[np.int64], window_reports: NDArray[np.int64], mechanism: KRR | LongitudinalKRR
) -> RollUp:
    """Estimate over several windows of k-RR; without a permanent response both estimates are equal.

    Parameters
    ----------
    counts : int64 array (k,), reports per value, summed over windows.
    window_reports : int64 array (windows,), reports of each window.
    mechanism : KRR or LongitudinalKRR of the reports.

    Returns
    -------
    RollUp with arrays of shape (k,).

    Raises
    ------
    ValueError if counts is not of shape (k,), negative or all 0, or window_reports holds no report.
    """
    independent = krr_estimate.estimate(counts, mechanism)
    if isinstance(mechanism, KRR):
        return RollUp(independent, independent, client_overlap(window_reports))
    channels = Inversion.of_symmetric(mechanism), Inversion.of_symmetric(mechanism.permanent)
    return with_returning_clients(independent, counts, channels, window_reports)


def roll_up_number(
    counts: NDArray[np.int64], window_reports: NDArray[np.int64], mechanism: SquareWave
) -> RollUp:
    """Estimate over several windows of Square Wave: its reports have no permanent response to share.

    Parameters
    ----------
    counts : int64 array (d + 2b,), reports per reported cell, summed over windows.
    window_reports : int64 array (windows,), reports of each window.
    mechanism : SquareWave of the reports.

    Returns
    -------
    RollUp with arrays of shape (d,).

    Raises
    ------
    ValueError if counts is not of shape (d + 2b,), negative or all 0, or window_reports holds no report.
    """
    estimate = estimate_number(counts, mechanism)
    return RollUp(estimate, estimate, client_overlap(window_reports))


def roll_up_pair(counts: NDArray[np.int64], window_reports: NDArray[np.int64], mechanism: PairKRR) -> RollUp:
    """Estimate over several windows of a pair of fields: its reports have no permanent response to share.

    The test of independence takes each report for another client: clients that return in every window with
    the same values make it reject more often than stated.

    Parameters
    ----------
    counts : int64 array (K1 K2,), reports per reported pair, summed over windows.
    window_reports : int64 array (windows,), reports of each window.
    mechanism : PairKRR of the reports.

    Returns
    -------
    RollUp with arrays of shape (K1 K2,).

    Raises
    ------
    ValueError if counts is not of shape (K1 K2,), negative or all 0, or window_reports holds no report.
    """
    estimate = estimate_pair(counts, mechanism)
    return RollUp(estimate, estimate, client_overlap(window_reports))


def roll_up_one_hot_pair(
    bit_counts: NDArray[np.int64],
    cohort_sizes: NDArray[np.int64],
    window_reports: NDArray[np.int64],
    mechanism: OneHotPair,
    *,
    may_lack_bit: bool = False,
) -> RollUp:
    """Estimate over several windows of a pair with a bit for each pair of values, as `roll_up_pair`.

    Parameters
    ----------
    bit_counts : int64 array (1, bits), reports that show a 1, summed over windows.
    cohort_sizes : int64 array (1,), reports of all windows.
    window_reports : int64 array (windows,), reports of each window.
    mechanism : OneHotPair of the reports.
    may_lack_bit : whether a client sets no bit if a field does not list its value.

    Returns
    -------
    RollUp with arrays of shape (K1 K2,).

    Raises
    ------
    ValueError if shapes do not match, there is no report, or a count is negative or above the reports.
    """
    estimate = decode_pair(bit_counts, cohort_sizes, mechanism, may_lack_bit=may_lack_bit)
    return RollUp(estimate, estimate, client_overlap(window_reports))
