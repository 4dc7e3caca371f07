"""The largest whole number whose figure is within a budget, with few evaluations of a dear figure."""

from collections.abc import Callable


def largest_within(figure: Callable[[int], float], budget: float, first: int, last: int) -> int:
    """Find the largest number in [first, last] whose figure is within the budget; `first` is taken to be.

    Numbers grow by half until one is beyond, so that no figure is asked for far more than the answer; then
    `last_before` tells where between the last two.

    Parameters
    ----------
    figure : never falls as the number grows.
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
    """Find the largest number whose figure is within the budget: that of good is, that of bad is not.

    Two steps in three interpolate between the figures of both ends, which is quick where they are smooth; the
    third one halves the range, whatever they are.

    Parameters
    ----------
    figure, budget : as of `largest_within`.
    good, bad : ends of the range, 0 <= good < bad; the figure of good is asked for unless good is 0, where it
        is 0.

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
