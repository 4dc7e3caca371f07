"""The bound of a sum of bounded errors that holds at every look, also where few reports make it skewed.

Let S be a sum of independent errors with mean 0, each at most b, and V its variance. For every l >= 0,

    E exp(l S - psi(l) V) <= 1,  psi(l) = (exp(b l) - 1 - b l) / b²  (Bennett; l² / 2 at b = 0),

and as terms are added it is a supermartingale, and so is any mean of these over several l. By Ville's
inequality the mean ever reaches 2 / alpha with probability at most alpha / 2; so does that of -S. For large
V / b² psi is l² / 2, and the bound that of Robbins' normal mixture.
"""

import math

import numpy as np

from deniable.estimators.arrays import FloatArray

#: The mixture: l sqrt(rho), and its weights, those of |N(0, 1)|. Any points and weights are valid: these are
#: dense enough for V up to a million rho.
STEP_OF_LOG = 0.15
POINTS = np.exp(np.arange(math.log(0.001), math.log(8), STEP_OF_LOG))
_DENSITY = POINTS * np.exp(-(POINTS**2) / 2)
LOG_WEIGHTS = np.log(_DENSITY / _DENSITY.sum())
#: The mixture is for a rho of at least (b / 4)², where exp(b l) is moderate for many points.
LEAST_STEPS = 4
NEWTON_STEPS = 5
BLOCK = 4096  # bounds computed at once
LARGEST_EXPONENT = 700.0


def bennett_bound(
    variance: FloatArray, rho: FloatArray, step: FloatArray, slope: FloatArray, alpha: float
) -> FloatArray:
    """Return s: the probability that S ever reaches it is at most alpha / 2.

    Parameters
    ----------
    variance : float64 array (...), V, > 0; inf makes the bound inf.
    rho : float64 array that broadcasts with it, > 0, the variance at which the bound is tuned.
    step : the same, b, >= 0, the most that one report's error is.
    slope : the same, by how much V is larger for each unit by which S is: the variance of a share of which
        an estimate is S too low.
    alpha : in (0, 1).

    Returns
    -------
    float64 array (...), > 0, in the units of S.

    Source: Howard et al., "Time-uniform Chernoff bounds via nonnegative supermartingales", Probability
    Surveys 17 (2020), table 3; Robbins (1970) for the mixture.
    """
    shape = np.broadcast_shapes(variance.shape, rho.shape, step.shape, slope.shape)
    rows = [np.broadcast_to(each, shape).ravel() for each in (variance, rho, step, slope)]
    found = np.full(rows[0].shape, np.inf)
    known = np.flatnonzero(np.isfinite(rows[0]) & np.isfinite(rows[1]))
    # Values with equal counts have equal bounds, and of many values most counts are equal.
    _, first, place = np.unique(rows[0][known], return_index=True, return_inverse=True)
    if not all(np.array_equal(row[known], row[known][first][place]) for row in rows):
        first, place = np.arange(len(known)), np.arange(len(known))
    chosen, bounds = [row[known][first] for row in rows], np.empty(len(first))
    for begin in range(0, len(first), BLOCK):
        block = [row[begin : begin + BLOCK] for row in chosen]
        bounds[begin : begin + BLOCK] = _bound(block[0], block[1], block[2], block[3], math.log(2 / alpha))
    found[known] = bounds[place]
    return found.reshape(shape)


def _bound(
    variance: FloatArray, rho: FloatArray, step: FloatArray, slope: FloatArray, needed: float
) -> FloatArray:
    """Solve mean exp(l s - psi(l) (V + slope s)) = exp(needed) for s; arrays (n,)."""
    rates = POINTS[:, None] / np.maximum(np.sqrt(rho), step / LEAST_STEPS)
    turned = np.minimum(step * rates, LARGEST_EXPONENT)
    at_least = np.maximum(turned, 1e-4)
    scale = np.where(turned < 1e-4, 0.5 + turned / 6, (np.expm1(turned) - turned) / at_least**2)
    psi = rates**2 * scale
    gain = rates - psi * slope
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        needs = needed - LOG_WEIGHTS[:, None] + psi * variance
        alone = np.where(gain > 0, needs / gain, np.inf)
    # The log of the mean is convex in s. Points that fall with s are left out, which lowers it; so each of
    # Newton's steps, from the bound of the best point alone, is still at or above the solution.
    kept = np.maximum(gain, 0)
    offset = np.where(gain > 0, needed - needs, -np.inf)
    found: FloatArray = alone.min(axis=0)
    for _ in range(NEWTON_STEPS):
        terms = kept * found + offset
        top = terms.max(axis=0)
        parts = np.exp(terms - top)
        total = parts.sum(axis=0)
        found = found - (top + np.log(total) - needed) * total / (parts * kept).sum(axis=0)
    return found
