"""Debiased rate of each true bit from RAPPOR bit counts, with errors: (raw - p*) / (q* - p*)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import shown_interval
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.traits import BitChannel


@dataclass(frozen=True, eq=False)
class BitRates:
    """Estimated share of reports whose true bit is 1; for one-hot and k-hot, the frequency of a bucket.

    Parameters
    ----------
    rate : float64 array (cohorts, bits), fractions, unbiased, so entries may be negative or above 1.
    std_error : float64 array (cohorts, bits), fractions, > 0.
    low, high : float64 arrays (cohorts, bits), unified 95 % interval, low < high, that contains `rate`; in
        [0, 1] where `rate` is.
    """

    rate: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray


def extract_rates(
    bit_counts: NDArray[np.int64], cohort_sizes: NDArray[np.int64], mechanism: BitChannel
) -> BitRates:
    """Invert each bit separately: (raw - p - f q/2 + f p/2) / ((1 - f)(q - p)) = (raw - p*) / (q* - p*).

    The true bits are taken as fixed: errors reflect only the noise of the randomization. Intervals are those
    of `Inversion.score_interval`.

    Parameters
    ----------
    bit_counts : int64 array (cohorts, bits), reports that show a 1.
    cohort_sizes : int64 array (cohorts,), reports of each cohort, >= 1.
    mechanism : RAPPOR mechanism of the reports.

    Returns
    -------
    BitRates of the shape of `bit_counts`.

    Raises
    ------
    ValueError if shapes do not match, a cohort has no report, or a count is negative or above its cohort's
    size.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), section 4, first equation.
    """
    _check(bit_counts, cohort_sizes)
    sizes = cohort_sizes[:, None].astype(np.float64)
    inversion = Inversion.of_bit(mechanism)
    rate = inversion.frequency(bit_counts / sizes)
    rows = zip(rate, cohort_sizes.tolist(), strict=True)
    low, high = np.stack([inversion.score_interval(row, size) for row, size in rows], axis=1)
    return BitRates(rate, inversion.std_error(rate, sizes), *shown_interval(low, high, rate))


def _check(bit_counts: NDArray[np.int64], cohort_sizes: NDArray[np.int64]) -> None:
    if bit_counts.ndim != 2 or cohort_sizes.shape != bit_counts.shape[:1]:
        raise ValueError(
            "bit_counts must have shape (cohorts, bits) and cohort_sizes shape (cohorts,),"
            f" got {bit_counts.shape} and {cohort_sizes.shape}"
        )
    if cohort_sizes.min() < 1:
        raise ValueError(f"cohort_sizes must be at least 1, got {cohort_sizes.min()}")
    if bit_counts.min() < 0:
        raise ValueError(f"bit_counts must not be negative, got {bit_counts.min()}")
    excess = int((bit_counts - cohort_sizes[:, None]).max())
    if excess > 0:
        raise ValueError(f"bit_counts must not exceed their cohort's size, got {excess} more")
