"""Maximum likelihood frequencies under any channel matrix, with a bound on the distance to the maximum."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import count_reports
from deniable.estimators.frequency.simplex import minimize_quadratic

GAP_TOLERANCE = 1e-12
_MAXIMUM_STEPS = 100
_RIDGE = 1e-12
_VALUE_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class ChannelMaximum:
    """A distribution and a bound on how far its likelihood is from the maximum.

    Parameters
    ----------
    frequency : float64 array (n,), fractions, >= 0, summing to 1.
    log_likelihood : sum over y of counts_y log P(report y), nats.
    gap : upper bound on the log-likelihood per report that any distribution gains over `frequency`, nats,
        <= 1e-9.
    """

    frequency: FloatArray
    log_likelihood: float
    gap: float


def channel_mle(counts: NDArray[np.int64], channel: FloatArray) -> ChannelMaximum:
    """Maximize sum_y counts_y log (channel theta)_y over all distributions theta by Newton steps.

    Each step minimizes the quadratic model on the simplex. Certificate: let phi be the shares of the counts
    and g_x = sum_y phi_y P(y|x) / (channel theta)_y. By Jensen's inequality, a distribution t gains at most
    log(g't) <= log(max g) per report over theta: the gap, 0 at the maximum. If the maximum is not unique, one
    of the maxima is returned.

    Parameters
    ----------
    counts : int64 array (m,), reports per reported value.
    channel : float64 array (m, n), P(report y | truth x) in row y and column x, in [0, 1].

    Returns
    -------
    ChannelMaximum of n entries.

    Raises
    ------
    ValueError if counts is not of shape (m,), negative or all 0, or positive where all P(y|x) are 0.

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
    """Take Newton steps on the simplex from the uniform distribution; return theta and the gap."""
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
    """Return the step to the minimum of the quadratic model; a ridge makes it unique for equal columns."""
    root = rows * (np.sqrt(shares) / rates)[:, None]
    hessian = root.T @ root
    hessian += _RIDGE * np.trace(hessian) / len(theta) * np.eye(len(theta))
    return minimize_quadratic(hessian, hessian @ theta + gains, theta) - theta


def _step_length(
    shares: FloatArray, rows: FloatArray, theta: FloatArray, direction: FloatArray, slope: float
) -> float:
    """Halve a step of 1 until Armijo's condition holds with constant 1e-4; return 0 if it never does.

    A rise within the rounding of the loss is accepted, because the last steps gain less than that.
    """
    loss, length = _loss(shares, rows @ theta), 1.0
    ceiling = loss + _VALUE_ROUNDING * abs(loss)
    while length > 1e-12:
        if _loss(shares, rows @ (theta + length * direction)) <= ceiling + 1e-4 * length * slope:
            return length
        length /= 2
    return 0.0


def _loss(shares: FloatArray, rates: FloatArray) -> float:
    """Negative log-likelihood per report, nats; inf if an observed report has probability 0."""
    return float(-(shares @ np.log(rates))) if rates.min() > 0 else np.inf
