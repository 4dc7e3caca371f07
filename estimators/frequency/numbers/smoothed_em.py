"""EM with smoothing (EMS) for Square Wave, solved to its fixed point, with the fixed point's derivative.

An EM step multiplies theta_x by g_x = sum_y phi_y P(y|x) / (channel theta)_y, where phi are the shares of the
reports; a smoothing step then replaces theta_x by w theta_(x-1) + (1 - 2w) theta_x + w theta_(x+1). The
channel is q everywhere plus p - q in a band, so a step takes sums over windows of 2b + 1 cells: differences
of cumulative sums, O(d).
"""

import math
from dataclasses import dataclass

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.square_wave import SquareWave

#: Largest sum of the absolute changes of theta in another step, at which the fixed point counts as reached.
TOLERANCE = 1e-10
#: Published weight of each neighbour, for so many steps, and so many reports if each said the truth.
LARGEST_WEIGHT = 0.25
FULL_STEPS = 256
FULL_REPORTS = 425_000
_FIRST_STEPS = 50
_MOST_ROUNDS = 60
_LONGEST_STEP = 6.0  # of the logarithm of a frequency
_LEAST_FREQUENCY = 1e-100  # so that its logarithm exists
_PARTS = (1.0, 0.5, 0.25, 0.125)


@dataclass(frozen=True, eq=False)
class SmoothedMaximum:
    """The fixed point of EM with smoothing.

    Parameters
    ----------
    frequency : float64 array (d,), fractions, > 0, summing to 1.
    change : sum of the absolute changes of `frequency` in another step.
    rounds : number of Newton steps and of runs of EM in their place.
    """

    frequency: FloatArray
    change: float
    rounds: int


def smoothing_weight(reports: int, mechanism: SquareWave) -> float:
    """Return the weight w of each neighbour: 1/4, as published, for 256 steps and few reports.

    The bias of smoothing does not fall as reports are added, only as w does. So w falls with the root of the
    reports beyond 425,000 s^2: 6,600, 25,000, 86,000 and 223,000 at epsilons .5, 1, 2 and 4. Here s is the
    slope of the expected report over the true number, as a fraction of the reports' range; s^2 is
    proportional to what a report says of the mean. At epsilon 1 and 10 million reports of two peaks, the
    distance W1 is .0114 with 1/4 and .0015 with this. Smoothing n times widens by sqrt(2 n w) cells, so w is
    proportional to the square of the steps.

    Parameters
    ----------
    reports : N, >= 1.
    mechanism : SquareWave of the reports.

    Returns
    -------
    w in (0, 1/4].
    """
    # The contrast times 2b + 1 is P(near) - P(far) (2b + 1) / (d - 1), the slope in cells.
    slope = mechanism.contrast * mechanism.near * mechanism.steps / mechanism.width
    coarseness = (mechanism.steps / FULL_STEPS) ** 2
    return LARGEST_WEIGHT * min(1.0, coarseness * slope * math.sqrt(FULL_REPORTS / reports))


def smoothed_em(
    shares: FloatArray, mechanism: SquareWave, weight: float, start: FloatArray | None = None
) -> SmoothedMaximum:
    """Iterate expectation, maximization and smoothing until another step changes theta by at most 1e-10.

    After 50 steps Newton's method takes over, for log theta, so that frequencies stay positive. Where it does
    not come closer, it takes half its step, a quarter or an eighth, and where none does, another 50 steps are
    taken. It gives up after 60 rounds, which was seen with a few reports only; `change` then exceeds 1e-10.

    Parameters
    ----------
    shares : float64 array (d + 2b,), phi, reports of each cell over all reports, >= 0, summing to 1.
    mechanism : SquareWave of the reports.
    weight : w, in (0, 1/4].
    start : float64 array (d,), distribution > 0 to begin with, or None for the uniform one.

    Returns
    -------
    SmoothedMaximum of d entries.

    Source: Li et al. (SIGMOD 2020), section 5.5; Silverman et al., "A smoothed EM approach to indirect
    estimation problems" (J. R. Statist. Soc. B 52, 1990), for the fixed point.
    """
    theta = np.full(mechanism.steps, 1 / mechanism.steps) if start is None else start
    theta = _steps(theta, shares, mechanism, weight, _FIRST_STEPS if start is None else 1)
    change = _change(theta, shares, mechanism, weight)
    rounds = 0
    while change > TOLERANCE and rounds < _MOST_ROUNDS:
        rounds += 1
        theta = _closer(theta, shares, mechanism, weight, change)
        change = _change(theta, shares, mechanism, weight)
    return SmoothedMaximum(theta, change, rounds)


def sensitivity(theta: FloatArray, shares: FloatArray, mechanism: SquareWave, weight: float) -> FloatArray:
    """Return the derivative of the fixed point by the shares of the reports.

    theta = step(theta, phi), so d theta / d phi = (1 - J)^-1 d step / d phi.

    Parameters
    ----------
    theta : float64 array (d,), the fixed point.
    shares : float64 array (d + 2b,), phi, that it belongs to.
    mechanism : SquareWave of the reports.
    weight : w, in (0, 1/4].

    Returns
    -------
    float64 array (d, d + 2b).
    """
    by_shares = _smooth(theta[:, None] * mechanism.channel.T / report_rates(theta, mechanism), weight)
    return _solved(_one_minus_jacobian(theta, shares, mechanism, weight), by_shares)


def report_rates(theta: FloatArray, mechanism: SquareWave) -> FloatArray:
    """Return P(report y) of each cell y, channel theta, for frequencies in the last axis.

    Parameters
    ----------
    theta : float64 array (…, d).
    mechanism : SquareWave.

    Returns
    -------
    float64 array (…, d + 2b).
    """
    room = [(0, 0)] * (theta.ndim - 1) + [(mechanism.near - 1, mechanism.near - 1)]
    sums = _window_sums(np.pad(theta, room), mechanism)
    rates: FloatArray = mechanism.q * theta.sum(axis=-1, keepdims=True) + mechanism.contrast * sums
    return rates


def onto_truth(weights: FloatArray, mechanism: SquareWave) -> FloatArray:
    """Return the mean weight of a report of each true cell, weights channel, for weights in the last axis.

    Parameters
    ----------
    weights : float64 array (…, d + 2b).
    mechanism : SquareWave.

    Returns
    -------
    float64 array (…, d).
    """
    total = weights.sum(axis=-1, keepdims=True)
    means: FloatArray = mechanism.q * total + mechanism.contrast * _window_sums(weights, mechanism)
    return means


def information(weights: FloatArray, mechanism: SquareWave) -> FloatArray:
    """Return channel' diag(weights) channel: sums over cells near both of two true cells, one or none.

    Parameters
    ----------
    weights : float64 array (d + 2b,).
    mechanism : SquareWave.

    Returns
    -------
    float64 array (d, d).
    """
    q, contrast = mechanism.q, mechanism.contrast
    sums = np.append(0, weights.cumsum())
    cells = np.arange(mechanism.steps)
    first, last = np.minimum(cells[:, None], cells), np.maximum(cells[:, None], cells)
    near_both = np.where(last < first + mechanism.near, sums[first + mechanism.near] - sums[last], 0)
    near_one = _window_sums(weights, mechanism)
    found: FloatArray = contrast**2 * near_both
    found += q * contrast * (near_one[:, None] + near_one) + q**2 * sums[-1]
    return found


def _window_sums(values: FloatArray, mechanism: SquareWave) -> FloatArray:
    """Sums over 2b + 1 neighbours in the last axis."""
    sums = np.pad(values.cumsum(axis=-1), [(0, 0)] * (values.ndim - 1) + [(1, 0)])
    difference: FloatArray = sums[..., mechanism.near :] - sums[..., : -mechanism.near]
    return difference


def _steps(
    theta: FloatArray, shares: FloatArray, mechanism: SquareWave, weight: float, number: int
) -> FloatArray:
    for _ in range(number):
        theta = _smooth(theta * onto_truth(shares / report_rates(theta, mechanism), mechanism), weight)
    theta /= theta.sum()
    return theta


def _change(theta: FloatArray, shares: FloatArray, mechanism: SquareWave, weight: float) -> float:
    return float(np.abs(_steps(theta, shares, mechanism, weight, 1) - theta).sum())


def _closer(
    theta: FloatArray, shares: FloatArray, mechanism: SquareWave, weight: float, change: float
) -> FloatArray:
    """Take the longest part of a Newton step that comes closer, or 50 steps of EM.

    Half the step is often needed where the true distribution has edges.
    """
    direction = _newton(theta, shares, mechanism, weight)
    for part in _PARTS:
        newer: FloatArray = np.maximum(theta * np.exp(part * direction), _LEAST_FREQUENCY)
        newer /= newer.sum()
        if _change(newer, shares, mechanism, weight) < (1 - part / 10) * change:
            return newer
    return _steps(theta, shares, mechanism, weight, _FIRST_STEPS)


def _newton(theta: FloatArray, shares: FloatArray, mechanism: SquareWave, weight: float) -> FloatArray:
    """Return Newton's step of log theta, for log step(theta) = log theta: small ones change by factors."""
    theta = np.maximum(theta, _LEAST_FREQUENCY)  # EM may have come to 0 beside 10^12 reports of one cell
    after = _steps(theta, shares, mechanism, weight, 1)
    jacobian = np.eye(mechanism.steps) - _one_minus_jacobian(theta, shares, mechanism, weight)
    matrix = np.eye(mechanism.steps) - jacobian * theta / after[:, None]
    direction = _solved(matrix, np.log(after / theta))
    direction *= min(1, _LONGEST_STEP / max(float(np.abs(direction).max()), _LONGEST_STEP))
    return direction


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve the equations; where they are singular, in the least squares."""
    try:
        found = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        found = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return found.astype(np.float64, copy=False)


def _one_minus_jacobian(
    theta: FloatArray, shares: FloatArray, mechanism: SquareWave, weight: float
) -> FloatArray:
    """1 - J, where J = smooth(diag(g) - diag(theta) channel' diag(phi / rate^2) channel)."""
    rates = report_rates(theta, mechanism)
    gains = onto_truth(shares / rates, mechanism)
    jacobian = -theta[:, None] * information(shares / rates**2, mechanism)
    jacobian[np.diag_indices_from(jacobian)] += gains
    return np.eye(mechanism.steps) - _smooth(jacobian, weight)


def _smooth(values: FloatArray, weight: float) -> FloatArray:
    """Give each neighbour along the first axis this share, the ends repeated: sums stay."""
    around = np.concatenate([values[:1], values, values[-1:]])
    smoothed: FloatArray = values + weight * (around[:-2] - 2 * values + around[2:])
    return smoothed
