"""Weighted least squares on the debiased bits of all cohorts, with detection of unidentifiable columns."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csc_array, diags_array

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.design import weighted_gram
from deniable.estimators.decoding.equations.misfit import moderate

# Eigenvalues of the normal matrix, scaled to a unit diagonal, below this fraction of the largest count as 0.
_RANK_TOLERANCE = 1e-10
# A column with more than this share in the null space is not identifiable.
_CONFUSION_TOLERANCE = 1e-6


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

    def without(self, left_out: NDArray[np.bool_]) -> "BitEquations":
        """Return the equations without some rows, bool (rows,): their weight becomes 0."""
        return replace(self, weight=np.where(left_out, 0.0, self.weight))


@dataclass(frozen=True, eq=False)
class Solution:
    """The weighted least-squares solution of observed = X theta, n columns.

    Parameters
    ----------
    estimate : float64 array (n,), theta, any reals.
    residual : float64 array (rows,), observed - X theta.
    inverse : float64 array (n, n), pseudo-inverse of H = X' w X.
    confused : bool array (n,), True for a column that is a linear combination of others: not identifiable.
    freedom : number of rows of positive weight beyond the rank of H.
    chi_square_ratio : weighted squared residuals over degrees of freedom and excess; 1 without any degree of
        freedom.
    """

    estimate: FloatArray
    residual: FloatArray
    inverse: FloatArray
    confused: NDArray[np.bool_]
    freedom: int
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
    return Solution(estimate, residual, inverse, confused, freedom, ratio)


def solve_extra_columns(
    extra: csc_array, design: csc_array, rows: BitEquations, solution: Solution
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimate each extra column as if it alone were added to the solution's columns.

    The estimate regresses the residuals on the part of the column that is orthogonal to the solution's
    columns, which carries the column's information. Its variance is excess / information, as for independent
    bits; any other column adds to it, by a factor that the residuals measure (`moderate`).

    Parameters
    ----------
    extra : csc_array (rows, m), columns of zeros and ones; they may be in `design` too.
    design : csc_array (rows, n), the columns of the solution.
    rows : BitEquations of the solution.
    solution : Solution.

    Returns
    -------
    Estimate, variance and the factor on it, float64 arrays (m,); 0, inf and any factor for a column that is a
    linear combination of the solution's columns.
    """
    crossed = (extra.T @ (diags_array(rows.weight) @ design)).toarray()
    alone = extra.T @ rows.weight
    information = alone - ((crossed @ solution.inverse) * crossed).sum(axis=1)
    identified = information > _CONFUSION_TOLERANCE * alone
    information = np.where(identified, information, np.inf)
    pull = extra.T @ (rows.weight * solution.residual)
    estimate = pull / information
    squares = extra.T @ (rows.weight * solution.residual**2) - 2 * estimate * pull + estimate**2 * alone
    support = extra.T @ (rows.weight > 0).astype(np.float64)
    own = squares / (np.maximum(support - 1, 1) * rows.excess)
    variance = np.where(identified, rows.excess / information, np.inf)
    return estimate, variance, moderate(own, support, solution.chi_square_ratio)


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
