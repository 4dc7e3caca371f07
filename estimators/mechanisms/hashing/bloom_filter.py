"""Bloom filter of a word: the MD5 hash of google/rappor's Python and C++ clients."""

from collections.abc import Sequence
from hashlib import md5

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.mechanisms.hashing.distinct_texts import numbered
from deniable.estimators.mechanisms.rappor import BYTE_HASHED_BITS, Rappor

DIGEST_BYTES = 16
_DENSE = 4  # with up to this many possible pairs per word, a lookup table is faster than sorting


def bloom_positions(word: str, cohort: int, mechanism: Rappor) -> tuple[int, ...]:
    """Return the bits that a word sets in a cohort, one entry per hash; entries may collide.

    The digest is MD5 of the big-endian 32-bit cohort followed by the word in UTF-8. With up to 256 bits,
    hash i is byte i of the digest modulo bits; with more, it is the i-th big-endian 16-bit word modulo bits.

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
    """Return the packed Bloom filters of many words; each distinct pair of word and cohort is hashed once.

    Nothing is cached between calls, because the words are true values.

    Parameters
    ----------
    words : n words.
    cohorts : integer array (n,), the cohort of each word's client, in [0, mechanism.cohorts).
    mechanism : Rappor.

    Returns
    -------
    uint8 array (n, bits // 8), least significant bit first.

    Raises
    ------
    ValueError if a cohort is out of range, or `cohorts` and `words` differ in length.
    """
    return numbered_rows(*numbered(words), cohorts, mechanism)


def numbered_rows(
    different: Sequence[str], number: NDArray[np.int64], cohorts: NDArray[np.integer], mechanism: Rappor
) -> NDArray[np.uint8]:
    """Return the packed Bloom filters of words that are given by their index among the distinct ones.

    Parameters
    ----------
    different : distinct words.
    number : int64 array (n,), index of each word in `different`, in [0, len(different)).
    cohorts : integer array (n,), the cohort of each word's client, in [0, mechanism.cohorts).
    mechanism : Rappor.

    Returns
    -------
    uint8 array (n, bits // 8), least significant bit first.

    Raises
    ------
    ValueError if a cohort is out of range, or `cohorts` and `number` differ in shape.
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
    """Return the distinct pairs, ascending, and the index of each pair in them; all are in [0, possible)."""
    if possible > _DENSE * len(pairs):
        occurring, place = np.unique(pairs, return_inverse=True)
        return occurring, place
    occurs = np.zeros(possible, np.bool_)
    occurs[pairs] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1).take(pairs)


def _filters(digests: bytes, mechanism: Rappor) -> NDArray[np.uint8]:
    """Return Bloom filters, uint8 (n, bits // 8), from the concatenated 16-byte MD5 digests of n words."""
    numbers = np.frombuffer(digests, "u1" if mechanism.bits <= BYTE_HASHED_BITS else ">u2")
    hashed = numbers.reshape(-1, DIGEST_BYTES // numbers.itemsize)[:, : mechanism.hashes]
    filters = np.zeros((len(hashed), mechanism.bits), np.uint8)
    np.put_along_axis(filters, hashed.astype(np.int64) % mechanism.bits, 1, axis=1)
    return np.packbits(filters, axis=1, bitorder="little")
