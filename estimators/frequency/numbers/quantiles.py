"""Cells that may hold each quantile of a number: likelihood ratios where lies are many, else binomials."""

from collections.abc import Sequence

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.numbers.binomial_cells import binomial_cells, rank_of
from deniable.estimators.frequency.numbers.quantile_cells import quantile_cells
from deniable.estimators.frequency.numbers.smoothed_em import information, onto_truth, report_rates
from deniable.estimators.frequency.numbers.two_masses import QuadraticLoss
from deniable.estimators.mechanisms.square_wave import SquareWave

# Expected reports of every cell, whatever the numbers are, from which a chi-square of cells holds.
_LEAST_EXPECTED = 8.0


def possible_cells(
    counts: FloatArray, theta: FloatArray, mechanism: SquareWave, levels: Sequence[float]
) -> list[tuple[int, int]]:
    """Return the first and the last cell that may hold each quantile, at 95 %.

    The chi-square of the reports holds where every reported cell expects 8 reports, N q, whatever the numbers
    are. With fewer, and where only the true cell is near (b = 0, where they are exact and lose nothing), and
    for counts whose equations are singular, cells are those of `binomial_cells`. That choice depends on
    public figures alone, but for the singular ones.

    Parameters
    ----------
    counts : float64 array (d + 2b,), reports of each cell, >= 0, not all 0; expected ones need not be whole.
    theta : float64 array (d,), estimated shares, > 0, for the noise.
    mechanism : SquareWave of the reports.
    levels : of the quantiles, ascending, in (0, 1).

    Returns
    -------
    Pairs of cells in [0, d).
    """
    reports = round(float(counts.sum()))
    if mechanism.half_width > 0 and reports * mechanism.q >= _LEAST_EXPECTED:
        shares = [rank_of(level, reports) / reports for level in levels]
        try:
            loss = chi_square_loss(theta, counts / reports, reports, mechanism)
            return quantile_cells(loss, shares)
        except np.linalg.LinAlgError:
            pass
    return binomial_cells(counts, mechanism, levels)


def chi_square_loss(
    theta: FloatArray, shares: FloatArray, reports: int, mechanism: SquareWave
) -> QuadraticLoss:
    """Half the chi-square of the shares phi under other distributions, with the noise under theta.

    For fixed true numbers N cov phi = diag(r) - P diag(theta) P', where P is the channel and r = P theta.
    Adding r r' changes nothing, since all distributions sum to 1. With G = P' diag(1 / r) P and
    M = diag(theta) - theta theta', P' (diag(r) - P M P')^-1 = (1 - G M)^-1 P' diag(1 / r).
    """
    rates = report_rates(theta, mechanism)
    gram = information(1 / rates, mechanism)
    right = np.column_stack([gram, onto_truth(shares / rates, mechanism)])
    left = np.eye(mechanism.steps) - gram * theta + np.outer(gram @ theta, theta)
    solved: FloatArray = reports * np.linalg.solve(left, right).astype(np.float64, copy=False)
    hessian = solved[:, :-1]
    return QuadraticLoss((hessian + hessian.T) / 2, solved[:, -1])
