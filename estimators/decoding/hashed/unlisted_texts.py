"""Frequent values that nobody listed, found by the chunks of their symbols: not which texts they are."""

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.hashed.support import chunks_of
from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions

#: Texts that are looked for at most; none is with fewer chunks, or fewer reports in the mean sum.
MOST_UNLISTED, LEAST_CHUNKS, LEAST_REPORTS = 8, 100, 4.0
_PLAIN, _SPREAD, _ALIKE, _TAKEN = 7.0, 5.0, 0.9, 0.5
_COMPARED_BLOCKS = 32
#: Values that were taken out, of which what is left of their noise is not to be taken for another one.
COMPARED = 8


def largest_unlisted(
    sums: FloatArray, words: NDArray[np.uint64], functions: HashFunctions, taken: NDArray[np.uint8]
) -> NDArray[np.uint8] | None:
    """Return the chunks of the most frequent value that was not taken out of the counts, if it is plain.

    In each chunk, a value adds to the sum of its symbol alone, and a frequent one makes it the largest. What
    the largest sums exceed the others of their chunk by is taken for one value only if the median is 7
    standard deviations of the others, which noise and rarer values have, and if 90 % are at most 5 below it
    and half of it above, as those of one value are that shares some chunks with rarer ones. By chance another
    of K <= 251 symbols is then the largest in about K P(Z > 7 / sqrt 2) < 1e-4 of the chunks, so being
    selected hardly raises the share of a value.

    The reports of values that were taken out vary, by more than all else where few responses are false. Where
    most of the largest sums are those of such values, they are that noise.

    Parameters
    ----------
    sums : float64 array (chunks, values of a chunk), without the frequent candidates, see `without`.
    words : uint64 array (n,), of listed values: none of them is returned.
    functions : of the reports.
    taken : uint8 array (m, chunks), of the most frequent values that were taken out, at most `COMPARED`.

    Returns
    -------
    uint8 array (chunks,), or None.
    """
    mean, others = float(sums.mean()), sums.shape[1] - 1
    if len(sums) < LEAST_CHUNKS or mean < LEAST_REPORTS:
        return None
    sums = sums - sums.mean(axis=1, keepdims=True)
    largest: NDArray[np.uint8] = sums.argmax(axis=1).astype(np.uint8)
    of_others = -sums.max(axis=1) / others  # their mean, since all sums of a chunk together are 0 now
    sums -= of_others[:, np.newaxis]
    excess = sums.max(axis=1)
    sums[np.arange(len(sums)), largest] = 0
    noise = np.sqrt(max((sums**2).sum() / (len(sums) * others), mean * (1 - functions.mechanism.miss)))
    common = float(np.median(excess))
    spread = _SPREAD * np.sqrt(noise**2 + common)  # reports of the value itself vary as a Poisson count
    alike = (excess > common - spread) & (excess < common + max(spread, common / 2))
    if common < _PLAIN * noise or alike.mean() < _ALIKE or (taken == largest).any(axis=0).mean() > _TAKEN:
        return None
    if _is_listed(largest, words, functions):
        return None
    return largest


def _is_listed(chunks: NDArray[np.uint8], words: NDArray[np.uint64], functions: HashFunctions) -> bool:
    """Whether a word agrees in a third of the first 32 blocks: others do in 1 chunk of 11 or fewer."""
    compared = chunks_of(words, functions, _COMPARED_BLOCKS)
    agree = np.count_nonzero(compared == chunks[: compared.shape[1]], axis=1)
    return bool(agree.max() > compared.shape[1] / 3)
