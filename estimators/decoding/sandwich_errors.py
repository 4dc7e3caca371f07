"""Unconstrained least squares on RAPPOR bit counts, with errors that allow for dependent bits of a report."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, diags_array

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.bit_counts import BitCounts
from deniable.estimators.decoding.design import one_block_per_cohort, weighted_gram
from deniable.estimators.decoding.equations.least_squares import BitEquations, Solution, solve
from deniable.estimators.decoding.equations.misfit import (
    FIXED_STRINGS,
    badly_fitting,
    misfit_weight,
    moderate,
    mostly_unexplained,
    shift_deviation,
)
from deniable.estimators.decoding.equations.unexplained_bits import UnexplainedBits, hidden_deviation

# Lower bound on 1 - leverage, which is 0 for a row that one column fits exactly.
_LEAST_FREEDOM = 1e-10
# Misfit of the sum of the columns, in standard deviations of its shift: unlisted strings only raise bits, so
# what they add to columns has a mean, which a sum adds up.
_REMAINDER_SHIFTS = 3.0


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """Unconstrained estimates of n columns.

    Parameters
    ----------
    estimate : float64 array (n,), unbiased where `std_error` is finite; may be negative.
    sampling_error : float64 array (n,), > 0, inf for a column that is a linear combination of others.
    shift : float64 array (n,), >= 0, the standard deviation over candidates of what unlisted strings add to
        an estimate.
    shift_weight : factor on it in `misfit_error`, >= 1.
    hidden : float64 array (n,), >= 0, the same of bits that they raise unseen, see `hidden_deviation`.
    remainder : 1 - the sum of all columns but the last, and its standard error with misfit.
    unreliable : bool array (n,), True for `mostly_unexplained` and `badly_fitting` columns.
    """

    estimate: FloatArray
    sampling_error: FloatArray
    shift: FloatArray
    shift_weight: float
    hidden: FloatArray
    remainder: tuple[float, float]
    unreliable: NDArray[np.bool_]

    @property
    def misfit_error(self) -> FloatArray:
        """The part of each error that strings outside the candidates cause, float64 (n,)."""
        error: FloatArray = np.hypot(self.shift_weight * self.shift, FIXED_STRINGS * self.hidden)
        return error

    @property
    def std_error(self) -> FloatArray:
        """Standard errors of both parts, float64 (n,)."""
        error: FloatArray = np.hypot(self.sampling_error, self.misfit_error)
        return error


def fit(
    counts: BitCounts, design: csc_array, theta: FloatArray, bits: UnexplainedBits | None = None
) -> LeastSquares:
    """Solve (counts / N_c - p*) / (q* - p*) = X theta by weighted least squares, with sandwich errors.

    The weights are those of independent bits, w = N_c (q* - p*)² / (lambda (1 - lambda)) at `theta`, and
    H = X' w X; unexplained bits have weight 0. The sampling covariance is H^-1 J H^-1, where J is the
    covariance of the score: the noise of each bit, and the random assignment of clients to cohorts. The bits
    of a report depend on each other through its true value.

    Strings outside the candidates set bits that an even background matches only on average. The residuals
    measure what remains, as a factor on the variance (`moderate`): it is the misfit.

    Parameters
    ----------
    counts : BitCounts; a cohort without reports has weight 0.
    design : csc_array (cohorts * bits, n), X, share of a column's reports whose true bit is 1.
    theta : float64 array (n,), frequencies at which weights and covariance are taken, >= 0, sum <= 1.
    bits : those that are left out; None for none.

    Returns
    -------
    LeastSquares of n columns.

    Source: White, Econometrica 50 (1982), for the sandwich.
    """
    left_out = np.zeros(design.shape[0], bool) if bits is None else bits.left_out
    rows = counts.rows(design, theta).without(left_out)
    solution = solve(design, rows)
    hessian, inverse = weighted_gram(design, rows.weight), solution.inverse
    score = weighted_gram(design, rows.weight**2 * rows.noise)
    score += counts.overlap * _cohort_covariance(design, rows.weight, hessian, counts.cohort_sizes, theta)
    # The columns, then the sum of all but the last.
    combined = np.column_stack([inverse, inverse[:, :-1].sum(axis=1)])
    variance = np.einsum("ij,ij->j", combined, score @ combined)
    inflation, is_bad = _judge(design, rows, solution, ~left_out, combined)
    shift = shift_deviation(variance, inflation)
    is_incomplete = bits is not None and bits.is_incomplete
    shift_weight = misfit_weight(solution.chi_square_ratio, solution.freedom, is_incomplete=is_incomplete)
    hidden = hidden_deviation(rows, left_out, solution.residual, design @ combined)
    of_sum = math.hypot(_REMAINDER_SHIFTS * shift[-1], FIXED_STRINGS * hidden[-1])
    remainder_error = math.hypot(math.sqrt(variance[-1]), of_sum)
    return LeastSquares(
        estimate=solution.estimate,
        sampling_error=np.where(solution.confused, np.inf, np.sqrt(variance[:-1])),
        shift=shift[:-1],
        shift_weight=shift_weight,
        hidden=hidden[:-1],
        remainder=(1 - float(solution.estimate[:-1].sum()), remainder_error),
        unreliable=is_bad | mostly_unexplained(design, ~left_out, is_incomplete),
    )


def _judge(
    design: csc_array,
    rows: BitEquations,
    solution: Solution,
    is_explained: NDArray[np.bool_],
    combined: FloatArray,
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the factor on each variance, and which columns fit badly.

    The factor is `moderate`, with rows weighted by their part in the variance. `combined`, float64
    (n, n + 1), is the inverse and its sum over all columns but the last: the last factor is that of such a
    sum.

    Source: MacKinnon, White, J. Econometrics 29 (1985), HC2, for residuals over 1 - leverage.
    """
    influence = design @ combined
    leverage = rows.weight * design.multiply(influence[:, :-1]).sum(axis=1)
    squares = rows.weight * solution.residual**2 / np.maximum(1 - leverage, _LEAST_FREEDOM) / rows.excess
    shares = influence**2
    total = np.maximum(rows.weight @ shares, np.finfo(float).tiny)  # 0 for a column without bits
    own = (rows.weight * squares) @ shares / total
    explained = is_explained.astype(np.float64)
    support = np.append(design.T @ explained, explained.sum())
    ratio = solution.chi_square_ratio
    return moderate(own, support, ratio), badly_fitting(design, is_explained, squares, ratio)


def _cohort_covariance(
    design: csc_array,
    weight: FloatArray,
    hessian: FloatArray,
    cohort_sizes: NDArray[np.int64],
    theta: FloatArray,
) -> FloatArray:
    """Covariance of the score due to the random assignment of clients to cohorts of known sizes.

    A client with value v adds column v of A_c = X_c' w_c X_c / N_c, its cohort's H per report, to the score.
    The clients of a cohort are a sample without replacement from all N. The covariances within a cohort,
    N_c - N_c²/N times that of one client, and between two cohorts, -N_c N_c'/N times, add up to

        sum_c N_c (A_c D A_c - A_c theta theta' A_c) - (H D H - H theta theta' H) / N,   D = diag(theta).
    """
    cohorts, held = len(cohort_sizes), np.flatnonzero(theta)
    root = np.sqrt(theta[held])
    share = weight / np.sqrt(np.repeat(np.maximum(cohort_sizes, 1), len(weight) // cohorts))
    columns = diags_array(share) @ design[:, held]
    spread = (design.T @ one_block_per_cohort(columns @ diags_array(root), cohorts)).tocsr()
    mean = (design.T @ one_block_per_cohort(csc_array((columns @ theta[held])[:, None]), cohorts)).toarray()
    joint = hessian[:, held] * root
    joint_mean = joint @ root
    within = (spread @ spread.T).toarray() - mean @ mean.T
    between = joint @ joint.T - np.outer(joint_mean, joint_mean)
    covariance: FloatArray = within - between / cohort_sizes.sum()
    return covariance
