"""How many texts a prefix tree will find, before any report is collected."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.hashed.growth.branches import MOST_PREFIXES
from deniable.estimators.decoding.hashed.inverted_words import FREQUENT_ERRORS, ROUNDS, most_taken_out
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.significance import normal_tail
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree

#: Standard errors of a level that a text needs on the last one, to be found among all that are tested there,
#: and on each former one, to be followed where few others are.
NEEDED_TO_FIND, NEEDED_TO_FOLLOW = 4.0, 2.6
#: Branches that are followed, if steps are of one byte and any byte may come next.
MOST_BRANCHES = MOST_PREFIXES // 256
MOST_RANKS = 1_000_000
_HALVINGS = 60


@dataclass(frozen=True)
class ExpectedSearch:
    """A search of the texts of a prefix tree, as it is expected.

    The estimate of each level is taken for a normal one, with the noise of a rare text, that must exceed a
    number of standard errors. Real thresholds depend on what is found.

    Parameters
    ----------
    levels : of the tree, >= 1.
    error : standard error of the estimate of a rare text on one level, a fraction, > 0.
    needed_to_follow : standard errors above 0 that a prefix needs on each level but the last one.
    """

    levels: int
    error: float
    needed_to_follow: float = NEEDED_TO_FOLLOW

    @classmethod
    def of_few_texts(cls, mechanism: PrefixTree, reports: int) -> Self:
        """Expect a search with few collisions, and fewer frequent texts than branches.

        Parameters
        ----------
        mechanism : of the reports.
        reports : N of all levels, >= 1.
        """
        of_level = max(1, reports // mechanism.cohorts)
        noise = float(Inversion.of_support(mechanism.oracle).std_error(np.zeros(1), of_level)[0])
        return cls(mechanism.cohorts, noise)

    @classmethod
    def of_ranks(cls, mechanism: PrefixTree, reports: int, different: int) -> Self:
        """Expect a search of texts whose frequencies fall as 1 / rank.

        Texts beyond the most frequent ones collide (`invert_words`), which adds to the error. At most
        MOST_BRANCHES prefixes are followed, true ones and those that noise has lifted: the threshold is
        where so many are above it.

        Parameters
        ----------
        mechanism, reports : as of `of_few_texts`.
        different : number of texts, >= 1.
        """
        few = cls.of_few_texts(mechanism, reports)
        frequency = ranked_frequencies(different, MOST_RANKS)
        variance = mechanism.oracle.collision_variance
        left = np.append(np.square(frequency)[::-1].cumsum()[::-1], 0.0) * variance  # without the first ones
        taken, most = 0, most_taken_out(mechanism.oracle)
        for _ in range(ROUNDS):
            error = math.hypot(few.error, math.sqrt(left[taken]))
            taken = int((frequency[:most] > FREQUENT_ERRORS * error).sum())
        distance = frequency[: 8 * MOST_BRANCHES] / error
        low, high = NEEDED_TO_FOLLOW, max(NEEDED_TO_FOLLOW, float(distance[0])) + 10
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            false = float(normal_tail(np.array([middle]))[0]) * MOST_PREFIXES
            is_too_low = float(normal_tail(middle - distance).sum()) + false > MOST_BRANCHES
            low, high = (middle, high) if is_too_low else (low, middle)
        return cls(few.levels, error, low)

    def probability_found(self, frequency: FloatArray) -> FloatArray:
        """Return the probability that texts of these frequencies are found, float64 (n,).

        Parameters
        ----------
        frequency : float64 array (n,), of texts whose beginnings nobody else has, in [0, 1].
        """
        distance = frequency / self.error
        followed = normal_tail(self.needed_to_follow - distance) ** (self.levels - 1)
        return normal_tail(NEEDED_TO_FIND - distance) * followed

    def least_found(self) -> float | None:
        """Return the frequency from which on a text is found in at least half of all searches.

        None if not even one that all reports have is: there are too few of them.
        """
        low, high = 0.0, 1.0
        if self.probability_found(np.array([high]))[0] < 0.5:
            return None
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_found = self.probability_found(np.array([middle]))[0] >= 0.5
            low, high = (low, middle) if is_found else (middle, high)
        return high


def expected_finds(mechanism: PrefixTree, reports: int, different: int) -> float:
    """Return how many texts are found on average, if the frequencies of `different` fall as 1 / rank.

    It is within a tenth of the number found in the searches of the benchmark (`bench/results/strings.md`),
    and in those of 10^7 to 10^9 reports of 1,500 to 20,000 texts of any bytes.

    Parameters
    ----------
    mechanism, reports, different : as of `ExpectedSearch.of_ranks`.
    """
    search = ExpectedSearch.of_ranks(mechanism, reports, different)
    likely = math.ceil(3 / (search.least_found() or 1.0))  # rarer ones than a third of that are never found
    found = float(search.probability_found(ranked_frequencies(different, likely)).sum())
    return min(found, reports / search.levels)  # each of them is reported on the last level


def ranked_frequencies(different: int, most: int) -> FloatArray:
    """Return the largest frequencies of texts whose frequencies fall as 1 / rank, float64 (n,), descending.

    Parameters
    ----------
    different : number of texts, >= 1.
    most : of these that are returned, >= 1; at most MOST_RANKS.
    """
    return 1 / np.arange(1, min(different, MOST_RANKS, most) + 1) / _harmonic(different)


@cache
def _harmonic(number: int) -> float:
    """Return the sum of 1 / rank; beyond a million ranks by its asymptote, within 1e-12."""
    if number <= MOST_RANKS:
        return float((1 / np.arange(1, number + 1)).sum())
    return math.log(number) + float(np.euler_gamma) + 1 / (2 * number)
