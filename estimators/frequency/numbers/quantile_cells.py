"""95 % intervals of quantiles, in cells: likelihood ratios over all distributions on the cells."""

import math
from collections.abc import Sequence

import numpy as np

from deniable.estimators.frequency.numbers.two_masses import PivotedLoss, QuadraticLoss, minimize_with_mass

#: Largest accepted root of a likelihood ratio, z. It would be 1.96 were no distribution excluded. But noise
#: can only raise empty cells, not lower them, so mass seems to be in a gap. Where a share next to a gap is
#: within noise of the level, 1.96 covered the quantile in 80 to 92 % of 300 simulations of two numbers alone;
#: 94 % of their roots, and of those of the .99 quantile of equal numbers, were below 2.7.
LARGEST_ROOT = 2.7
_FIRST_DISTANCE = 4  # cells
_EVERY = 8  # of these cells the first search begins with one
_GUESSES = 6  # after which intervals of cells are halved


def quantile_cells(loss: QuadraticLoss, levels: Sequence[float]) -> list[tuple[int, int]]:
    """Return the first and the last cell that may hold each quantile.

    If a quantile of level t is in cell x or before, the cells up to x hold at least t. That is rejected if
    the least loss of all such distributions exceeds the least loss of all by more than z^2 / 2, where z is
    LARGEST_ROOT. The last cell is found likewise. Nothing is assumed of the distribution but that no cell
    is negative.

    Without that condition the root of twice the excess would be a standard normal, as in any likelihood
    ratio. With it, it is mostly smaller, because noise that needs negative cells cannot be fitted, but larger
    next to gaps; and whole cells hold more than the test accepts. So most quantiles are covered more often
    than 95 %. The loss is that of a normal: reports must be many (`numbers.quantiles`).

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
    begin = np.arange(steps) % _EVERY == 0
    likeliest, free = minimize_with_mass(PivotedLoss(loss, begin), 0, 0.0, begin)
    pivoted = PivotedLoss(loss, free)
    below = np.append(0, likeliest.cumsum())
    found, distances = [], (_FIRST_DISTANCE, _FIRST_DISTANCE)
    for level in levels:
        # The likeliest distribution reaches the level in cell middle - 1.
        middle = int(np.clip(np.searchsorted(below, level), 1, steps))
        down = _Ratios(pivoted, loss.of(likeliest), level, middle, -1)
        up = _Ratios(pivoted, loss.of(likeliest), level, middle - 1, 1)
        first = middle - _reach(down, middle - 1, distances[0])
        last = middle - 1 + _reach(up, steps - middle, distances[1])
        distances = max(1, middle - first), max(1, last - middle + 1)
        found.append((first - 1, last))
    return found


class _Ratios:
    """Roots of likelihood ratios: the first `origin + way * n` cells hold exactly `level`."""

    def __init__(self, pivoted: PivotedLoss, least: float, level: float, origin: int, way: int) -> None:
        self._pivoted, self._least = pivoted, least
        self._level, self._origin, self._way = level, origin, way
        self._free = pivoted.base  # cells of the last minimum: the next one has nearly the same

    def root(self, number: int) -> float:
        """Return it for n = `number`, >= 0, over the largest; about linear in n, and ascending."""
        cells = self._origin + self._way * number
        found, self._free = minimize_with_mass(self._pivoted, cells, self._level, self._free)
        excess = max(0.0, self._pivoted.loss.of(found) - self._least)
        return math.sqrt(2 * excess) / LARGEST_ROOT


def _reach(ratios: _Ratios, most: int, guess: int) -> int:
    """Return the largest n in [0, most] with a root of at most the largest; 0 is accepted as it is.

    The next n is where a line through the nearest two roots reaches 1.
    """
    accepted, rejected, low, high = 0, most + 1, 0.0, math.inf
    tried = 0
    while rejected - accepted > 1:
        number = min(max(guess, accepted + 1), rejected - 1)
        root = ratios.root(number)
        tried += 1
        if root <= 1:
            accepted, low = number, root
        else:
            rejected, high = number, root
        if tried >= _GUESSES:
            guess = (accepted + rejected) // 2
        elif math.isinf(high):
            guess = round(accepted / max(low, 0.25)) + 1
        else:
            guess = accepted + round((1 - low) / (high - low) * (rejected - accepted))
    return accepted
