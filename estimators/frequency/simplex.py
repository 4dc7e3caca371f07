"""Projection and quadratic minimization on the probability simplex {theta >= 0, sum theta = 1}."""

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray

# Multipliers below this fraction of the largest linear term are rounding errors.
_MULTIPLIER_TOLERANCE = 1e-13
# Gains below this fraction of the unbounded minimum's gain are rounding errors.
_LEAST_GAIN = 1e-9


def project_to_simplex(point: FloatArray) -> FloatArray:
    """Find the nearest distribution: subtract a constant from all entries and set negative ones to 0.

    Parameters
    ----------
    point : float64 array (n,), n >= 1.

    Returns
    -------
    float64 array (n,), >= 0, summing to 1.

    Source: Held, Wolfe, Crowder, "Validation of subgradient optimization", Math. Programming 6 (1974).
    """
    descending = np.sort(point)[::-1]
    constants = (np.cumsum(descending) - 1) / np.arange(1, len(point) + 1)
    constant = constants[np.flatnonzero(descending > constants)[-1]]
    nearest: FloatArray = np.maximum(point - constant, 0)
    return nearest


def minimize_quadratic(hessian: FloatArray, linear: FloatArray, start: FloatArray) -> FloatArray:
    """Minimize theta' H theta / 2 - c' theta on the simplex by an active-set method.

    Each pass first minimizes over the free entries, with the others 0. If that minimum has negative entries,
    its projection onto the simplex is taken where it improves the value beyond rounding; otherwise the step
    ends at the first entry to reach 0. Every pass improves the value or shrinks the free set, so no free set
    is solved twice.

    Parameters
    ----------
    hessian : float64 array (n, n), H, symmetric, positive definite but for at most one all-zero row.
    linear : float64 array (n,), c.
    start : float64 array (n,), on the simplex.

    Returns
    -------
    float64 array (n,), on the simplex.
    """
    theta, free = start, start > 0
    tolerance = _MULTIPLIER_TOLERANCE * np.abs(linear).max()
    for _ in range(10 * len(start)):
        target, level = _minimum_on_plane(hessian, linear, free)
        if target.min() >= 0:
            theta = target
            entering = ~free & (linear - hessian @ theta - level > tolerance)
            if not entering.any():
                break
            free = free | entering
        else:
            theta, free = _step(hessian, linear, theta, target, free)
    return theta


def _minimum_on_plane(
    hessian: FloatArray, linear: FloatArray, free: NDArray[np.bool_]
) -> tuple[FloatArray, float]:
    """Minimize over {sum theta = 1, theta = 0 where not free}; return it and the sum's multiplier."""
    size = int(free.sum())
    system = np.ones((size + 1, size + 1))
    system[:size, :size] = hessian[np.ix_(free, free)]
    system[size, size] = 0
    solution = np.linalg.solve(system, np.append(linear[free], 1.0))
    target = np.zeros(len(linear))
    target[free] = solution[:size]
    return target, float(solution[size])


def _step(
    hessian: FloatArray, linear: FloatArray, theta: FloatArray, target: FloatArray, free: NDArray[np.bool_]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Step from theta towards a target with negative entries; return the new theta and the free entries."""

    def value(point: FloatArray) -> float:
        return float(point @ (hessian @ point) / 2 - linear @ point)

    projected = np.zeros(len(theta))
    projected[free] = project_to_simplex(target[free])
    if value(theta) - value(projected) > _LEAST_GAIN * (value(theta) - value(target)):
        return projected, projected > 0
    negative = target < 0
    fractions = np.full(len(theta), np.inf)
    fractions[negative] = theta[negative] / (theta[negative] - target[negative])
    blocked = fractions <= fractions.min()
    stopped = theta + fractions.min() * (target - theta)
    stopped[blocked] = 0
    return np.maximum(stopped, 0), free & ~blocked
