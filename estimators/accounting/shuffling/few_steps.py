"""The mean of the positive part of a sum of few independent steps, by all numbers of each size."""

from fractions import Fraction
from math import comb

import numpy as np

from deniable.estimators.accounting.shuffling.line_integral import Enclosure
from deniable.estimators.accounting.shuffling.steps import FIGURE, Steps
from deniable.estimators.mechanisms.directed_rounding import UNIT

#: Steps at most, and combinations times sizes: a few milliseconds.
MOST_STEPS, MOST_ADDED = 100, 150_000
#: Above what numbers below the least float can add: 10^5 terms of 2^-1022 times less than 10^90.
LOST = 1e-200


def are_few(sizes: int, number: int) -> bool:
    """Return whether sums of this many steps, of so many sizes beside 0, are added up one by one."""
    return number <= MOST_STEPS and comb(number + sizes, sizes) * sizes <= MOST_ADDED


def positive_part_of_few(steps: Steps, still: Fraction) -> Enclosure:
    """Enclose E[S_+] where `are_few`.

    Each probability is a product of at most n masses and `still`, each within FIGURE, and of binomials, so
    its relative error is below (n + 2 m + 2) 2 FIGURE; a sum's is below 4 m FIGURE of the sum of its moduli.

    Parameters
    ----------
    steps : of the sum S.
    still : exact probability that a step is 0.
    """
    number, sizes = steps.number, len(steps.sizes)
    combs = [[float(comb(n, j)) for j in range(number + 1)] for n in range(number + 1)]
    ways = np.array(combs)
    left, value, moduli, mass = np.array([number]), np.zeros(1), np.zeros(1), np.ones(1)
    powers = np.arange(number + 1)
    with np.errstate(under="ignore"):
        for size, share in zip(steps.sizes.tolist(), steps.mass.tolist(), strict=True):
            place = np.repeat(np.arange(len(left)), left + 1)
            starts = np.cumsum(left + 1) - (left + 1)
            taken = np.arange(len(place)) - starts[place]
            mass = mass[place] * ways[left[place], taken] * (share**powers)[taken]
            value, moduli = value[place] + taken * size, moduli[place] + taken * abs(size)
            left = left[place] - taken
        mass = mass * (float(still) ** powers)[left]
        error = 4 * sizes * FIGURE * moduli
        low = float(mass @ np.maximum(value - error, 0))
        high = float(mass @ np.maximum(value + error, 0))
    relative = (number + 2 * sizes + 2) * 2 * FIGURE + 4 * len(mass) * UNIT
    return Enclosure(max(low * (1 - relative) - LOST, 0.0), high * (1 + relative) + LOST)
