"""How many texts a prefix tree will find, before any report is collected."""

import math
from functools import cache
from statistics import NormalDist

import numpy as np

from estimators.arrays import FloatArray
from estimators.frequency.inversion import Inversion
from estimators.mechanisms.hashing.prefix_tree import PrefixTree

#: Standard errors of a level that a text needs on the last one, to be found among all that are tested there,
#: and on each former one, to be followed.
NEEDED_TO_FIND, NEEDED_TO_FOLLOW = 4.0, 2.6
MOST_RANKS = 1_000_000
_HALVINGS = 60


def probability_found(mechanism: PrefixTree, reports: int, frequency: FloatArray) -> FloatArray:
    """Return the probability that texts of these frequencies are found, float64 (n,).

    The estimate of each level is taken for a normal one, with the noise of a rare text, that must exceed a
    number of standard errors. Real thresholds depend on what is found; these fit the searches of the
    benchmark (`bench/results/growth.md`) within a tenth of the number found.

    Parameters
    ----------
    mechanism : of the reports.
    reports : N of all levels, >= 1.
    frequency : float64 array (n,), of texts whose beginnings nobody else has, in [0, 1].
    """
    of_level = max(1, reports // mechanism.cohorts)
    error = float(Inversion.of_support(mechanism.oracle).std_error(np.zeros(1), of_level)[0])
    normal = NormalDist()
    distance = np.clip(frequency / error, 0, 20)
    found = [
        normal.cdf(x - NEEDED_TO_FIND) * normal.cdf(x - NEEDED_TO_FOLLOW) ** (mechanism.cohorts - 1)
        for x in distance.tolist()
    ]
    return np.array(found)


def least_found(mechanism: PrefixTree, reports: int) -> float:
    """Return the frequency from which on a text is found in at least half of all searches; at most 1.

    Parameters
    ----------
    mechanism, reports : as of `probability_found`.
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_found = probability_found(mechanism, reports, np.array([middle]))[0] >= 0.5
        low, high = (low, middle) if is_found else (middle, high)
    return high


def expected_finds(mechanism: PrefixTree, reports: int, different: int) -> float:
    """Return how many texts are found on average, if the frequencies of `different` fall as 1 / rank.

    Parameters
    ----------
    mechanism, reports : as of `probability_found`.
    different : number of texts, >= 1.
    """
    likely = least_found(mechanism, reports) / 3  # rarer ones are never found
    ranks = np.arange(1, min(different, MOST_RANKS, math.ceil(1 / likely)) + 1)
    return float(probability_found(mechanism, reports, 1 / ranks / _harmonic(different)).sum())


@cache
def _harmonic(number: int) -> float:
    """Return the sum of 1 / rank; beyond a million ranks by its asymptote, within 1e-12."""
    if number <= MOST_RANKS:
        return float((1 / np.arange(1, number + 1)).sum())
    return math.log(number) + float(np.euler_gamma) + 1 / (2 * number)
