"""One estimate over several windows, with errors for independent and for returning clients.

Counts add up, but memoized noise of a returning client does not average out. Only the number of reports is
needed of each window, so counts can be added up as they arrive.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.decoding.bit_counts import BitCounts
from estimators.decoding.bit_rates import extract_rates
from estimators.decoding.bloom import decode, decode_design
from estimators.decoding.design import bloom_design
from estimators.decoding.hashed.decode import decode_hashed
from estimators.decoding.hashed.listed import decode_listed
from estimators.decoding.hot.decode import decode_hot
from estimators.decoding.hot.pair import decode_pair
from estimators.frequency import krr as krr_estimate
from estimators.frequency.estimate import Estimate, IntervalEnds, Misfit
from estimators.frequency.intervals.for_all import shown_intervals
from estimators.frequency.intervals.unified import unified_interval
from estimators.frequency.inversion import Inversion
from estimators.frequency.number import estimate_number
from estimators.frequency.pairs.estimate import estimate_pair
from estimators.frequency.significance import benjamini_hochberg, normal_tail
from estimators.mechanisms.hashing.local_hash import LocalHash
from estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from estimators.mechanisms.hashing.prefix_tree import PrefixTree
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from estimators.mechanisms.matrix.pair import PairKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor
from estimators.mechanisms.square_wave import SquareWave


@dataclass(frozen=True, eq=False)
class RollUp:
    """One estimate over several windows under two opposite assumptions about the clients.

    Parameters
    ----------
    independent : Estimate with errors for independent reports: each from a different client, or with a fresh
        permanent response. Too small if clients return.
    shared : Estimate with errors for the largest overlap of clients, all with unchanged values: the clients
        of a smaller window all report in each larger one. An upper bound if clients report at most once per
        window. A client that changes its value draws a new permanent response, and is in between.
    overlap : factor on the variance of permanent noise in `shared`, in [1, number of windows].
    """

    independent: Estimate
    shared: Estimate
    overlap: float


def client_overlap(window_reports: NDArray[np.int64]) -> float:
    """Return the largest factor by which returning clients multiply the variance of permanent noise.

    Two windows share at most min(n_i, n_j) clients. The permanent noise of a shared client is the same in
    both, so the variance of the sum has the factor sum_ij min(n_i, n_j) / sum_i n_i.

    Parameters
    ----------
    window_reports : int64 array (windows,), reports of each window, not all 0.

    Returns
    -------
    Factor in [1, windows]; the number of windows if all have equally many reports.

    Raises
    ------
    ValueError if there is no report.
    """
    reports = int(window_reports.sum())
    if reports == 0:
        raise ValueError("window_reports must hold at least 1 report, got 0")
    descending = np.sort(window_reports)[::-1].astype(np.float64)
    # Window i (from 0) is the smaller one in 2 i ordered pairs with the windows before it, and in (i, i).
    return float(descending @ (2 * np.arange(len(descending)) + 1)) / reports


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
    overlap = client_overlap(window_reports)
    if isinstance(mechanism, KRR):
        return RollUp(independent, independent, overlap)
    channels = Inversion.of_symmetric(mechanism), Inversion.of_symmetric(mechanism.permanent)
    return _rolled_up(independent, krr_estimate.inv(counts, mechanism), channels, overlap)


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
) -> RollUp:
    """Estimate over several windows of a pair with a bit for each pair of values, as `roll_up_pair`.

    Parameters
    ----------
    bit_counts : int64 array (1, bits), reports that show a 1, summed over windows.
    cohort_sizes : int64 array (1,), reports of all windows.
    window_reports : int64 array (windows,), reports of each window.
    mechanism : OneHotPair of the reports.

    Returns
    -------
    RollUp with arrays of shape (K1 K2,).

    Raises
    ------
    ValueError if shapes do not match, there is no report, or a count is negative or above the reports.
    """
    estimate = decode_pair(bit_counts, cohort_sizes, mechanism)
    return RollUp(estimate, estimate, client_overlap(window_reports))


def roll_up_hashed(
    counts: NDArray[np.int64],
    window_reports: NDArray[np.int64],
    candidates: Sequence[str],
    mechanism: LocalHash | LongitudinalHash,
    hash_key: int,
) -> RollUp:
    """Estimate over several windows of local hashing; without permanent responses both estimates are equal.

    The hash functions are the same in every window, so the part of the error that comes from collisions stays
    what it is in one window. A returning client of longitudinal hashing keeps its function and the response
    of its bucket, so `shared` repeats the noise of both. Its reports agree more often than those of different
    clients, which both estimates take for collisions: their errors are too large rather than too small.

    Parameters
    ----------
    counts : int64 array (C g,), reports by function * g + bucket, summed over windows.
    window_reports : int64 array (windows,), reports of each window.
    candidates : n distinct strings, n >= 1.
    mechanism : of the reports.
    hash_key : of the collection.

    Returns
    -------
    RollUp with arrays of shape (n,).

    Raises
    ------
    ValueError as `decode_hashed`, or if window_reports holds no report.
    """
    overlap = client_overlap(window_reports)
    independent = decode_hashed(counts, candidates, mechanism, hash_key)
    if isinstance(mechanism, LocalHash):
        return RollUp(independent, independent, overlap)
    return RollUp(independent, _shared_hashed(independent, mechanism, overlap), overlap)


def roll_up_tree(
    counts: NDArray[np.int64],
    window_reports: NDArray[np.int64],
    candidates: Sequence[str],
    mechanism: PrefixTree,
    hash_key: int,
) -> RollUp:
    """Estimate listed strings over several windows of a prefix tree, which has no permanent responses.

    Returning clients stay on their level, so the sample of clients on the last one is that of one window:
    `shared` counts its variance `overlap` times.

    Parameters
    ----------
    counts : int64 array (L, C g), reports by level and function * g + bucket, summed over windows.
    window_reports : int64 array (windows,), reports of each window.
    candidates : n distinct strings, n >= 0.
    mechanism : of the reports.
    hash_key : of the collection.

    Returns
    -------
    RollUp with arrays of shape (n,).

    Raises
    ------
    ValueError as `decode_listed`, or if window_reports holds no report.
    """
    overlap = client_overlap(window_reports)
    independent, shared = (
        decode_listed(counts, candidates, mechanism, hash_key, each) for each in (1.0, overlap)
    )
    return RollUp(independent, shared, overlap)


def _shared_hashed(independent: Estimate, mechanism: LongitudinalHash, overlap: float) -> Estimate:
    """Add overlap - 1 times the variance of function and permanent response, as `_rolled_up` does for k-RR.

    With the permanent response as the report, a client's support is that of LocalHash. The noise of `other`
    counts as permanent, wholly.
    """
    permanent = LocalHash(mechanism.hash_functions, mechanism.hash_buckets, mechanism.permanent_threshold)
    channels = Inversion.of_support(mechanism), Inversion.of_support(permanent)
    reports, collisions = independent.reports, independent.diagnostics["collision_error"]

    def error_of(frequency: FloatArray) -> FloatArray:
        noise, repeated = (channel.std_error(frequency, reports) for channel in channels)
        return np.sqrt(noise**2 + (overlap - 1) * repeated**2 + collisions**2)

    inverted = channels[0].frequency(np.asarray(independent.supports, np.float64) / reports)
    std_error = error_of(inverted)
    low, high, for_all = shown_intervals(
        lambda level: unified_interval(inverted, std_error, level=level), independent.frequency
    )
    significant = benjamini_hochberg(normal_tail(inverted / error_of(np.zeros(1))))
    other = independent.other
    if other is not None:
        other = (other[0], other[1] * math.sqrt(overlap))
    return replace(
        independent,
        std_error=std_error,
        low=low,
        high=high,
        significant=significant,
        other=other,
        for_all=for_all,
    )


def roll_up_hot(
    bit_counts: NDArray[np.int64],
    cohort_sizes: NDArray[np.int64],
    window_reports: NDArray[np.int64],
    mechanism: HotRappor,
) -> RollUp:
    """Estimate over several windows of one-hot or k-hot RAPPOR.

    Parameters
    ----------
    bit_counts : int64 array (1, bits), reports that show a 1, summed over windows.
    cohort_sizes : int64 array (1,), reports of all windows.
    window_reports : int64 array (windows,), reports of each window.
    mechanism : HotRappor of the reports.

    Returns
    -------
    RollUp with arrays of shape (buckets,).

    Raises
    ------
    ValueError if shapes do not match, there is no report, or a count is negative or above the reports.
    """
    independent = decode_hot(bit_counts, cohort_sizes, mechanism)
    rates = extract_rates(bit_counts[:, : mechanism.buckets], cohort_sizes, mechanism)
    permanent = Inversion(1 - mechanism.f / 2, mechanism.f / 2, 1 - mechanism.f)
    channels = Inversion.of_bit(mechanism), permanent
    return _rolled_up(independent, rates.rate[0], channels, client_overlap(window_reports))


def roll_up_rappor(
    bit_counts: NDArray[np.int64],
    cohort_sizes: NDArray[np.int64],
    window_reports: NDArray[np.int64],
    candidates: Sequence[str],
    mechanism: Rappor,
    background: bool = True,
) -> RollUp:
    """Estimate over several windows of Bloom RAPPOR.

    Clients also stay in their cohorts, so `shared` multiplies that part of the variance as well. With more
    bits than candidates, shared noise appears in the residuals: it inflates the errors of `independent`, as
    unknown strings do, but `shared` expects it, so its own errors may be smaller. `shared` therefore takes
    the larger error of both. If candidates are screened, the two may choose different ones. Misfit, the error
    that unlisted strings cause, is the same in every window: it does not fall with the number of windows.

    Parameters
    ----------
    bit_counts : int64 array (cohorts, bits), reports that show a 1, summed over windows.
    cohort_sizes : int64 array (cohorts,), reports of each cohort in all windows.
    window_reports : int64 array (windows,), reports of each window.
    candidates : n distinct strings, n >= 1.
    mechanism : Rappor of the reports.
    background : True adds a column for strings that are no candidates.

    Returns
    -------
    RollUp with arrays of shape (n,).

    Raises
    ------
    ValueError if shapes do not match, counts are negative, exceed their cohort's size or hold no report, or
    candidates are repeated or missing.
    """
    overlap = client_overlap(window_reports)
    independent = decode(bit_counts, cohort_sizes, candidates, mechanism, background)
    half_flip = mechanism.f / 2
    shared_counts = BitCounts(
        bit_counts,
        cohort_sizes,
        mechanism,
        overlap=overlap,
        permanent_variance=half_flip * (1 - half_flip) / (1 - mechanism.f) ** 2,
    )
    design = bloom_design(candidates, mechanism)
    shared = decode_design(shared_counts, design, mechanism.hashes / mechanism.bits, background)
    return RollUp(independent, _no_surer(shared, independent), overlap)


def _no_surer(shared: Estimate, independent: Estimate) -> Estimate:
    """Widen `shared` to the larger error and the wider interval of both; unreliable in one is unreliable."""
    other = shared.other
    if other is not None and independent.other is not None:
        other = (other[0], max(other[1], independent.other[1]))
    misfit = shared.misfit
    if misfit is not None and independent.misfit is not None:
        misfit = Misfit(
            np.maximum(misfit.std_error, independent.misfit.std_error),
            misfit.unreliable | independent.misfit.unreliable,
            misfit.unexplained | independent.misfit.unexplained,
        )
    return replace(
        shared,
        other=other,
        misfit=misfit,
        std_error=np.maximum(shared.std_error, independent.std_error),
        low=np.minimum(shared.low, independent.low),
        high=np.maximum(shared.high, independent.high),
        significant=shared.significant & independent.significant,
        for_all=_wider(shared.for_all, independent.for_all),
    )


def _wider(shared: IntervalEnds | None, independent: IntervalEnds | None) -> IntervalEnds | None:
    if shared is None or independent is None:
        return None
    return IntervalEnds(np.minimum(shared.low, independent.low), np.maximum(shared.high, independent.high))


def _rolled_up(
    independent: Estimate, inverted: FloatArray, channels: tuple[Inversion, Inversion], overlap: float
) -> RollUp:
    """Add overlap - 1 times the variance of the permanent response to that of independent reports.

    The noise of n reports from one permanent response is n times its permanent noise plus n independent
    instantaneous ones. The variance of independent reports already contains both, once per report. In the
    test of the interval, the step of a count is `overlap` for permanent noise and 1 for the rest, weighted by
    their variances.

    Parameters
    ----------
    independent : Estimate of independent reports.
    inverted : float64 array (n,), the unconstrained estimate.
    channels : from true values to reports, and from true values to permanent responses.
    overlap : see `RollUp`.

    Source: Arcolezi et al., "Improving the utility of locally differentially private protocols for
    longitudinal and multidimensional frequency estimates" (Digital Communications and Networks, 2022), for
    the variance of two steps.
    """
    whole, permanent = (channel.score_test(independent.reports) for channel in channels)
    at_0, at_1 = whole.at_0 + (overlap - 1) * permanent.at_0, whole.at_1 + (overlap - 1) * permanent.at_1
    repeated = max(overlap * permanent.at_0 / at_0, overlap * permanent.at_1 / at_1)
    test = replace(whole, at_0=at_0, at_1=at_1, step=whole.step * (1 + (overlap - 1) * repeated))
    std_error = test.std_error(inverted)
    low, high, for_all = shown_intervals(partial(test.interval, inverted), independent.frequency)
    significant = benjamini_hochberg(normal_tail(inverted / std_error))
    shared = replace(
        independent, std_error=std_error, low=low, high=high, significant=significant, for_all=for_all
    )
    return RollUp(independent, shared, overlap)
