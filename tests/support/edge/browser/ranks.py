"""Whether the order in which uploads left shows that of their events: a rank statistic, exactly."""

import numpy as np


def order_tail(order: list[int]) -> float:
    """Return how likely a random order has as few, or as many, inversions as this one, or more so.

    Two-sided, and exact: inversions are a sum of independent uniform numbers, of 0 to i - 1 for i to n.
    """
    numbers = np.array(order)
    assert len(set(order)) == len(order) > 1
    inversions = int(np.triu(numbers[:, np.newaxis] > numbers, 1).sum())
    chances = np.ones(1)
    for count in range(1, len(order) + 1):
        chances = np.convolve(chances, np.full(count, 1 / count))
    sides = chances[: inversions + 1].sum(), chances[inversions:].sum()
    return min(1.0, 2 * float(min(sides)))
