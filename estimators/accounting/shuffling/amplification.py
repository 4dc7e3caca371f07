"""Epsilon of one report among n that were shuffled together, enclosed from both sides."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial

import numpy as np

from deniable.estimators.accounting.shuffling.blanket import Blanket
from deniable.estimators.accounting.shuffling.few_steps import are_few, positive_part_of_few
from deniable.estimators.accounting.shuffling.line_integral import Enclosure
from deniable.estimators.accounting.shuffling.positive_part import WANTED, SearchWork, positive_part
from deniable.estimators.accounting.shuffling.steps import Steps
from deniable.estimators.mechanisms.directed_rounding import UNIT, exp_below
from deniable.estimators.mechanisms.traits import ReportAtom

LARGEST_SHUFFLED = 10**12
LEAST_DELTA = 1e-100
LEAST_EPSILON = 1e-12
SMALLEST = Fraction(1, 1 << 80)
#: Relative difference of the ends of epsilon beyond which those of delta are sought closer.
WIDEST = 2e-4
#: Relative gain below which nothing counts as gained: to enclose delta there takes long.
LEAST_GAIN = 9e-4


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


def shuffled_delta(blanket: Blanket, reports: int, epsilon: float) -> Enclosure:
    """Enclose the blanket's delta at an epsilon, of one report among n shuffled ones.

    Parameters
    ----------
    blanket : of the randomizer of all reports.
    reports : n, shuffled together, in [1, 10^12].
    epsilon : nats, in [0, 16].

    Returns
    -------
    Enclosure: `high` is a valid delta; the bound of the blanket is not below `low`.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: see `blanket`.
    """
    check_reports(reports)
    if not 0 <= epsilon <= 16:
        raise ValueError(f"epsilon must be in [0, 16], got {epsilon}")
    return mean_positive_part(blanket.atoms, reports, epsilon)


def shuffled_epsilon(blanket: Blanket, reports: int, delta: float) -> Enclosure:
    """Enclose the least epsilon whose delta, by the blanket, is at most the given one.

    Parameters
    ----------
    blanket : of the randomizer of all reports.
    reports : n, shuffled together, in [1, 10^12].
    delta : in [1e-100, 1).

    Returns
    -------
    Enclosure, nats: `high` is a valid epsilon, at most that of one report alone. The blanket proves no
    epsilon below `low`; the truth may be smaller still.

    Raises
    ------
    ValueError if a parameter is out of range.
    """
    check_reports(reports)
    check_delta(delta)
    return least_epsilon(blanket.atoms, reports, delta, blanket.epsilon)


def mean_positive_part(
    atoms: tuple[ReportAtom, ...],
    reports: int,
    epsilon: float,
    negligible: float = LEAST_DELTA,
    wanted: float = WANTED,
    work: SearchWork | None = None,
) -> Enclosure:
    """Enclose E[(X_1 + … + X_n)_+] / n, X = first - e^epsilon second with the mass of each atom, else 0.

    Sizes are exact rationals, but for e^epsilon, which is low by a factor of less than 1 + 2^-151, and are
    rounded once. Those below 2^-80, which that would not leave accurate, count as 0.
    """
    factor = exp_below(epsilon)
    exact = [(atom.first - factor * atom.second, atom.mass) for atom in atoms]
    kept = [(float(size), float(mass)) for size, mass in exact if abs(size) > SMALLEST]
    left_out = 0.0 if len(kept) == len(exact) else 2 * float(SMALLEST)
    sizes, mass = np.array(kept).T
    steps = Steps(sizes, mass, reports)
    if are_few(len(kept), reports):
        still = 1 - sum((share for size, share in exact if abs(size) > SMALLEST), Fraction(0))
        low, high = positive_part_of_few(steps, still)
    else:
        low, high = positive_part(steps, negligible * reports, wanted, work)
    low, high = low / reports * (1 - 4 * UNIT) - left_out, high / reports * (1 + 4 * UNIT) + left_out
    return Enclosure(max(low, 0.0), min(high, 1.0))


def least_epsilon(atoms: tuple[ReportAtom, ...], reports: int, delta: float, largest: float) -> Enclosure:
    """Enclose the epsilon at which `mean_positive_part` falls to delta, in [0, largest].

    Whatever the search finds, both ends are evaluated themselves: delta falls as epsilon grows. `largest` is
    that of one report alone, at which delta is 0: it is returned as soon as less than LEAST_GAIN is gained.
    The work is bounded, so of few reports, whose sums jump, the ends may be further apart.
    """
    work = SearchWork()
    least = largest * (1 - LEAST_GAIN)
    if mean_positive_part(atoms, reports, least, delta / 8).low > delta:
        return Enclosure(least, largest)
    at = cache(partial(mean_positive_part, atoms, reports, negligible=delta / 8, work=work))
    low, high = _ends(at, _about(at, delta, largest), delta, largest)
    while high - low > WIDEST * high:  # where delta hardly depends on epsilon, its own ends must be closer
        middle = (low + high) / 2
        least_delta, most_delta = mean_positive_part(atoms, reports, middle, delta / 8, WANTED / 50, work)
        if most_delta <= delta:
            high = middle
        elif least_delta >= delta:
            low = middle
        else:
            break
    return Enclosure(low, high)


def _about(at: Callable[[float], Enclosure], delta: float, largest: float) -> float:
    """Return about the epsilon at which the enclosed figure falls to delta, in [0, largest]."""

    def log_ratio(log_epsilon: float) -> float:
        low, high = at(math.exp(log_epsilon))
        return math.log(max((low + high) / 2, 1e-290) / delta)

    if at(0.0).high <= delta:
        return 0.0
    below = largest
    while below > LEAST_EPSILON and log_ratio(math.log(below)) <= 0:
        below /= 2
    if below == largest or below <= LEAST_EPSILON:
        return below
    return math.exp(root(log_ratio, math.log(below), math.log(2 * below), 1e-7))


def _ends(at: Callable[[float], Enclosure], about: float, delta: float, largest: float) -> Enclosure:
    """Return two epsilons near `about`: at one the figure is at least delta, at the other at most."""
    if about == 0:
        return Enclosure(0.0, 0.0)
    margin = 1e-6
    while (high := min(about * (1 + margin), largest)) < largest and at(high).high > delta:
        margin *= 2
    margin = 1e-6
    while margin < 1 and at(about * (1 - margin)).low < delta:
        margin *= 2
    return Enclosure(about * max(1 - margin, 0.0), high)


def check_delta(delta: float) -> None:
    """Raise ValueError unless delta is in [1e-100, 1)."""
    if not LEAST_DELTA <= delta < 1:
        raise ValueError(f"delta must be in [{LEAST_DELTA}, 1), got {delta}")


def check_reports(reports: int) -> None:
    """Raise ValueError unless the number of shuffled reports is in [1, 10^12]."""
    if not 1 <= reports <= LARGEST_SHUFFLED:
        raise ValueError(f"reports shuffled together must be in [1, {LARGEST_SHUFFLED}], got {reports}")
