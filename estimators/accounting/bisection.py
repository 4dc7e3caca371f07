"""The largest integer whose cost is within a budget, found with few evaluations of an expensive cost."""

from collections.abc import Callable


def largest_within(figure: Callable[[int], float], budget: float, first: int, last: int) -> int:
    """Find the largest number in [first, last] whose figure is within the budget; `first` is assumed to be.

    Grows the number by half until it exceeds the budget, so that no figure far above the answer is evaluated;
    `last_before` then searches between the last two.

    Parameters
    ----------
    figure : non-decreasing function of the number.
    budget : largest figure allowed.
    first, last : ends of the range, 0 <= first <= last.

    Returns
    -------
    Number in [first, last].
    """
    good, bad = first, first + 1
    while bad <= last and figure(bad) <= budget:
        good, bad = bad, bad + max(1, bad // 2)
    if bad > last:
        if good == last or figure(last) <= budget:
            return last
        bad = last
    return last_before(figure, budget, good, bad)


def last_before(figure: Callable[[int], float], budget: float, good: int, bad: int) -> int:
    """Find the largest number whose figure is within the budget, given one that is and one that is not.

    Two steps in three interpolate linearly between the ends, which is fast for a smooth figure; the third
    halves the range, which bounds the number of steps for any figure.

    Parameters
    ----------
    figure : non-decreasing function of the number.
    budget : largest figure allowed.
    good : within the budget, >= 0; at 0 the figure is taken as 0 and not evaluated.
    bad : not within the budget, > good.

    Returns
    -------
    Number in [good, bad).
    """
    if bad - good == 1:
        return good
    at_good, at_bad = figure(good) if good else 0.0, figure(bad)
    steps = 0
    while bad - good > 1:
        steps += 1
        share = (budget - at_good) / (at_bad - at_good) if steps % 3 else 0.5
        middle = min(max(good + round(share * (bad - good)), good + 1), bad - 1)
        at_middle = figure(middle)
        if at_middle <= budget:
            good, at_good = middle, at_middle
        else:
            bad, at_bad = middle, at_middle
    return good
