"""How many reports of local hashing support each candidate: whose function gives it the reported bucket.

All functions of a block see the same symbol of a candidate. So sums over them are computed once for each
symbol, and looked up for each candidate and block: with 65,536 counters a few hundred or thousand times.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions

CHUNK_WORDS = 1 << 13  # whose symbols stay in a processor's cache


def supports_in(sums: FloatArray, words: NDArray[np.uint64], functions: HashFunctions) -> FloatArray:
    """Count the reports that support each candidate.

    Parameters
    ----------
    sums : float64 array (chunks of all blocks, values of a chunk), see `chunk_sums`.
    words : uint64 array (n,), of the candidates.
    functions : of the reports.

    Returns
    -------
    float64 array (n,), whole numbers if the sums are, below 2^53.
    """
    sums = _of_blocks(sums, functions)
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
    shape = functions.block
    held = np.zeros((len(functions.multipliers), shape.symbols))
    for _, block, seen in _symbols(words, functions):
        held[block] += np.bincount(seen, minlength=shape.symbols)
    by_chunk = held.reshape(-1, *[shape.chunk_symbols] * shape.chunks)  # the last axis is the first chunk
    axes = range(shape.chunks, 0, -1)
    of_chunks = [by_chunk.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
    supported: FloatArray = (np.stack(of_chunks, axis=1) @ shape.members.T).reshape(-1)
    return supported


def chunk_sums(counts: NDArray[np.int64], functions: HashFunctions) -> FloatArray:
    """Sum the counts over the functions of each chunk, for each value that the chunk of a symbol may have.

    Parameters
    ----------
    counts : array (C g,), reports by function * g + bucket.
    functions : of the reports.

    Returns
    -------
    float64 array (chunks of all blocks, values of a chunk), whole numbers below 2^53.
    """
    members = functions.block.members
    sums: FloatArray = counts.reshape(-1, len(members)).astype(np.float64) @ members
    return sums


def chunks_of(
    words: NDArray[np.uint64], functions: HashFunctions, blocks: int | None = None
) -> NDArray[np.uint8]:
    """Return the values of the chunks of each word, uint8 (n, chunks), of all or the first blocks."""
    shape, blocks = functions.block, min(blocks or len(functions.multipliers), len(functions.multipliers))
    found = np.empty((len(words), blocks, shape.chunks), np.uint8)
    for part, block, seen in _symbols(words, functions, blocks):
        for chunk in range(shape.chunks):
            found[part, block, chunk] = seen // shape.chunk_symbols**chunk % shape.chunk_symbols
    return found.reshape(len(words), blocks * shape.chunks)


def _of_blocks(of_chunks: FloatArray, functions: HashFunctions) -> FloatArray:
    """Add up the sums of chunks for each symbol of each block, float64 (blocks, symbols)."""
    block = functions.block
    of_chunks = of_chunks.reshape(-1, block.chunks, block.chunk_symbols)
    sums = of_chunks[:, 0]
    for chunk in range(1, block.chunks):
        sums = (of_chunks[:, chunk, :, np.newaxis] + sums[:, np.newaxis]).reshape(len(sums), -1)
    return sums


def _symbols(
    words: NDArray[np.uint64], functions: HashFunctions, blocks: int | None = None
) -> Iterator[tuple[slice, int, NDArray[np.int64]]]:
    """Yield slices of the words with the symbol of each under each block; arrays are used again."""
    mixed = np.empty(min(CHUNK_WORDS, len(words)), np.uint64)
    for first in range(0, len(words), CHUNK_WORDS):
        part = slice(first, min(first + CHUNK_WORDS, len(words)))
        chunk = words[part]
        for block in range(len(functions.multipliers) if blocks is None else blocks):
            yield part, block, functions.symbols(chunk, block, mixed[: len(chunk)])
