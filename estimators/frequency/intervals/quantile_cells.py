"""95 % intervals of quantiles, in cells: likelihood ratios over all distributions on the cells."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from estimators.frequency.intervals.two_masses import QuadraticLoss, minimize_with_mass

_FIRST_DISTANCE = 4  # cells
#: Largest accepted root of a likelihood ratio.
LARGEST_ROOT = 1.6448536269514722
_EVERY = 8  # of these cells the first search begins with one
_GUESSES = 6  # after which intervals of cells are halved


def quantile_cells(loss: QuadraticLoss, levels: Sequence[float]) -> list[tuple[int, int]]:
    """Return the first and the last cell that may hold each quantile.

    If a quantile of level t is in cell x or before, the cells up to x hold at least t. That is rejected if
    the least loss of all such distributions exceeds the least loss of all by more than 1.645^2 / 2. The last
    cell is found likewise. Nothing is assumed of the distribution but that no cell is negative.

    Without that condition the root of twice the excess would be a standard normal, as in any likelihood
    ratio, and 1.645 would leave out 5 % at each end. With it the ratio is smaller, because noise that needs
    negative cells cannot be fitted; and whole cells hold more than the test accepts. Where neither matters,
    because cells are large and reports many, at most one end of an interval is near the truth.

    Parameters
    ----------
    loss : half the chi-square of the reports, of d cells, but for a constant.
    levels : of the quantiles, ascending, in (0, 1).

    Returns
    -------
    Pairs of cells, 0 <= first <= last < d.

    Source: Patil, Kuusela, Hobbs, SIAM/ASA J. Uncertain. Quantif. 10 (2022), for likelihood ratios under
    constraints as bounds of one functional.
    """
    steps = len(loss.linear)
    likeliest, free = minimize_with_mass(loss, 0, 0.0, np.arange(steps) % _EVERY == 0)
    below = np.append(0, likeliest.cumsum())
    found, distances = [], (_FIRST_DISTANCE, _FIRST_DISTANCE)
    for level in levels:
        # The likeliest distribution reaches the level in cell middle - 1.
        middle = int(np.clip(np.searchsorted(below, level), 1, steps))
        down = _Ratios(loss, loss.of(likeliest), free, level, middle, -1)
        up = _Ratios(loss, loss.of(likeliest), free, level, middle - 1, 1)
        first = middle - _reach(down, middle - 1, distances[0])
        last = middle - 1 + _reach(up, steps - middle, distances[1])
        distances = max(1, middle - first), max(1, last - middle + 1)
        found.append((first - 1, last))
    return found


class _Ratios:
    """Roots of likelihood ratios: the first `origin + way * n` cells hold exactly `level`."""

    def __init__(
        self, loss: QuadraticLoss, least: float, free: NDArray[np.bool_], level: float, origin: int, way: int
    ) -> None:
        self._loss, self._least = loss, least
        self._level, self._origin, self._way = level, origin, way
        self._free = free  # cells of the last minimum: the next one has nearly the same

    def root(self, number: int) -> float:
        """Return it for n = `number`, >= 0; about linear in n, and ascending."""
        cells = self._origin + self._way * number
        found, self._free = minimize_with_mass(self._loss, cells, self._level, self._free)
        return math.sqrt(2 * max(0.0, self._loss.of(found) - self._least))


def _reach(ratios: _Ratios, most: int, guess: int) -> int:
    """Return the largest n in [0, most] with a root of at most 1.645; 0 is accepted as it is.

    The next n is where a line through the nearest two roots reaches 1.645.
    """
    accepted, rejected, low, high = 0, most + 1, 0.0, math.inf
    tried = 0
    while rejected - accepted > 1:
        number = min(max(guess, accepted + 1), rejected - 1)
        root = ratios.root(number)
        tried += 1
        if root <= LARGEST_ROOT:
            accepted, low = number, root
        else:
            rejected, high = number, root
        if tried >= _GUESSES:
            guess = (accepted + rejected) // 2
        elif math.isinf(high):
            guess = round(accepted * LARGEST_ROOT / max(low, 0.5)) + 1
        else:
            guess = accepted + round((LARGEST_ROOT - low) / (high - low) * (rejected - accepted))
    return accepted
