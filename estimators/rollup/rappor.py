"""Roll-ups of RAPPOR: one-hot, k-hot and Bloom."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.decoding.bit_counts import BitCounts
from deniable.estimators.decoding.bloom import decode, decode_design
from deniable.estimators.decoding.design import bloom_design
from deniable.estimators.decoding.hot.decode import decode_hot
from deniable.estimators.frequency.estimate import Estimate, IntervalEnds, Misfit
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.traits import ValueBits
from deniable.estimators.rollup.overlap import RollUp, client_overlap, with_returning_clients


def roll_up_hot(
    bit_counts: NDArray[np.int64],
    cohort_sizes: NDArray[np.int64],
    window_reports: NDArray[np.int64],
    mechanism: ValueBits,
) -> RollUp:
    """Estimate over several windows of reports with a bit for each value.

    Parameters
    ----------
    bit_counts : int64 array (1, bits), reports that show a 1, summed over windows.
    cohort_sizes : int64 array (1,), reports of all windows.
    window_reports : int64 array (windows,), reports of each window.
    mechanism : of the reports.

    Returns
    -------
    RollUp with arrays of shape (buckets,).

    Raises
    ------
    ValueError if shapes do not match, there is no report, or a count is negative or above the reports.
    """
    independent = decode_hot(bit_counts, cohort_sizes, mechanism)
    if not mechanism.keeps_permanent:
        return RollUp(independent, independent, client_overlap(window_reports))
    permanent = Inversion(1 - mechanism.f / 2, mechanism.f / 2, 1 - mechanism.f)
    channels = Inversion.of_bit(mechanism), permanent
    return with_returning_clients(independent, bit_counts[0, : mechanism.buckets], channels, window_reports)


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
