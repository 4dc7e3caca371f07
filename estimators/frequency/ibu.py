"""Iterative Bayesian update (IBU): expectation maximization for the frequencies under any channel."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import count_reports
from deniable.estimators.mechanisms.traits import SymmetricChannel

ITERATIONS = 10_000
TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Update:
    """The last iterate.

    Parameters
    ----------
    frequency : float64 array (n,), fractions, >= 0, summing to 1.
    residual : L1 norm of the last step. A small one does not imply that the maximum is near: where a
        frequency tends to 0, steps shrink long before it is reached.
    iterations : number of steps taken.
    """

    frequency: FloatArray
    residual: float
    iterations: int


def ibu(
    counts: NDArray[np.int64],
    mechanism: SymmetricChannel,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> Update:
    """Iterate theta_x <- theta_x sum_y phi_y P(y|x) / P(y) from the uniform distribution, O(k) per step.

    The likelihood never falls and converges to its maximum.

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    mechanism : k-RR, longitudinal or not, of the reports.
    iterations : maximal number of steps, >= 1.
    tolerance : stop after a step whose L1 norm is at most this, in [0, inf).

    Returns
    -------
    Update of k entries.

    Raises
    ------
    ValueError if counts is not of shape (k,), negative or all 0, or a parameter is out of range.

    Source: Agrawal, Aggarwal, "On the design and quantification of privacy preserving data mining algorithms"
    (PODS 2001), section 3; Pinzón et al. (arXiv 2601.08603), "IBU".
    """
    shares = counts / count_reports(counts, mechanism.k)

    def rates(theta: FloatArray) -> FloatArray:
        return mechanism.q + mechanism.contrast * theta

    def gains(ratio: FloatArray) -> FloatArray:
        return mechanism.q * float(ratio.sum()) + mechanism.contrast * ratio

    return _iterate(shares, mechanism.k, rates, gains, iterations, tolerance)


def ibu_of_channel(
    counts: NDArray[np.int64],
    channel: FloatArray,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> Update:
    """Iterate the same update under any channel matrix, O(m n) per step.

    Parameters
    ----------
    counts : int64 array (m,), reports per reported value.
    channel : float64 array (m, n), P(report y | truth x) in row y and column x; some P(y|x) > 0 for each y
        with a count.
    iterations : maximal number of steps, >= 1.
    tolerance : stop after a step whose L1 norm is at most this, in [0, inf).

    Returns
    -------
    Update of n entries.

    Raises
    ------
    ValueError if counts is not of shape (m,), negative or all 0, or a parameter is out of range.
    """
    shares = counts / count_reports(counts, len(channel))
    seen = np.flatnonzero(counts)
    rows = channel[seen]
    return _iterate(
        shares[seen],
        channel.shape[1],
        lambda theta: rows @ theta,
        lambda ratio: ratio @ rows,
        iterations,
        tolerance,
    )


def _iterate(
    shares: FloatArray,
    size: int,
    rates: Callable[[FloatArray], FloatArray],
    gains: Callable[[FloatArray], FloatArray],
    iterations: int,
    tolerance: float,
) -> Update:
    """Update until a step is within the tolerance; `rates` applies the channel, `gains` its transpose."""
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    if not 0 <= tolerance < np.inf:
        raise ValueError(f"tolerance must be in [0, inf), got {tolerance}")
    theta = np.full(size, 1 / size)
    residual, steps = np.inf, 0
    while steps < iterations and residual > tolerance:
        updated = theta * gains(shares / rates(theta))
        updated /= updated.sum()
        residual = float(np.abs(updated - theta).sum())
        theta = updated
        steps += 1
    return Update(theta, residual, steps)
