"""Grow the prefix tree level by level, and find the frequent texts of its last level."""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.hashed.collisions import concentration
from deniable.estimators.decoding.hashed.growth.alphabet import Alphabet
from deniable.estimators.decoding.hashed.growth.branches import MOST_PREFIXES, Branches
from deniable.estimators.decoding.hashed.growth.discovery import AbsentTail, discover
from deniable.estimators.decoding.hashed.inverted_words import invert_words, share_of_others
from deniable.estimators.frequency.estimate import count_reports
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.significance import FALSE_DISCOVERY_RATE
from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions, hash_functions_of
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree


@dataclass(frozen=True, eq=False)
class FoundTexts:
    """Texts that the tree found, the largest estimate before the selection first.

    Frequencies, errors and intervals are fractions of all reports. They are measured on the last level alone,
    whose clients are drawn from all by chance: errors have that part too.

    Parameters
    ----------
    texts : m of them, bytes: whole texts, or the first `lengths[-1]` bytes of one or several.
    is_whole : bool array (m,), True for whole texts.
    frequency : float64 array (m,), in [0, 1].
    std_error : float64 array (m,), > 0.
    low, high : float64 arrays (m,), 95 % intervals that take the selection into account, within [0, 1].
    unexplained : share of reports with none of the texts, and its standard error.
    reports : int64 array (L,), of each level.
    tested : number of texts tested on the last level.
    rate : expected share of texts that nobody has among those found, at most.
    """

    texts: list[bytes]
    is_whole: NDArray[np.bool_]
    frequency: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    unexplained: tuple[float, float]
    reports: NDArray[np.int64]
    tested: int
    rate: float

    @property
    def significant(self) -> NDArray[np.bool_]:
        """Whether an interval excludes 0, bool array (m,).

        A false text is found since noise lifted it just above its threshold. Given that, its interval holds
        0 with 97.5 %: so hardly any text of nobody is significant, and nearly all false finds are not.
        """
        return self.low > 0


def grow(
    counts: NDArray[np.int64],
    mechanism: PrefixTree,
    hash_key: int,
    alphabet: Alphabet,
    rate: float = FALSE_DISCOVERY_RATE,
    overlap: float = 1.0,
    known: Set[bytes] = frozenset(),
) -> FoundTexts:
    """Find frequent texts without candidates.

    On each level, the prefixes that seem likeliest are extended, and the extensions estimated from the
    reports of the next level's clients. Levels but the last one only choose what is tested: mistakes there
    lose texts, but add no false ones. See `discover` for the rate.

    Parameters
    ----------
    counts : int64 array (L, C g), reports by level and function * g + bucket; sums of windows as well.
    mechanism : of the reports.
    hash_key : of the collection, which keys the functions.
    alphabet : of the texts. Texts with other characters are not found.
    rate : largest expected share of false texts among those found, in (0, 1).
    overlap : factor on the variance of the sample of clients on the last level, >= 1: that of several windows
        in which clients return.
    known : texts of the last level, as `PrefixTree.prefix` cuts them, that were known before the reports.
        They need no test, so they are not tested and not found: the rate is that of all others.

    Returns
    -------
    FoundTexts; of no texts if none is frequent enough.

    Raises
    ------
    ValueError if counts are not of shape (L, C g), negative, or a level has no report; if rate is out of
    range; or if an extension of lengths has too many prefixes in this alphabet.
    """
    if not 0 < rate < 1:
        raise ValueError(f"rate must be in (0, 1), got {rate}")
    reports = _level_reports(counts, mechanism)
    functions = hash_functions_of(mechanism.oracle, hash_key)
    branches, last = Branches.root(), len(reports) - 1
    for level, length in enumerate(mechanism.lengths):
        branches = branches.grown(length, alphabet, MOST_PREFIXES)
        words = mechanism.words(branches.prefixes, level, functions)
        inverted, absent = _estimated(counts[level], words, functions)
        if level < last:
            branches = branches.weighed(inverted, absent.std_error)
    others = 1 - float(reports[last] / reports.sum())
    tested = np.flatnonzero([each not in known for each in branches.prefixes])
    weights = np.exp(branches.log_probability[tested])
    found = discover(inverted[tested], weights, absent, rate, others * overlap)
    place = tested[found.place]
    texts = [branches.prefixes[each] for each in place.tolist()]
    return FoundTexts(
        texts,
        branches.is_whole[place],
        found.frequency,
        found.std_error,
        found.low,
        found.high,
        _unexplained(counts[last], words[place], functions, found.frequency, absent.collisions),
        reports,
        len(tested),
        rate,
    )


def _level_reports(counts: NDArray[np.int64], mechanism: PrefixTree) -> NDArray[np.int64]:
    shape = (mechanism.cohorts, mechanism.width)
    if counts.shape != shape:
        raise ValueError(f"counts must have shape {shape}, got {counts.shape}")
    found = counts.sum(axis=1)
    if (empty := np.flatnonzero(found == 0)).size:
        raise ValueError(
            f"each of the {len(found)} levels must have at least 1 report, got none on level"
            f"{'s' * (empty.size > 1)} {', '.join(map(str, (empty + 1).tolist()))}"
        )
    return np.array([count_reports(each, mechanism.width) for each in counts], np.int64)


def _estimated(
    counts: NDArray[np.int64], words: NDArray[np.uint64], functions: HashFunctions
) -> tuple[FloatArray, AbsentTail]:
    """Return unconstrained estimates of the prefixes of a level, and the law of absent ones."""
    channel = Inversion.of_support(functions.mechanism)
    shared = concentration(counts, functions.mechanism)
    found = invert_words(counts, words, functions, shared)
    return found.frequency, AbsentTail(channel, int(counts.sum()), found.collisions)


def _unexplained(
    counts: NDArray[np.int64],
    words: NDArray[np.uint64],
    functions: HashFunctions,
    frequency: FloatArray,
    collisions: float,
) -> tuple[float, float]:
    if len(words) == 0:
        return 1.0, 0.0
    return share_of_others(counts, words, functions, frequency, collisions)
