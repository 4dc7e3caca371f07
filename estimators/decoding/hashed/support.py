"""How many reports of local hashing support each candidate: whose function gives it the reported bucket.

All functions of a block see the same symbol of a candidate. So sums over them are computed once for each
symbol, and looked up for each candidate and block: with 65,536 counters a few hundred or thousand times.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.mechanisms.hashing.hash_functions import HashFunctions

CHUNK_WORDS = 1 << 13  # whose symbols stay in a processor's cache


def count_supports(
    counts: NDArray[np.int64] | FloatArray, words: NDArray[np.uint64], functions: HashFunctions
) -> FloatArray:
    """Count the reports that support each candidate.

    Parameters
    ----------
    counts : array (C g,), reports by function * g + bucket.
    words : uint64 array (n,), of the candidates.
    functions : of the reports.

    Returns
    -------
    float64 array (n,), whole numbers if the counts are, below 2^53.
    """
    members = functions.block.members
    sums = counts.reshape(-1, len(members)).astype(np.float64) @ members
    supports = np.zeros(len(words))
    found = np.empty(min(CHUNK_WORDS, len(words)))
    for part, block, seen in _symbols(words, functions):
        # Symbols are in range; `clip` only spares a check and a copy.
        supports[part] += np.take(sums[block], seen, out=found[: len(seen)], mode="clip")
    return supports


def supported_candidates(words: NDArray[np.uint64], functions: HashFunctions) -> FloatArray:
    """Count the candidates that a report supports, float64 array (C g,) by function * g + bucket.

    Parameters
    ----------
    words : uint64 array (n,), of the candidates.
    functions : of the reports.
    """
    members = functions.block.members
    held = np.zeros((len(functions.multipliers), members.shape[1]))
    for _, block, seen in _symbols(words, functions):
        held[block] += np.bincount(seen, minlength=held.shape[1])
    supported: FloatArray = (held @ members.T).reshape(-1)
    return supported


def _symbols(
    words: NDArray[np.uint64], functions: HashFunctions
) -> Iterator[tuple[slice, int, NDArray[np.int64]]]:
    """Yield slices of the words with the symbol of each under each block; arrays are used again."""
    mixed = np.empty(min(CHUNK_WORDS, len(words)), np.uint64)
    for first in range(0, len(words), CHUNK_WORDS):
        part = slice(first, min(first + CHUNK_WORDS, len(words)))
        chunk = words[part]
        for block in range(len(functions.multipliers)):
            yield part, block, functions.symbols(chunk, block, mixed[: len(chunk)])
