"""The randomizers: every probability that privacy rests on, beside the line that makes it.

Pure functions of values and words. Each draws the same words and does the same work whatever the values are.
Source: Kairouz et al. (k-RR); Erlingsson, Pihur and Korolova, CCS 2014, section 3 (RAPPOR).
"""

import numpy as np
from numpy.typing import NDArray

from estimators.krr import KRR
from estimators.rappor import Rappor
from producers.randomness import Words, Words32, below
from producers.wire import bucket_dtype

CHUNK_REPORTS = 2**14
CHUNK_BITS = 2**18


def randomize_krr(values: NDArray[np.int64], mechanism: KRR, words: Words) -> NDArray[np.unsignedinteger]:
    """k-ary randomized response.

    Parameters
    ----------
    values : int64 (n,), true buckets in [0, k).
    mechanism : KRR.
    words : for each chunk of at most CHUNK_REPORTS, first one 64-bit word per report, then another one.

    Returns
    -------
    bucket_dtype(k) (n,), the reported buckets.

    Raises
    ------
    ValueError if a value is no bucket.
    """
    if values.size and not (values.min() >= 0 and values.max() < mechanism.k):
        raise ValueError(f"every value must be a bucket in [0, {mechanism.k - 1}]")
    reports = np.empty(values.shape, bucket_dtype(mechanism.k))
    for start in range(0, len(values), CHUNK_REPORTS):
        chunk = values[start : start + CHUNK_REPORTS].astype(np.uint64)
        # P(word < threshold) = threshold / 2**64 = p: the truth is kept.
        keep = words.words64(len(chunk)) < np.uint64(mechanism.threshold)
        # Uniform over 0 … k-2, each within 2**-64 of 1 / (k-1); what is not below the truth moves up by one,
        # so it is uniform over the k-1 other values.
        other = below(words.words64(len(chunk)), mechanism.k - 1)
        other += other >= chunk
        reports[start : start + CHUNK_REPORTS] = np.where(keep, chunk, other)
    return reports


def permanent(rows: NDArray[np.uint8], mechanism: Rappor, words: Words32) -> NDArray[np.uint8]:
    """Permanent randomized response: every bit is replaced by a fair coin with probability f.

    Parameters
    ----------
    rows : uint8 (n, bits // 8), Bloom filters, bit 0 lowest.
    mechanism : Rappor.
    words : one 32-bit word per bit, rows in order.

    Returns
    -------
    uint8 (n, bits // 8).
    """
    response = np.empty_like(rows)
    for part in _chunks(rows, mechanism):
        # A fair coin instead of the bit, with probability f, is the bit flipped with probability f/2:
        # P(word < flip_threshold) = flip_threshold / 2**32 = f/2.
        flip = words.words32((len(rows[part]), mechanism.bits)) < mechanism.flip_threshold
        response[part] = rows[part] ^ np.packbits(flip, axis=1, bitorder="little")
    return response


def instantaneous(rows: NDArray[np.uint8], mechanism: Rappor, words: Words32) -> NDArray[np.uint8]:
    """Instantaneous randomized response: a bit is reported as 1 with probability q if it is 1, p if it is 0.

    Parameters
    ----------
    rows : uint8 (n, bits // 8), permanent responses, bit 0 lowest.
    mechanism : Rappor.
    words : one 32-bit word per bit, rows in order.

    Returns
    -------
    uint8 (n, bits // 8).
    """
    reports = np.empty_like(rows)
    for part in _chunks(rows, mechanism):
        word = words.words32((len(rows[part]), mechanism.bits))
        # P(word < q_threshold) = q and P(word < p_threshold) = p; a bit takes the one that is its own.
        if_one = np.packbits(word < mechanism.q_threshold, axis=1, bitorder="little")
        if_zero = np.packbits(word < mechanism.p_threshold, axis=1, bitorder="little")
        reports[part] = (rows[part] & if_one) | (~rows[part] & if_zero)
    return reports


def _chunks(rows: NDArray[np.uint8], mechanism: Rappor) -> list[slice]:
    size = max(1, CHUNK_BITS // mechanism.bits)
    return [slice(start, start + size) for start in range(0, len(rows), size)]
