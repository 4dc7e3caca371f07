"""Quadratic minimization over distributions on cells of which the first ones hold a given mass."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray

# Multipliers below this fraction of the largest linear term are rounding errors.
_MULTIPLIER_TOLERANCE = 1e-11
# Added to the diagonal, relatively: neighbouring cells have nearly equal columns.
_RIDGE = 1e-12
_CHANCES = 3
_STEPS_PER_CELL = 8


@dataclass(frozen=True, eq=False)
class QuadraticLoss:
    """The loss theta' H theta / 2 - c' theta of a distribution theta.

    Parameters
    ----------
    hessian : float64 array (d, d), H, symmetric, positive semidefinite.
    linear : float64 array (d,), c.
    """

    hessian: FloatArray
    linear: FloatArray

    def of(self, theta: FloatArray) -> float:
        """Return the loss of theta, float64 array (d,)."""
        return float(theta @ (self.hessian @ theta) / 2 - self.linear @ theta)


def minimize_with_mass(
    loss: QuadraticLoss, cells: int, mass: float, free: NDArray[np.bool_]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Minimize the loss over theta >= 0 whose first cells sum to `mass`, and the others to 1 - `mass`.

    By pivoting: with some cells free and all others 0, the minimum is that of linear equations. Free cells
    that are negative there are fixed, and fixed ones that would lower the loss are freed: all at once while
    they become fewer, else only the last of them, which ends, as no set comes twice (Murty's rule).

    Parameters
    ----------
    loss : of d cells.
    cells : number of first cells, in [0, d].
    mass : of these, in (0, 1); any number if `cells` is 0 or d, since one side then holds everything.
    free : bool array (d,), cells to begin with, such as those of a similar minimum.

    Returns
    -------
    float64 array (d,), the minimum, and bool array (d,), its free cells.

    Source: Kim, Park, "Fast nonnegative matrix factorization: an active-set-like method and comparisons"
    (SIAM J. Sci. Comput. 33, 2011), section 4; Murty, Math. Programming 7 (1974).
    """
    first = np.arange(len(free)) < cells
    sums = np.array([side for side in (first, ~first) if side.any()], dtype=np.float64)
    masses = np.array([mass, 1 - mass]) if len(sums) == 2 else np.ones(1)
    tolerance = _MULTIPLIER_TOLERANCE * float(np.abs(loss.linear).max())
    fewest, chances = len(free) + 1, _CHANCES
    for _ in range(_STEPS_PER_CELL * len(free)):
        free = _with_all_sides(sums, free)
        theta, gains = _minimum_on_planes(loss, sums, masses, free)
        wrong = np.flatnonzero(np.where(free, theta < 0, gains > tolerance))
        if wrong.size == 0:
            break
        fewest, chances = (wrong.size, _CHANCES) if wrong.size < fewest else (fewest, chances - 1)
        free = free.copy()
        changed = wrong if chances >= 0 else wrong[-1:]
        free[changed] ^= True
    return np.maximum(theta, 0), free


def _with_all_sides(sums: FloatArray, free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Free a whole side if none of its cells is."""
    empty = ~(sums @ free > 0)
    return free | (sums[empty].sum(axis=0) > 0) if empty.any() else free


def _minimum_on_planes(
    loss: QuadraticLoss, sums: FloatArray, masses: FloatArray, free: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Minimize over {sums theta = masses, theta = 0 where not free}; return it, and what each cell gains."""
    cells, planes = np.flatnonzero(free), len(sums)
    size = len(cells)
    rows = loss.hessian[cells]
    system = np.zeros((size + planes, size + planes))
    system[:size, :size] = rows[:, cells]
    system[range(size), range(size)] *= 1 + _RIDGE
    system[size:, :size] = sums[:, cells]
    system[:size, size:] = sums[:, cells].T
    solution = np.linalg.solve(system, np.append(loss.linear[cells], masses))
    theta = np.zeros(len(free))
    theta[cells] = solution[:size]
    gains: FloatArray = loss.linear - solution[:size] @ rows - solution[size:] @ sums
    return theta, gains
