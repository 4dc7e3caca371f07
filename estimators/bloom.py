"""Which bits a word sets: the hash of google/rappor's Python and C++ clients."""

from collections.abc import Sequence
from hashlib import md5

import numpy as np
from numpy.typing import NDArray

from estimators.rappor import BYTE_HASHED_BITS, Rappor

DIGEST_BYTES = 16


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
    if cohorts.shape != (len(words),):
        raise ValueError(f"cohorts must have shape ({len(words)},), got {cohorts.shape}")
    wrong = cohorts[(cohorts < 0) | (cohorts >= mechanism.cohorts)]
    if wrong.size:
        raise ValueError(f"cohorts must be in [0, {mechanism.cohorts}), got {wrong[0]}")
    numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
    word_of = np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))
    pairs, place = np.unique(word_of * mechanism.cohorts + cohorts, return_inverse=True)
    encoded = [word.encode() for word in numbers]
    messages = (
        (pair % mechanism.cohorts).to_bytes(4, "big") + encoded[pair // mechanism.cohorts]
        for pair in pairs.tolist()
    )
    digests = b"".join(md5(message, usedforsecurity=False).digest() for message in messages)
    return _filters(digests, mechanism)[place]


def _filters(digests: bytes, mechanism: Rappor) -> NDArray[np.uint8]:
    """Bloom filters, uint8 (n, bits // 8), of n words from their MD5 digests, 16 bytes each, in a row."""
    numbers = np.frombuffer(digests, "u1" if mechanism.bits <= BYTE_HASHED_BITS else ">u2")
    positions = numbers.reshape(-1, DIGEST_BYTES // numbers.itemsize)[:, : mechanism.hashes] % mechanism.bits
    filters = np.zeros((len(positions), mechanism.bits), np.uint8)
    np.put_along_axis(filters, positions.astype(np.int64), 1, axis=1)
    return np.packbits(filters, axis=1, bitorder="little")
