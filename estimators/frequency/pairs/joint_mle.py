"""The most likely joint table, through the Kronecker channel, by an interior-point method."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.pairs.newton_system import NewtonSystem
from deniable.estimators.frequency.pairs.table import inverted, reported
from deniable.estimators.mechanisms.matrix.pair import PairKRR

#: Largest gap, in nats of all reports together: 0.0002 standard errors in any direction.
LARGEST_GAP = 1e-8
# Gains of one report smaller than this are rounding errors: each sums hundreds of products, in an order that
# depends on the processor. Beyond them, steps lead away again.
_ROUNDING = 1e-14
_MOST_STEPS = 100
_MOST_IN_VAIN = 10
_UNIFORM = 0.1
_LEAST_SLACK = 0.1
# Each step aims at a tenth of the present products, and goes 99 % of the way to the nearest bound at most.
_CENTERING = 0.1
_REACH = 0.99


@dataclass(frozen=True, eq=False)
class JointMaximum:
    """A joint table and a bound on how far its likelihood is from the maximum.

    Parameters
    ----------
    table : float64 array (K1, K2), >= 0, summing to 1.
    gap : upper bound on the log-likelihood per report that any table gains over it, nats.
    """

    table: FloatArray
    gap: float


def joint_mle(counts: NDArray[np.int64], mechanism: PairKRR) -> JointMaximum:
    """Maximize the likelihood of the counts of reported pairs over all tables of true pairs.

    It is the inverted table if that has no negative entry. Otherwise minimize sum x - sum phi log (A x) over
    all x >= 0, where phi are the shares of the counts: x = t y with sum y = 1 has the least value at t = 1,
    so the minimum sums to 1 by itself. With g as in `channel_mle`, it has slacks z = 1 - g >= 0 and x z = 0.
    Newton steps on z = 1 - g and x z = mu reach it while mu falls. The bound log(max g) is that of the table
    returned, whatever the steps did.

    Parameters
    ----------
    counts : int64 array (K1, K2), reports per reported pair, not all 0.
    mechanism : PairKRR of the reports.

    Returns
    -------
    JointMaximum, with a gap of at most 1e-8 nats for all reports together, or of about 1e-14 for each.

    Source: Koenker, Mizera, "Convex optimization, shape constraints, compound decisions, and empirical Bayes
    rules" (JASA 109, 2014), for interior points of this likelihood; `channel_mle` for the bound.
    """
    if counts.shape[0] > counts.shape[1]:
        swapped = joint_mle(counts.T, PairKRR(mechanism.second, mechanism.first))
        return JointMaximum(swapped.table.T, swapped.gap)
    shares = counts / counts.sum()
    start = inverted(shares, mechanism)
    if start.min() >= 0:
        return JointMaximum(start, 0.0)
    tolerance = max(LARGEST_GAP / int(counts.sum()), _ROUNDING)
    positive = np.maximum(start, 0)
    table = (1 - _UNIFORM) * positive / positive.sum() + _UNIFORM / positive.size
    slack = np.maximum(1 - _gains(table, shares, mechanism), _LEAST_SLACK)
    best, in_vain = _with_zeros(table, slack, shares, mechanism), 0
    for _ in range(_MOST_STEPS):
        if best.gap <= tolerance or in_vain == _MOST_IN_VAIN:
            break
        table, slack = _step(table, slack, shares, mechanism)
        found = _with_zeros(table, slack, shares, mechanism)
        best, in_vain = (found, 0) if found.gap < best.gap else (best, in_vain + 1)
    return best


def _step(
    table: FloatArray, slack: FloatArray, shares: FloatArray, mechanism: PairKRR
) -> tuple[FloatArray, FloatArray]:
    """Take one Newton step of x and z, each as far as it stays positive."""
    target = _CENTERING * float((table * slack).mean())
    rates = reported(table, mechanism)
    gains = reported(shares / rates, mechanism)
    system = NewtonSystem.of(shares / rates**2, slack / table, mechanism)
    change = system.solve(gains - 1 + target / table)
    slack_change = target / table - slack - slack / table * change
    return _moved(table, change), _moved(slack, slack_change)


def _moved(point: FloatArray, change: FloatArray) -> FloatArray:
    fall = float((-change / point).max())
    return point + min(1.0, _REACH / max(fall, _REACH)) * change


def _with_zeros(table: FloatArray, slack: FloatArray, shares: FloatArray, mechanism: PairKRR) -> JointMaximum:
    """Set entries to 0 that are small for their slack, scale the rest to sum to 1, and bound its gap."""
    kept = np.where(table * table.size < slack, 0.0, table)
    if not kept.any():
        kept = table
    kept = kept / kept.sum()
    return JointMaximum(kept, max(0.0, float(np.log(_gains(kept, shares, mechanism).max()))))


def _gains(table: FloatArray, shares: FloatArray, mechanism: PairKRR) -> FloatArray:
    return reported(shares / reported(table, mechanism), mechanism)
