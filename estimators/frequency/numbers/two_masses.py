"""Quadratic minimization over distributions on cells of which the first ones hold a given mass."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray

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


class PivotedLoss:
    """A loss solved for a set of free cells, the base: for sets like it a few equations then remain.

    Let slope = H theta - c + u sums, with multipliers u of the sums. At the minimum for a set of free cells,
    these have slope 0, and all others theta 0. Solved for the base, theta of its cells and slope of the
    others are linear in slope of its cells, theta of the others, and u. Of these, all cells are known to have
    0 but those where a set differs from the base.

    Parameters
    ----------
    loss : of d cells.
    base : bool array (d,), not all False.

    Source: Tsatsomeros, "Principal pivot transforms: properties and applications" (Linear Algebra Appl. 307,
    2000).
    """

    def __init__(self, loss: QuadraticLoss, base: NDArray[np.bool_]) -> None:
        self.loss, self.base = loss, base
        steps, inside = len(base), base[:, None]
        solved = _pivoted(loss.hessian, base)
        constant = solved @ np.where(base, loss.linear, 0) - np.where(base, 0, loss.linear)
        # Row steps + n gives the sum of theta over the first n cells, column steps + n is of its multiplier.
        # The transpose differs by the sign between a cell of the base and anything else, and not else.
        self._signs = np.where(np.append(base, np.zeros(steps + 1, np.bool_)), 1.0, -1.0)
        self._rows = np.zeros((2 * steps + 1, 2 * steps + 1))
        self._rows[:steps, :steps] = solved
        np.cumsum(np.where(inside, solved, np.eye(steps)), axis=0, out=self._rows[steps + 1 :, :steps])
        across = np.where(inside, -1, 1) * self._rows[steps:, :steps].T
        self._rows[:steps, steps:] = across
        np.cumsum(np.where(inside, across, 0), axis=0, out=self._rows[steps + 1 :, steps:])
        self._constant = np.concatenate([constant, [0], np.where(base, constant, 0).cumsum()])

    def minimum_on_planes(self, cells: int, mass: float, free: NDArray[np.bool_]) -> FloatArray:
        """Minimize over theta that is 0 where not free, and whose first cells sum to `mass`, all to 1.

        Parameters
        ----------
        cells : number of first cells; at 0 and d the only condition is that all sum to 1.
        mass : of these.
        free : bool array (d,). Neither side is without free cells.

        Returns
        -------
        float64 array (d,): theta of the free cells, the slope of the loss at the others.
        """
        steps = len(free)
        changed = np.flatnonzero(free != self.base)
        planes = [steps + cells, 2 * steps] if 0 < cells < steps else [2 * steps]
        chosen = np.append(changed, planes)
        wanted = -self._constant[chosen]
        wanted[len(changed) :] += [mass, 1.0][-len(planes) :]
        rows, signs = self._rows[chosen], self._signs
        solution = np.linalg.solve(rows[:, chosen], wanted)
        effect = signs[:steps] * ((signs[chosen] * solution) @ rows[:, :steps])
        found: FloatArray = self._constant[:steps] + effect
        found[changed] = solution[: len(changed)]
        return found


def minimize_with_mass(
    pivoted: PivotedLoss, cells: int, mass: float, free: NDArray[np.bool_]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Minimize the loss over theta >= 0 whose first cells sum to `mass`, and the others to 1 - `mass`.

    By pivoting: with some cells free and all others 0, the minimum is that of linear equations. Free cells
    that are negative there are fixed, and fixed ones that would lower the loss are freed: all at once while
    they become fewer, else only the last of them, which ends, as no set comes twice (Murty's rule).

    Parameters
    ----------
    pivoted : the loss of d cells.
    cells : number of first cells, in [0, d].
    mass : of these, in (0, 1); any number if `cells` is 0 or d, since one side then holds everything.
    free : bool array (d,), cells to begin with, such as those of a similar minimum.

    Returns
    -------
    float64 array (d,), the minimum, and bool array (d,), its free cells.

    Source: Kim, Park, "Fast nonnegative matrix factorization: an active-set-like method and comparisons"
    (SIAM J. Sci. Comput. 33, 2011), section 4; Murty, Math. Programming 7 (1974).
    """
    tolerance = _MULTIPLIER_TOLERANCE * float(np.abs(pivoted.loss.linear).max())
    fewest, chances = len(free) + 1, _CHANCES
    for _ in range(_STEPS_PER_CELL * len(free)):
        free = _with_all_sides(cells, free)
        found = pivoted.minimum_on_planes(cells, mass, free)
        wrong = np.flatnonzero(found < np.where(free, 0, -tolerance))
        if wrong.size == 0:
            break
        fewest, chances = (wrong.size, _CHANCES) if wrong.size < fewest else (fewest, chances - 1)
        changed = wrong if chances >= 0 else wrong[-1:]
        free[changed] ^= True
    return np.where(free, np.maximum(found, 0), 0), free


def _with_all_sides(cells: int, free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Free a whole side if none of its cells is."""
    free = free.copy()
    for side in (free[:cells], free[cells:]):
        if not side.any():
            side[:] = True
    return free


def _pivoted(hessian: FloatArray, base: NDArray[np.bool_]) -> FloatArray:
    """Exchange theta and H theta for the cells of the base, in the equations that give H theta."""
    inside, outside = np.flatnonzero(base), np.flatnonzero(~base)
    ridged = hessian + np.diag(_RIDGE * hessian.diagonal())
    inverse = np.linalg.inv(ridged[np.ix_(inside, inside)])
    across = hessian[np.ix_(outside, inside)]
    product = across @ inverse
    ridged[np.ix_(inside, inside)] = inverse
    ridged[np.ix_(outside, inside)] = product
    ridged[np.ix_(inside, outside)] = -product.T
    ridged[np.ix_(outside, outside)] -= product @ across.T
    return ridged
