"""The most likely frequencies behind any channel, with a proof of how likely they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.frequency.estimate import count_reports
from estimators.frequency.simplex import minimize_quadratic

GAP_TOLERANCE = 1e-12
_MAXIMUM_STEPS = 100
_RIDGE = 1e-12
_VALUE_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class ChannelMaximum:
    """A distribution and its distance from the maximum.

    Parameters
    ----------
    frequency : float64 array (n,), >= 0, summing to 1.
    log_likelihood : sum of counts times log P(report), nats.
    gap : nats per report that no distribution can gain over `frequency`, <= 1e-9.
    """

    frequency: FloatArray
    log_likelihood: float
    gap: float


def channel_mle(counts: NDArray[np.int64], channel: FloatArray) -> ChannelMaximum:
    """Maximize sum_y counts_y log (channel theta)_y over all distributions theta by Newton steps.

    Certificate: with g_x = sum_y phi_y P(y|x) / (channel theta)_y, Jensen's inequality bounds the gain per
    report of any other distribution t by log(g't), so by log(max g): the gap, 0 at the maximum. Each step
    minimizes the quadratic model on the simplex. Where the channel cannot tell values apart, one of the
    maxima is returned.

    Parameters
    ----------
    counts : int64 array (m,), reports per reported value.
    channel : float64 array (m, n), P(report y | truth x) in row y and column x, in [0, 1].

    Returns
    -------
    ChannelMaximum of n entries.

    Raises
    ------
    ValueError if counts is not of shape (m,), negative or all 0, or holds a report that no truth leads to.

    Source: Cover, "An algorithm for maximizing expected log investment return" (IEEE Trans. Inf. Theory 30,
    1984), for the certificate; Kim et al., "A fast algorithm for maximum likelihood estimation of mixture
    proportions using sequential quadratic programming" (J. Comput. Graph. Statist. 29, 2020).
    """
    reports = count_reports(counts, len(channel))
    seen = np.flatnonzero(counts)
    rows, shares = channel[seen], counts[seen] / reports
    impossible = seen[rows.max(axis=1) <= 0]
    if impossible.size:
        raise ValueError(f"counts must be 0 where no value leads to the report, got {counts[impossible[0]]}")
    theta, gap = _maximize(shares, rows)
    return ChannelMaximum(theta, float(-reports * _loss(shares, rows @ theta)), gap)


def _maximize(shares: FloatArray, rows: FloatArray) -> tuple[FloatArray, float]:
    """Newton steps on the simplex from its middle; return theta and the gap."""
    theta = np.full(rows.shape[1], 1 / rows.shape[1])
    for _ in range(_MAXIMUM_STEPS):
        rates = rows @ theta
        gains = (shares / rates) @ rows
        gap = max(0.0, float(np.log(gains.max())))
        if gap <= GAP_TOLERANCE:
            break
        direction = _newton_direction(shares, rows, rates, gains, theta)
        length = _step_length(shares, rows, theta, direction, -float(gains @ direction))
        if length == 0:
            break
        theta = theta + length * direction
    return theta, gap


def _newton_direction(
    shares: FloatArray, rows: FloatArray, rates: FloatArray, gains: FloatArray, theta: FloatArray
) -> FloatArray:
    """Step to the minimum of the quadratic model; a ridge decides between values that look alike."""
    root = rows * (np.sqrt(shares) / rates)[:, None]
    hessian = root.T @ root
    hessian += _RIDGE * np.trace(hessian) / len(theta) * np.eye(len(theta))
    return minimize_quadratic(hessian, hessian @ theta + gains, theta) - theta


def _step_length(
    shares: FloatArray, rows: FloatArray, theta: FloatArray, direction: FloatArray, slope: float
) -> float:
    """Halve a step of 1 until the loss falls by a ten-thousandth of what the slope promises (Armijo).

    A rise within the rounding of the loss is no rise: the last steps gain less than a loss can show.
    """
    loss, length = _loss(shares, rows @ theta), 1.0
    ceiling = loss + _VALUE_ROUNDING * abs(loss)
    while length > 1e-12:
        if _loss(shares, rows @ (theta + length * direction)) <= ceiling + 1e-4 * length * slope:
            return length
        length /= 2
    return 0.0


def _loss(shares: FloatArray, rates: FloatArray) -> float:
    """Negative log-likelihood per report, nats; inf where a report that was seen is impossible."""
    return float(-(shares @ np.log(rates))) if rates.min() > 0 else np.inf
