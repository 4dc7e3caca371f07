"""Weighted least squares on the debiased bits of all cohorts, with detection of unidentifiable columns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csc_array, diags_array

from estimators.arrays import FloatArray
from estimators.decoding.design import weighted_gram

# Eigenvalues of the normal matrix, scaled to a unit diagonal, below this fraction of the largest count as 0.
_RANK_TOLERANCE = 1e-10
# A column with more than this share in the null space is not identifiable.
_CONFUSION_TOLERANCE = 1e-6
# Weight of the overall chi-square ratio against that of a column's own rows, as a number of rows.
_PRIOR_ROWS = 16


@dataclass(frozen=True, eq=False)
class BitEquations:
    """One equation per bit of each cohort: observed = (X theta)_row + error.

    Parameters
    ----------
    observed : float64 array (rows,), debiased share of the cohort's reports whose true bit is 1, any real.
    weight : float64 array (rows,), 1 / variance of `observed` for independent bits and reports, 0 without
        reports.
    noise : float64 array (rows,), variance of `observed` for fixed true bits.
    excess : expected factor on the variance 1 / weight from clients that report repeatedly, >= 1.
    """

    observed: FloatArray
    weight: FloatArray
    noise: FloatArray
    excess: float


@dataclass(frozen=True, eq=False)
class Solution:
    """The weighted least-squares solution of observed = X theta, n columns.

    Parameters
    ----------
    estimate : float64 array (n,), theta, any reals.
    residual : float64 array (rows,), observed - X theta.
    inverse : float64 array (n, n), pseudo-inverse of H = X' w X.
    confused : bool array (n,), True for a column that is a linear combination of others: not identifiable.
    chi_square_ratio : weighted squared residuals over degrees of freedom and excess; 1 without any degree of
        freedom.
    """

    estimate: FloatArray
    residual: FloatArray
    inverse: FloatArray
    confused: NDArray[np.bool_]
    chi_square_ratio: float


def solve(design: csc_array, rows: BitEquations) -> Solution:
    """Minimize the weighted squared residuals over all real theta.

    Parameters
    ----------
    design : csc_array (rows, n), X.
    rows : BitEquations.
    """
    inverse, confused, rank = _invert(weighted_gram(design, rows.weight))
    estimate = inverse @ (design.T @ (rows.weight * rows.observed))
    residual = rows.observed - design @ estimate
    freedom = int((rows.weight > 0).sum()) - rank
    ratio = float(rows.weight @ residual**2) / (freedom * rows.excess) if freedom else 1.0
    return Solution(estimate, residual, inverse, confused, ratio)


def solve_extra_columns(
    extra: csc_array, design: csc_array, rows: BitEquations, solution: Solution
) -> tuple[FloatArray, FloatArray]:
    """Estimate each extra column as if it alone were added to the solution's columns.

    The estimate regresses the residuals on the part of the column that is orthogonal to the solution's
    columns, which carries the column's information. Its variance is excess / information, as for independent
    bits, times `moderate`: any other column is noise, which the residuals measure.

    Parameters
    ----------
    extra : csc_array (rows, m), columns of zeros and ones; they may be in `design` too.
    design : csc_array (rows, n), the columns of the solution.
    rows : BitEquations of the solution.
    solution : Solution.

    Returns
    -------
    Estimate and standard error, float64 arrays (m,); 0 and inf for a column that is a linear combination of
    the solution's columns.
    """
    crossed = (extra.T @ (diags_array(rows.weight) @ design)).toarray()
    alone = extra.T @ rows.weight
    information = alone - ((crossed @ solution.inverse) * crossed).sum(axis=1)
    identified = information > _CONFUSION_TOLERANCE * alone
    information = np.where(identified, information, np.inf)
    pull = extra.T @ (rows.weight * solution.residual)
    estimate = pull / information
    squares = extra.T @ (rows.weight * solution.residual**2) - 2 * estimate * pull + estimate**2 * alone
    support = np.diff(extra.indptr)
    own = squares / (np.maximum(support - 1, 1) * rows.excess)
    variance = rows.excess / information * moderate(own, support, solution.chi_square_ratio)
    return estimate, np.where(identified, np.sqrt(variance), np.inf)


def moderate(own: FloatArray, support: NDArray[np.int32], overall: float) -> FloatArray:
    """Return variance inflation factors: each column's own chi-square ratio, shrunk towards the overall one.

    A frequent unknown string raises a few bits by far, and a candidate that shares one of them looks
    frequent. The chi-square ratio of the candidate's own rows reveals it. They are few, so the overall ratio
    is averaged in with the weight of 16 rows. No factor is below the overall ratio, or below 1.

    Parameters
    ----------
    own : float64 array (n,), chi-square ratio of the rows that a column sets.
    support : integer array (n,), number of these rows.
    overall : chi-square ratio of all rows, >= 0.

    Returns
    -------
    float64 array (n,), factors on the variances.

    Source: McCullagh, Nelder, "Generalized Linear Models" (1989), section 4.5, for the inflation; Smyth,
    Stat. Appl. Genet. Mol. Biol. 3 (2004), for moderating a variance by prior degrees of freedom.
    """
    least = max(1.0, overall)
    factor: FloatArray = np.maximum(least, (_PRIOR_ROWS * least + support * own) / (_PRIOR_ROWS + support))
    return factor


def _invert(hessian: FloatArray) -> tuple[FloatArray, NDArray[np.bool_], int]:
    """Return the pseudo-inverse of H, a mask of the unidentifiable columns, and the rank.

    The Cholesky inverse is used if it proves that no eigenvalue is small: with a unit diagonal the largest is
    at most n, and the smallest at least 1 / trace of the inverse. The eigendecomposition takes eight times as
    long.
    """
    scale = np.sqrt(np.maximum(np.diag(hessian), np.finfo(float).tiny))
    scaled, columns = hessian / np.outer(scale, scale), len(hessian)
    factor, failed = dpotrf(scaled, lower=True)
    if not failed:
        lower, _ = dpotri(factor, lower=True)
        if np.trace(lower) * columns * _RANK_TOLERANCE < 1:
            inverse = np.tril(lower) + np.tril(lower, -1).T
            return inverse / np.outer(scale, scale), np.zeros(columns, bool), columns
    values, vectors = np.linalg.eigh(scaled)
    kept = values > _RANK_TOLERANCE * values[-1]
    confused: NDArray[np.bool_] = (vectors[:, ~kept] ** 2).sum(axis=1) > _CONFUSION_TOLERANCE
    known = vectors[:, kept]
    return (known / values[kept]) @ known.T / np.outer(scale, scale), confused, int(kept.sum())
