"""Several windows together: counts add up, but the noise that a client keeps does not average out.

Of the single windows only the numbers of reports are needed, so that counts can be added up as they come.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.decoding.bit_counts import BitCounts
from estimators.decoding.bit_rates import extract_rates
from estimators.decoding.bloom import decode, decode_design
from estimators.decoding.design import bloom_design
from estimators.decoding.hot import decode_hot
from estimators.frequency import krr as krr_estimate
from estimators.frequency.estimate import QUANTILE_975, Estimate, shown_interval
from estimators.frequency.inversion import Inversion
from estimators.frequency.significance import benjamini_hochberg, normal_tail
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor


@dataclass(frozen=True, eq=False)
class RollUp:
    """One estimate over several windows under two opposite assumptions on who reported.

    Parameters
    ----------
    independent : Estimate whose errors hold when every report comes from a client of its own, or when clients
        make a fresh permanent response for each report. Too small where clients return.
    shared : Estimate whose errors hold when the windows' clients are the same, with the same true value, as
        far as their numbers allow: those of a smaller window all report in each larger one. They are the
        largest possible for clients that report at most once a window, so always safe. A client that changes
        its value makes a new permanent response, and lies between the two.
    overlap : factor on the variance of permanent noise in `shared`, in [1, number of windows].
    """

    independent: Estimate
    shared: Estimate
    overlap: float


def client_overlap(window_reports: NDArray[np.int64]) -> float:
    """Factor on the variance of what clients keep, when each window's clients are part of any larger one's.

    Two windows have min(n_i, n_j) clients in common at most, and each of these adds twice the variance of its
    permanent noise to the sum over both: the factor is sum_ij min(n_i, n_j) / sum_i n_i.

    Parameters
    ----------
    window_reports : int64 array (windows,), reports of each window, not all 0.

    Returns
    -------
    Factor in [1, windows]; the number of windows when all have equally many reports.

    Raises
    ------
    ValueError if there is no report.
    """
    reports = int(window_reports.sum())
    if reports == 0:
        raise ValueError("window_reports must hold at least 1 report, got 0")
    descending = np.sort(window_reports)[::-1].astype(np.float64)
    # The window in place i (from 0) is the smaller one in its pairs with the i before it, both ways round.
    return float(descending @ (2 * np.arange(len(descending)) + 1)) / reports


def roll_up_krr(
    counts: NDArray[np.int64], window_reports: NDArray[np.int64], mechanism: KRR | LongitudinalKRR
) -> RollUp:
    """Estimate over several windows of k-RR; without a permanent response both estimates are the same.

    Parameters
    ----------
    counts : int64 array (k,), reports per value, all windows together.
    window_reports : int64 array (windows,), reports of each window.
    mechanism : KRR or LongitudinalKRR that made the reports.

    Returns
    -------
    RollUp with arrays of shape (k,).

    Raises
    ------
    ValueError as `krr_estimate.estimate`.
    """
    independent = krr_estimate.estimate(counts, mechanism)
    overlap = client_overlap(window_reports)
    if isinstance(mechanism, KRR):
        return RollUp(independent, independent, overlap)
    permanent = Inversion.of_symmetric(mechanism.permanent)
    return _rolled_up(independent, krr_estimate.inv(counts, mechanism), permanent, overlap)


def roll_up_hot(
    bit_counts: NDArray[np.int64],
    cohort_sizes: NDArray[np.int64],
    window_reports: NDArray[np.int64],
    mechanism: HotRappor,
) -> RollUp:
    """Estimate over several windows of one-hot or k-hot RAPPOR.

    Parameters
    ----------
    bit_counts : int64 array (1, bits), reports that show a 1, all windows together.
    cohort_sizes : int64 array (1,), reports of all windows.
    window_reports : int64 array (windows,), reports of each window.
    mechanism : HotRappor that made the reports.

    Returns
    -------
    RollUp with arrays of shape (buckets,).

    Raises
    ------
    ValueError as `decode_hot`.
    """
    independent = decode_hot(bit_counts, cohort_sizes, mechanism)
    rates = extract_rates(bit_counts[:, : mechanism.buckets], cohort_sizes, mechanism)
    permanent = Inversion(1 - mechanism.f / 2, mechanism.f / 2, 1 - mechanism.f)
    return _rolled_up(independent, rates.rate[0], permanent, client_overlap(window_reports))


def roll_up_rappor(
    bit_counts: NDArray[np.int64],
    cohort_sizes: NDArray[np.int64],
    window_reports: NDArray[np.int64],
    candidates: Sequence[str],
    mechanism: Rappor,
    background: bool = True,
) -> RollUp:
    """Estimate over several windows of Bloom RAPPOR.

    Clients stay in their cohorts, too, so `shared` multiplies that part of the variance as well. Where there
    are more bits than candidates the residuals show shared noise to `independent`, and inflate its errors as
    they do for unknown strings; `shared` expects that noise. So its own errors may come out smaller, and the
    wider ones of both are taken. Where candidates are screened, the two may choose differently.

    Parameters
    ----------
    bit_counts : int64 array (cohorts, bits), reports that show a 1, all windows together.
    cohort_sizes : int64 array (cohorts,), reports of each cohort in all windows.
    window_reports : int64 array (windows,), reports of each window.
    candidates, mechanism, background : as of `rappor_decode.decode`.

    Returns
    -------
    RollUp with arrays of shape (n,).

    Raises
    ------
    ValueError as `rappor_decode.decode`.
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
    """Make `shared` as wide as the wider of both: no safe error is below the other one."""
    other = shared.other
    if other is not None and independent.other is not None:
        other = (other[0], max(other[1], independent.other[1]))
    return replace(
        shared,
        other=other,
        std_error=np.maximum(shared.std_error, independent.std_error),
        low=np.minimum(shared.low, independent.low),
        high=np.maximum(shared.high, independent.high),
        significant=shared.significant & independent.significant,
    )


def _rolled_up(independent: Estimate, inverted: FloatArray, permanent: Inversion, overlap: float) -> RollUp:
    """Add overlap - 1 times the variance of the permanent response to that of independent reports.

    Of n reports made from one permanent response the noise is n times the permanent one plus n independent
    instantaneous ones; what independent reports have of it is both, once for each report.

    Source: Arcolezi et al., "Improving the utility of locally differentially private protocols for
    longitudinal and multidimensional frequency estimates" (Digital Communications and Networks, 2022), for
    the variance of two steps.
    """
    repeated = (overlap - 1) * permanent.std_error(inverted, independent.reports) ** 2
    std_error = np.sqrt(independent.std_error**2 + repeated)
    half = QUANTILE_975 * std_error
    low, high = shown_interval(inverted - half, inverted + half, independent.frequency)
    significant = benjamini_hochberg(normal_tail(inverted / std_error))
    shared = replace(independent, std_error=std_error, low=low, high=high, significant=significant)
    return RollUp(independent, shared, overlap)
