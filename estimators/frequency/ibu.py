"""Iterative Bayesian update: expectation maximization for the frequencies behind any channel."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.frequency.estimate import count_reports
from estimators.mechanisms.channels import SymmetricChannel

ITERATIONS = 10_000
TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Update:
    """Where the iteration stopped.

    Parameters
    ----------
    frequency : float64 array (n,), >= 0, summing to 1.
    residual : L1 length of the last step. A short step does not mean that the maximum is near: near a
        frequency of 0 the steps shrink long before it is reached.
    iterations : number of steps made.
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
    """Iterate theta_x <- theta_x sum_y phi_y P(y|x) / P(y) from the uniform distribution, in O(k) a step.

    The likelihood never falls, and tends to its maximum.

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    mechanism : k-RR that made the reports.
    iterations : most steps to make, >= 1.
    tolerance : stop after a step whose L1 length is at most this, in [0, inf).

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
    """Iterate the same for any channel, in O(m n) a step.

    Parameters
    ----------
    counts : int64 array (m,), reports per reported value.
    channel : float64 array (m, n), P(report y | truth x) in row y and column x; a report that was seen is
        possible for some truth.
    iterations, tolerance : as of `ibu`.

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
    """Update until a step is short: `rates` multiplies by the channel, `gains` by its transpose."""
    if iterations < 1:
        raise ValueError(f"iterations must be at least 1, got {iterations}")
    if not 0 <= tolerance < np.inf:
        raise ValueError(f"tolerance must be in [0, inf), got {tolerance}")
    theta = np.full(size, 1 / size)
    residual, made = np.inf, 0
    while made < iterations and residual > tolerance:
        updated = theta * gains(shares / rates(theta))
        updated /= updated.sum()
        residual = float(np.abs(updated - theta).sum())
        theta = updated
        made += 1
    return Update(theta, residual, made)
