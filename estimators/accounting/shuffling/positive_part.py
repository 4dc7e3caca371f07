"""The mean of the positive part of a sum of many independent steps, enclosed from both sides.

The number of steps costs nothing, and no lattice is needed: see `line_integral`.
"""

import math
from collections.abc import Callable

from deniable.estimators.accounting.shuffling.line_integral import Enclosure, LineIntegral
from deniable.estimators.accounting.shuffling.steps import Steps

#: First w times the tilt, and the last point times w.
FIRST_WIDTH, BAND = 0.008, 8
#: Relative difference of the ends, unless given, and the most points of a grid.
WANTED = 3e-4
MOST_POINTS = 1 << 19
#: Points times sizes that a search may evaluate beyond its first grids: about half a second.
MOST_WORK = 1_500_000
#: Smaller figures are not enclosed more closely, because floats end there.
LEAST = 1e-290


class SearchWork:
    """What a search may still spend on closer enclosures: counted, so that figures are the same anywhere.

    Parameters
    ----------
    left : points times sizes, > 0.
    """

    def __init__(self, left: int = MOST_WORK) -> None:
        self.left = left

    def points(self, sizes: int) -> int:
        """Return the most points of the next grid: an eighth, so that no evaluation takes all."""
        return min(self.left // 8 // sizes, MOST_POINTS)


def positive_part(
    steps: Steps, negligible: float = LEAST, wanted: float = WANTED, work: SearchWork | None = None
) -> Enclosure:
    """Enclose E[S_+].

    Parameters
    ----------
    steps : of the sum S.
    negligible : a figure below it need not be enclosed so closely, >= 1e-290.
    wanted : relative difference of the ends, > 0, which is reached unless MOST_POINTS do not suffice.
    work : what is left for grids after the first one, and is spent here; None for any number of grids.
    """
    if not steps.largest > 0:
        return Enclosure(0.0, 0.0)
    tilt = _saddle(steps)
    # s_+ <= exp(a s - 1) / a
    if steps.log_moment_above(tilt) - math.log(tilt) < math.log(negligible):
        return Enclosure(0.0, negligible)
    period, width = _first_period(steps, tilt), FIRST_WIDTH / tilt
    best = Enclosure(0.0, math.inf)
    while True:
        points = math.ceil(period * BAND / width / (2 * math.pi))
        most = MOST_POINTS if work is None else work.points(len(steps.sizes))
        if points > most and math.isfinite(best.high):
            return best
        if work is not None:
            work.left = max(work.left - points * len(steps.sizes), 0)
        (low, high), is_too_short = LineIntegral(steps, tilt, period, width, points).enclosure()
        best = Enclosure(max(low, best.low), min(high, best.high))
        gap = (best.high - best.low) / best.high
        if gap <= wanted or best.high < negligible:
            return best
        if is_too_short:
            period *= 1.5
        else:
            width /= min(max(1.2 * math.sqrt(gap / wanted), 2.0), 30.0)


def _saddle(steps: Steps) -> float:
    """Return about the tilt at which E[exp(tilt S)] / tilt^2 is least; any tilt > 0 gives valid bounds."""

    def slope(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        return tilt * steps.slope(tilt) - 2

    last = math.log(500 / steps.largest)
    if slope(last) <= 0:
        return math.exp(last)
    return math.exp(_halved(slope, last - 90, last))


def _halved(slope: Callable[[float], float], low: float, high: float) -> float:
    """Return about where an increasing function, which may be very steep, is 0."""
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return (low + high) / 2


def _first_period(steps: Steps, tilt: float) -> float:
    """Return a period after which what is added is about 1e-8 of E[S_+], by the normal approximation."""
    variance = steps.variance(tilt) + 2 / tilt**2
    log_small = -steps.log_moment(tilt) + 0.5 * math.log(2 * math.pi * variance * tilt**2)
    return (20 + max(0.0, log_small)) / tilt
