"""Expectation maximization of a joint table, three ways: over single reports, over counts, and accelerated.

Slow and simple, to hold estimators of pairs against. None uses anything of theirs but `reported`.
"""

import numpy as np

from deniable.estimators.frequency.pairs.table import reported
from deniable.estimators.mechanisms.matrix.pair import PairKRR


def em_of_likelihoods(likelihoods: np.ndarray, steps: int) -> np.ndarray:
    """Take steps of EM from the uniform table; likelihoods (N, K1, K2) hold P(report n | pair) in any scale.

    It is the EM of google/rappor's `ComputeDistributionEM`: a matrix of its own for each report.
    """
    table = np.full(likelihoods.shape[1:], 1 / likelihoods[0].size)
    for _ in range(steps):
        posterior = likelihoods * table
        table = (posterior / posterior.sum(axis=(1, 2), keepdims=True)).mean(axis=0)
    return table


def likelihoods_of_reports(counts: np.ndarray, mechanism: PairKRR) -> np.ndarray:
    """P(report | pair) of every single report of a table of counts, float64 (N, K1, K2)."""
    first, second = (field.channel for field in mechanism.fields)
    each = np.einsum("ia,jb->ijab", first, second).reshape(-1, *mechanism.shape)
    return each.repeat(counts.ravel(), axis=0)


def accelerated_em(counts: np.ndarray, mechanism: PairKRR, tolerance: float, most_steps: int) -> np.ndarray:
    """Extrapolate two steps of EM as far as the likelihood does not fall, until no table gains more.

    Source: Varadhan, Roland, "Simple and globally convergent methods for accelerating the convergence of any
    EM algorithm" (Scand. J. Statist. 35, 2008), scheme S3.
    """
    shares = counts / counts.sum()

    def gains(table: np.ndarray) -> np.ndarray:
        return reported(shares / reported(table, mechanism), mechanism)

    def loss(table: np.ndarray) -> float:
        return -float((shares * np.log(reported(table, mechanism))).sum())

    table = np.full(counts.shape, 1 / counts.size)
    for _ in range(most_steps):
        once = table * gains(table)
        if np.log(gains(once).max()) <= tolerance:
            break
        twice = once * gains(once)
        change, curve = once - table, twice - 2 * once + table
        length = float(np.sqrt((change**2).sum() / max(float((curve**2).sum()), 1e-300)))
        table, least = twice, loss(twice)
        while length > 1:
            further = np.maximum(once - change + 2 * length * change + length**2 * curve, 1e-3 * twice)
            further /= further.sum()
            if loss(further) <= least + 1e-14 * abs(least):
                table = further
                break
            length = (length + 1) / 2 if length > 1.1 else 1.0
        table = table * gains(table)
    return once
