"""Weighted least squares on the debiased bits of all cohorts, and what the bits cannot tell apart."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csc_array, diags_array

from estimators.arrays import FloatArray
from estimators.decoding.design import weighted_gram

# Eigenvalues of the normal equations, their diagonal scaled to 1, below this count as 0.
_RANK_TOLERANCE = 1e-10
# A column whose share in those directions exceeds this cannot be told from a mixture of others.
_CONFUSION_TOLERANCE = 1e-6
# Weight of the overall chi-square ratio against that of one column's rows, in rows.
_PRIOR_ROWS = 16


@dataclass(frozen=True, eq=False)
class BitEquations:
    """One equation for each bit of each cohort: observed = (X theta)_row + error.

    Parameters
    ----------
    observed : float64 array (rows,), debiased share of the cohort's reports whose true bit is 1, any real.
    weight : float64 array (rows,), 1 / variance of `observed` for independent bits and reports, 0 without
        reports.
    noise : float64 array (rows,), variance of `observed` by the noise of the bit alone, true bits fixed.
    excess : factor on the variance 1 / weight, >= 1, that returning clients are expected to bring.
    """

    observed: FloatArray
    weight: FloatArray
    noise: FloatArray
    excess: float


@dataclass(frozen=True, eq=False)
class Solution:
    """The weighted least-squares solution of rows = X theta, n columns.

    Parameters
    ----------
    estimate : float64 array (n,), theta, any reals.
    residual : float64 array (rows,), observed - X theta.
    inverse : float64 array (n, n), pseudo-inverse of H = X' w X.
    confused : bool array (n,), True for a column that no count can tell from a mixture of others.
    chi_square_ratio : weighted squared residuals per degree of freedom and excess; 1 where no degree is left.
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
    rows : Rows.
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
    """Estimate each further column as if it alone were added to the solution's.

    Of column x remains what the solution's columns do not explain; its estimate is that of the residuals on
    it, its variance that of independent bits, excess / information, times `moderate` of the residuals: all
    columns but the solution's and this one are noise, and the residuals measure it.

    Parameters
    ----------
    extra : csc_array (rows, m), columns of zeros and ones; they may be in `design` too.
    design : csc_array (rows, n), the columns of the solution.
    rows : Rows of the solution.
    solution : Solution.

    Returns
    -------
    Estimate and standard error, float64 arrays (m,); the estimate is 0 and the error inf where a column is a
    mixture of the solution's.
    """
    crossed = (extra.T @ (diags_array(rows.weight) @ design)).toarray()
    alone = extra.T @ rows.weight
    information = alone - ((crossed @ solution.inverse) * crossed).sum(axis=1)
    told = information > _CONFUSION_TOLERANCE * alone
    information = np.where(told, information, np.inf)
    pull = extra.T @ (rows.weight * solution.residual)
    estimate = pull / information
    squares = extra.T @ (rows.weight * solution.residual**2) - 2 * estimate * pull + estimate**2 * alone
    support = np.diff(extra.indptr)
    own = squares / (np.maximum(support - 1, 1) * rows.excess)
    variance = rows.excess / information * moderate(own, support, solution.chi_square_ratio)
    return estimate, np.where(told, np.sqrt(variance), np.inf)


def moderate(own: FloatArray, support: NDArray[np.int32], overall: float) -> FloatArray:
    """Inflate variances by the chi-square ratio of a column's own rows, averaged with the overall one.

    A frequent unknown string lifts a few bits by far, and a candidate that shares one looks frequent. The
    ratio of the candidate's own rows shows it. They are few, so the overall ratio weighs as much as 16 rows;
    no factor is below it, or below 1.

    Parameters
    ----------
    own : float64 array (n,), chi-square ratio of the rows that a column sets.
    support : integer array (n,), number of these rows.
    overall : chi-square ratio of all rows.

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
    """Invert H where the counts tell; return it, the columns that are mixtures of others, and the rank.

    Where Cholesky's inverse shows that no eigenvalue is small, the eigenvectors, which take eight times as
    long, are not needed: with the diagonal scaled to 1 the largest eigenvalue is at most n, and the smallest
    is at least 1 / trace of the inverse.
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
    told = values > _RANK_TOLERANCE * values[-1]
    confused: NDArray[np.bool_] = (vectors[:, ~told] ** 2).sum(axis=1) > _CONFUSION_TOLERANCE
    known = vectors[:, told]
    return (known / values[told]) @ known.T / np.outer(scale, scale), confused, int(told.sum())
