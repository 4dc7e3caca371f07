"""Texts with Zipf frequencies, and the counts of their reports to a prefix tree."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions, hash_functions_of
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree


def random_strings(rng: np.random.Generator, number: int, size: int) -> list[bytes]:
    """Return different strings of `size` uniformly random bytes, in random order."""
    found: dict[bytes, None] = {}
    while len(found) < number:
        drawn = rng.integers(0, 256, (number - len(found), size), np.uint8)
        found |= dict.fromkeys(each.tobytes() for each in drawn)
    return list(found)


def tree_counts(
    rng: np.random.Generator,
    texts: Sequence[bytes],
    clients: NDArray[np.int64],
    mechanism: PrefixTree,
    hash_key: int,
) -> NDArray[np.int64]:
    """Simulate the counts, int64 (levels, C g), when clients[v] of them have the text v.

    Each client draws a level, a function and the words of its k-RR.
    """
    functions = hash_functions_of(mechanism.oracle, hash_key)
    number = np.arange(len(texts)).repeat(clients)
    level = rng.integers(0, mechanism.cohorts, len(number))
    counts = [
        _level_counts(rng, texts, number[level == each], each, mechanism, functions)
        for each in range(mechanism.cohorts)
    ]
    return np.array(counts)


def _level_counts(
    rng: np.random.Generator,
    texts: Sequence[bytes],
    number: NDArray[np.int64],
    level: int,
    mechanism: PrefixTree,
    functions: HashFunctions,
) -> NDArray[np.int64]:
    oracle = mechanism.oracle
    different, place = np.unique(number, return_inverse=True)
    prefixes = [mechanism.prefix(texts[each], level) for each in different.tolist()]
    words = mechanism.words(prefixes, level, functions)
    function = rng.integers(0, oracle.hash_functions, len(number))
    buckets = functions.buckets(words[place], function)
    # k-RR keeps a bucket with probability p - q, and otherwise draws one of all uniformly.
    drawn = rng.integers(0, oracle.hash_buckets, len(number))
    reported = np.where(rng.random(len(number)) < oracle.response.contrast, buckets, drawn)
    return np.bincount(function * oracle.hash_buckets + reported, minlength=oracle.width)
