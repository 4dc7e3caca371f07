"""The root of a monotone function, found with few evaluations."""

from collections.abc import Callable


def root(function: Callable[[float], float], low: float, high: float, width: float) -> float:
    """Find about where a monotone function is 0, by the Illinois variant of false position.

    Parameters
    ----------
    function : of opposite signs at both ends, or 0 at one.
    low, high : ends, low < high.
    width : the search ends when the ends are closer, or a step is shorter, > 0.

    Returns
    -------
    A number in [low, high].

    Source: Dowell, Jarratt, "A modified regula falsi method" (BIT, 1971).
    """
    at_low, at_high = function(low), function(high)
    middle = low if at_low == 0 else high
    side = 0
    while at_low * at_high < 0 and high - low > width:
        former, middle = middle, (low * at_high - high * at_low) / (at_high - at_low)
        at_middle = function(middle)
        if at_middle == 0 or abs(middle - former) < width / 2:
            break
        if at_middle * at_high > 0:
            high, at_high = middle, at_middle
            at_low *= 0.5 if side < 0 else 1.0
            side = -1
        else:
            low, at_low = middle, at_middle
            at_high *= 0.5 if side > 0 else 1.0
            side = 1
    return middle
