"""95 % intervals of quantiles, in cells, from counts of reports beyond a cell, however few they are.

If a quantile is in cell x or before, at least k numbers are. The reports at or beyond cell c are then a sum
of independent lies and truths, each the likelier the larger the number. So they are at most, in distribution,
those of k numbers in x and all others in the last cell: the sum of two binomials. Nothing is approximated but
the tail of that sum.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.intervals.saddlepoint import Tilted, log_of_trial, roots, tilted_trial
from deniable.estimators.mechanisms.square_wave import SquareWave

# Of each side: where the approximate tail is at most this, the exact one was at most .0252.
_ALPHA = 0.024
_HALVINGS, _NEWTON_STEPS = 30, 2
_LARGEST_TILT = 60.0
_LEAST_VARIANCE = 1e-300
# Of both roots: below, their difference is rounding.
_CENTRAL = 1e-4

# Trials and probability of both binomials.
_Parts = tuple[tuple[NDArray[np.int64], FloatArray], tuple[NDArray[np.int64], FloatArray]]


def rank_of(level: float, reports: int) -> int:
    """Return k: the quantile of this level is between the k-th and the next of the ascending numbers.

    That is so of the inverse of their distribution function, and of numpy's linear interpolation; 1 <= k < N
    unless N is 1.

    Parameters
    ----------
    level : in (0, 1).
    reports : N, >= 1.
    """
    return math.floor((reports - 1) * level) + 1


def binomial_cells(
    counts: FloatArray, mechanism: SquareWave, levels: Sequence[float]
) -> list[tuple[int, int]]:
    """Return the first and the last cell that may hold each quantile.

    For the first, a report counts as beyond x if it is past all cells near x; for the last, from the first
    cell near x on. So only far reports of the k numbers count. Where numbers are dense, the interval extends
    by up to a near band of 2b + 1 cells at each side; at b = 0 nothing is lost.

    Parameters
    ----------
    counts : float64 array (d + 2b,), reports per reported cell, not all 0; expected ones need not be whole.
    mechanism : SquareWave of the reports.
    levels : of the quantiles, in (0, 1).

    Returns
    -------
    Pairs of cells, 0 <= first, last < d, in order unless the counts contradict the channel.

    Source: Shaked, Shanthikumar, "Stochastic Orders" (2007), theorem 1.A.3, for sums of Bernoulli variables.
    """
    reports = round(float(counts.sum()))
    ranks = np.array([rank_of(level, reports) for level in levels])[:, None]
    first = _first_accepted(counts, mechanism, ranks)
    last = mechanism.steps - 1 - _first_accepted(counts[::-1], mechanism, reports - ranks)
    return [(low, high) for low, high in zip(first.tolist(), last.tolist(), strict=True)]


def _first_accepted(counts: FloatArray, mechanism: SquareWave, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first cell x for which "at least k numbers are in x or before" is not rejected, int64 (m,).

    The last cell holds all numbers with those before, so it is accepted without a test.
    """
    reports, cells = round(float(counts.sum())), np.arange(mechanism.steps - 1)
    begin = cells + mechanism.near
    beyond = reports - np.append(0, counts.cumsum())[begin]
    outside: FloatArray = (mechanism.width - begin).astype(np.float64)
    outside *= mechanism.q
    # Of a number in the last cell, near cells are the last 2b + 1, of which those from `begin` on count.
    near: FloatArray = np.minimum(mechanism.near, mechanism.width - begin).astype(np.float64)
    near *= mechanism.contrast
    tail = tail_of_two(beyond, (ranks, outside), (reports - ranks, outside + near))
    accepted = np.column_stack([tail > _ALPHA, np.ones(len(ranks), np.bool_)])
    found: NDArray[np.int64] = accepted.argmax(axis=1)
    return found


def tail_of_two(
    count: FloatArray,
    one: tuple[NDArray[np.int64], FloatArray],
    other: tuple[NDArray[np.int64], FloatArray],
) -> FloatArray:
    """P(X + Y >= count) of two independent binomials, by the saddlepoint.

    Where it is at most .024, exact sums of up to 120 trials were at most .0252; it becomes exact as the
    variance grows.

    Parameters
    ----------
    count : float64 array, in [0, n1 + n2], whole but for expected counts.
    one, other : trials, int64 array, >= 0, not both 0, and probability, float64 array in (0, 1). All
        broadcast.

    Returns
    -------
    float64 array, in [0, 1].

    Source: Lugannani, Rice, Adv. Appl. Probab. 12 (1980), with the roots of `saddlepoint`.
    """
    point, parts = count - 0.5, (one, other)
    tilt = _tilt_of(point, parts)
    exponent = tilt * point
    for trials, share in parts:
        exponent = exponent - trials * log_of_trial(tilt, share)
    w, u = roots(tilt, exponent, _tilted(tilt, parts).variance)
    central = np.minimum(np.abs(w), np.abs(u)) < _CENTRAL
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = np.where(central, 0, 1 / u - 1 / w)
    tail = ndtr(-w) + np.exp(-(w**2) / 2) / math.sqrt(2 * math.pi) * correction
    return np.where(count <= 0, 1.0, np.clip(tail, 0, 1))


def _tilt_of(point: FloatArray, parts: _Parts) -> FloatArray:
    """Return the saddlepoint at which the tilted mean is the point: halvings, then Newton for all digits."""
    shape = np.broadcast_shapes(point.shape, *(array.shape for part in parts for array in part))
    low, high = np.full(shape, -_LARGEST_TILT), np.full(shape, _LARGEST_TILT)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_below = _tilted(middle, parts).mean < point
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    tilt: FloatArray = (low + high) / 2
    for _ in range(_NEWTON_STEPS):
        mean, variance = _tilted(tilt, parts)
        tilt = np.clip(tilt + (point - mean) / np.maximum(variance, _LEAST_VARIANCE), low, high)
    return tilt


def _tilted(tilt: FloatArray, parts: _Parts) -> Tilted:
    """Return mean and variance of the sum."""
    (one, first), (other, second) = ((trials, tilted_trial(tilt, share)) for trials, share in parts)
    mean: FloatArray = one * first.mean + other * second.mean
    return Tilted(mean, one * first.variance + other * second.variance)
