"""Which bits a word sets: the hash of google/rappor's Python and C++ clients."""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import md5
from itertools import count

import numpy as np
from numpy.typing import NDArray

from estimators.mechanisms.rappor import BYTE_HASHED_BITS, Rappor

DIGEST_BYTES = 16
_DENSE = 4  # up to so many possible pairs to a word, a table of them is faster than sorting


def bloom_positions(word: str, cohort: int, mechanism: Rappor) -> tuple[int, ...]:
    """Bits that a word sets in a cohort, one entry per hash; entries may collide.

    MD5 of the big-endian 32-bit cohort and the word in UTF-8. Hash i is byte i modulo bits, for up to 256
    bits; above that the i-th big-endian 16-bit pair modulo bits.

    Parameters
    ----------
    word : any text.
    cohort : in [0, mechanism.cohorts).
    mechanism : Rappor.

    Returns
    -------
    Tuple of mechanism.hashes integers in [0, mechanism.bits).

    Raises
    ------
    ValueError if the cohort is out of range.

    Source: google/rappor, client/python/rappor.py, get_bloom_bits.
    """
    if not 0 <= cohort < mechanism.cohorts:
        raise ValueError(f"cohort must be in [0, {mechanism.cohorts}), got {cohort}")
    digest = md5(cohort.to_bytes(4, "big") + word.encode(), usedforsecurity=False).digest()
    step = 1 if mechanism.bits <= BYTE_HASHED_BITS else 2
    starts = range(0, mechanism.hashes * step, step)
    return tuple(int.from_bytes(digest[i : i + step], "big") % mechanism.bits for i in starts)


def bloom_rows(words: Sequence[str], cohorts: NDArray[np.integer], mechanism: Rappor) -> NDArray[np.uint8]:
    """Bloom filters of many words, packed; each distinct pair of word and cohort is hashed once.

    Nothing is remembered between calls: the words are true values.

    Parameters
    ----------
    words : n words.
    cohorts : integer array (n,), the cohort of each word's client, in [0, mechanism.cohorts).
    mechanism : Rappor.

    Returns
    -------
    uint8 array (n, bits // 8), bit 0 lowest.

    Raises
    ------
    ValueError if a cohort is out of range, or there are not as many cohorts as words.
    """
    return numbered_rows(*numbered(words), cohorts, mechanism)


def numbered(words: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Each different word once, in the order of their coming, and which of them each word is, int64 (n,)."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    number = np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))
    return list(numbers), number


def numbered_rows(
    different: Sequence[str], number: NDArray[np.int64], cohorts: NDArray[np.integer], mechanism: Rappor
) -> NDArray[np.uint8]:
    """As `bloom_rows`, of words that are told by their `number` among the different ones.

    Parameters
    ----------
    different : words.
    number : int64 (n,), in [0, len(different)).
    cohorts, mechanism : as of `bloom_rows`.
    """
    if cohorts.shape != number.shape:
        raise ValueError(f"cohorts must have shape {number.shape}, got {cohorts.shape}")
    for extreme in (cohorts.min(initial=0), cohorts.max(initial=0)):
        if not 0 <= extreme < mechanism.cohorts:
            raise ValueError(f"cohorts must be in [0, {mechanism.cohorts}), got {extreme}")
    pairs, place = _occurring(number * mechanism.cohorts + cohorts, len(different) * mechanism.cohorts)
    cohort_bytes = [cohort.to_bytes(4, "big") for cohort in range(mechanism.cohorts)]
    word_of, cohort_of = (each.tolist() for each in np.divmod(pairs, mechanism.cohorts))
    messages = [
        cohort_bytes[cohort] + different[word].encode()
        for word, cohort in zip(word_of, cohort_of, strict=True)
    ]
    digests = b"".join([md5(message, usedforsecurity=False).digest() for message in messages])
    return _filters(digests, mechanism).take(place, axis=0)


def _occurring(pairs: NDArray[np.int64], possible: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs that occur, ascending, and the place of each pair among them; all are in [0, possible)."""
    if possible > _DENSE * len(pairs):
        occurring, place = np.unique(pairs, return_inverse=True)
        return occurring, place
    occurs = np.zeros(possible, np.bool_)
    occurs[pairs] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1).take(pairs)


def _filters(digests: bytes, mechanism: Rappor) -> NDArray[np.uint8]:
    """Bloom filters, uint8 (n, bits // 8), of n words from their MD5 digests, 16 bytes each, in a row."""
    numbers = np.frombuffer(digests, "u1" if mechanism.bits <= BYTE_HASHED_BITS else ">u2")
    positions = numbers.reshape(-1, DIGEST_BYTES // numbers.itemsize)[:, : mechanism.hashes] % mechanism.bits
    filters = np.zeros((len(positions), mechanism.bits), np.uint8)
    np.put_along_axis(filters, positions.astype(np.int64), 1, axis=1)
    return np.packbits(filters, axis=1, bitorder="little")
