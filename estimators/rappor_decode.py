"""Frequencies of candidate strings from the bit counts of Bloom RAPPOR reports."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from estimators.bloom import design_matrix
from estimators.estimate import QUANTILE_975, Estimate, FloatArray, shown_interval
from estimators.rappor import Rappor
from estimators.rappor_errors import LeastSquares, fit
from estimators.rappor_likelihood import BitLikelihood, maximize
from estimators.significance import benjamini_hochberg, normal_tail


def decode(
    bit_counts: NDArray[np.int64],
    cohort_sizes: NDArray[np.int64],
    candidates: Sequence[str],
    mechanism: Rappor,
    background: bool = True,
) -> Estimate:
    """Estimate how often each candidate was true, with 95 % intervals and significance.

    Point estimate: the maximum of the independent-bit likelihood on {theta >= 0, sum <= 1}. Standard errors,
    intervals and significance: unconstrained weighted least squares with sandwich errors (`rappor_errors`),
    since intervals around the constrained maximum do not cover.

    Parameters
    ----------
    bit_counts : int64 array (cohorts, bits), reports that show a 1.
    cohort_sizes : int64 array (cohorts,), reports of each cohort (N_c); 0 is allowed.
    candidates : n distinct strings, 1 <= n < cohorts * bits.
    mechanism : Rappor that made the reports.
    background : True adds a column that sets every bit with probability hashes / bits: it takes the mass of
        strings that are no candidates, which else falls upon those that share their bits.

    Returns
    -------
    Estimate with arrays of shape (n,). `other` is the background's least-squares frequency clipped to [0, 1]
    and its standard error, None without; the constrained maximum would give its mass to rare candidates.
    Diagnostics: `likelihood_gap`, nats per report by which the point estimate can miss the maximum at most;
    `chi_square_ratio`, of the residuals.

    Raises
    ------
    ValueError if shapes do not match, counts are negative, exceed their cohort's size or hold no report, or
    candidates are repeated, missing, or too many to tell apart.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), section 4; DESIGN section 7.
    """
    reports = _count_reports(bit_counts, cohort_sizes, mechanism)
    design = _design(candidates, mechanism, background)
    theta, gap = maximize(_likelihood(design, bit_counts, cohort_sizes, reports, mechanism))
    seen = cohort_sizes > 0
    by_cohort = design.reshape(mechanism.cohorts, mechanism.bits, -1)
    squares = fit(by_cohort[seen], bit_counts[seen], cohort_sizes[seen], theta, mechanism)
    count = len(candidates)
    half = QUANTILE_975 * squares.std_error
    low, high = shown_interval(squares.estimate - half, squares.estimate + half, theta)
    p_values = normal_tail(squares.estimate[:count] / squares.std_error[:count])
    return Estimate(
        estimator="mle",
        reports=reports,
        frequency=theta[:count],
        std_error=squares.std_error[:count],
        low=low[:count],
        high=high[:count],
        significant=benjamini_hochberg(p_values),
        other=_other(squares) if background else None,
        diagnostics={"likelihood_gap": gap, "chi_square_ratio": squares.chi_square_ratio},
    )


def _other(squares: LeastSquares) -> tuple[float, float]:
    """Frequency and standard error of the background, the last column."""
    return float(np.clip(squares.estimate[-1], 0, 1)), float(squares.std_error[-1])


def _count_reports(bit_counts: NDArray[np.int64], cohort_sizes: NDArray[np.int64], mechanism: Rappor) -> int:
    """Check counts, and return the number of reports (N)."""
    shape = (mechanism.cohorts, mechanism.bits)
    if bit_counts.shape != shape:
        raise ValueError(f"bit_counts must have shape {shape}, got {bit_counts.shape}")
    if cohort_sizes.shape != shape[:1]:
        raise ValueError(f"cohort_sizes must have shape {shape[:1]}, got {cohort_sizes.shape}")
    if bit_counts.min() < 0:
        raise ValueError(f"bit_counts must not be negative, got {bit_counts.min()}")
    excess = int((bit_counts - cohort_sizes[:, None]).max())
    if excess > 0:
        raise ValueError(f"bit_counts must not exceed their cohort's size, got {excess} more")
    reports = int(cohort_sizes.sum())
    if reports == 0:
        raise ValueError("cohort_sizes must hold at least 1 report, got 0")
    return reports


def _design(candidates: Sequence[str], mechanism: Rappor, background: bool) -> FloatArray:
    """Check candidates, and return their columns and the background's, float64 (cohorts * bits, columns)."""
    rows = mechanism.cohorts * mechanism.bits
    if not 1 <= len(candidates) < rows:
        raise ValueError(f"candidates must be 1 to {rows - 1}, cohorts * bits - 1, got {len(candidates)}")
    if len(set(candidates)) < len(candidates):
        raise ValueError(
            f"candidates must be distinct, got {len(candidates) - len(set(candidates))} repeated"
        )
    design = design_matrix(tuple(candidates), mechanism)
    if not background:
        return design
    return np.column_stack([design, np.full(rows, mechanism.hashes / mechanism.bits)])


def _likelihood(
    design: FloatArray,
    bit_counts: NDArray[np.int64],
    cohort_sizes: NDArray[np.int64],
    reports: int,
    mechanism: Rappor,
) -> BitLikelihood:
    """Take the counts as one column of rows, cohort after cohort."""
    ones = bit_counts.ravel().astype(np.float64)
    zeros = (cohort_sizes[:, None] - bit_counts).ravel().astype(np.float64)
    return BitLikelihood(design, ones, zeros, reports, mechanism)
