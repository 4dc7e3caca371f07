"""The randomizers: every probability that privacy depends on, beside the line that implements it.

Pure functions of values and words. Each draws the same words and does the same work whatever the values.
Sources: Kairouz et al. (k-RR); Erlingsson, Pihur and Korolova, CCS 2014, section 3 (RAPPOR); Wang et al.,
USENIX Security 2017, section 4.4 (local hashing); Li et al., SIGMOD 2020, section 5 (Square Wave).
"""

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor_bits import TwoStepBits
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.subset_selection import SubsetSelection
from deniable.producers.randomization.randomness import Words, below
from deniable.protocol.wire import bucket_dtype

PLACES = 32


def randomize_krr(values: NDArray[np.int64], mechanism: KRR, words: Words) -> NDArray[np.unsignedinteger]:
    """k-ary randomized response.

    Parameters
    ----------
    values : int64 (n,), true buckets in [0, k).
    mechanism : KRR.
    words : one 64-bit word per report, then another one.

    Returns
    -------
    bucket_dtype(k) (n,), the reported buckets.

    Raises
    ------
    ValueError if a value is not a bucket.
    """
    if values.size and not (values.min() >= 0 and values.max() < mechanism.k):
        raise ValueError(f"every value must be a bucket in [0, {mechanism.k - 1}]")
    # P(word < threshold) = threshold / 2^64 = p: the truth is kept.
    keep = words.words64(values.shape) < np.uint64(mechanism.threshold)
    # Uniform over 0 … k-2, each within 2^-64 of 1 / (k-1); numbers not below the truth move up by one, so the
    # result is uniform over the k-1 other values.
    truth = values.astype(np.uint64)
    lie = below(words.words64(values.shape), mechanism.k - 1)
    lie += lie >= truth
    return np.where(keep, truth, lie).astype(bucket_dtype(mechanism.k))


def randomize_pair(
    firsts: NDArray[np.int64], seconds: NDArray[np.int64], mechanism: PairKRR, words: Words
) -> NDArray[np.unsignedinteger]:
    """k-ary randomized response of two fields: each by its own, with words of its own.

    Parameters
    ----------
    firsts, seconds : int64 (n,), true buckets in [0, K1) and in [0, K2).
    mechanism : PairKRR.
    words : as `randomize_krr` of the first field, then as that of the second one.

    Returns
    -------
    bucket_dtype(K1 K2) (n,), reported first * K2 + reported second.

    Raises
    ------
    ValueError if a value is not a bucket.
    """
    first = randomize_krr(firsts, mechanism.first, words).astype(np.uint32)
    second = randomize_krr(seconds, mechanism.second, words)
    # The two draws share no word, so P(first, second | truth) is the product of both probabilities.
    return (first * np.uint32(mechanism.second.k) + second).astype(bucket_dtype(mechanism.width))


def randomize_square_wave(
    cells: NDArray[np.int64], mechanism: SquareWave, words: Words
) -> NDArray[np.unsignedinteger]:
    """Square Wave: a cell near the true one, or one that is far from it.

    Parameters
    ----------
    cells : int64 (n,), true cells in [0, d).
    mechanism : SquareWave.
    words : one 64-bit word per report, then another one.

    Returns
    -------
    bucket_dtype(d + 2b) (n,), the reported cells.

    Raises
    ------
    ValueError if a value is not a cell.
    """
    if cells.size and not (cells.min() >= 0 and cells.max() < mechanism.steps):
        raise ValueError(f"every value must be a cell in [0, {mechanism.steps - 1}]")
    # P(word < threshold) = threshold / 2^64: the report is near.
    is_near = words.words64(cells.shape) < np.uint64(mechanism.threshold)
    truth, word = cells.astype(np.uint64), words.words64(cells.shape)
    # Uniform over the 2b + 1 near cells, which begin at the truth, each within 2^-64.
    near = below(word, mechanism.near)
    near += truth
    # Uniform over 0 … d-2; numbers not below the first near cell move up behind the last one.
    far = below(word, mechanism.far)
    far += np.uint64(mechanism.near) * (far >= truth)
    return np.where(is_near, near, far).astype(bucket_dtype(mechanism.width))


def randomize_hashed(
    values: NDArray[np.uint64], functions: HashFunctions, response: KRR, words: Words
) -> NDArray[np.unsignedinteger]:
    """Local hashing: the number of a uniformly drawn hash function, and k-RR of the value's bucket under it.

    The function does not depend on the value, so a report costs what its k-RR costs.

    Parameters
    ----------
    values : uint64 (n,), `HashFunctions.words` of the true values.
    functions : of the collection: C functions into g buckets.
    response : k-RR of the g buckets.
    words : one 64-bit word per report for its function, then as `randomize_krr`.

    Returns
    -------
    bucket_dtype(C g) (n,), function * g + reported bucket.
    """
    mechanism = functions.mechanism
    # Each function has floor or ceil of 2^64 / C words: its probability is within 2^-64 of 1 / C.
    function = below(words.words64(values.shape), mechanism.hash_functions)
    bucket = randomize_krr(functions.buckets(values, function.view(np.int64)), response, words)
    function *= np.uint64(mechanism.hash_buckets)
    function += bucket
    return function.astype(bucket_dtype(mechanism.width))


def randomize_subsets(
    values: NDArray[np.int64], mechanism: SubsetSelection, words: Words
) -> NDArray[np.uint8]:
    """Subset selection: a set of w values, with the true one in it with probability p.

    Each of the other values gets a random key, and those with the least keys fill the set. A report whose
    largest key in the set occurs again outside of it gets other keys: the keys of all other values are drawn
    alike, so any set of them is as likely as any other, exactly.

    Parameters
    ----------
    values : int64 (n,), true buckets in [0, k).
    mechanism : SubsetSelection.
    words : a word per report, then one for each bit of it; again those of the reports that need other keys.

    Returns
    -------
    uint8 (n, bits // 8), a bit for each value, bit 0 lowest; bits that belong to no value are noise.

    Raises
    ------
    ValueError if a value is not a bucket.
    """
    k, size = mechanism.buckets, mechanism.chosen
    if values.size and not (values.min() >= 0 and values.max() < k):
        raise ValueError(f"every value must be a bucket in [0, {k - 1}]")
    # P(word < threshold) = threshold / 2^64 = p: the truth is in the set.
    is_in = words.words64(values.shape) < np.uint64(mechanism.threshold)
    bits = np.empty((len(values), mechanism.bits), np.bool_)
    left = np.arange(len(values))
    while left.size:
        keys = np.array(words.words64((left.size, mechanism.bits)))
        bits[left, k:] = keys[:, k:] < np.uint64(mechanism.p_star * 2**64)
        keys[np.arange(left.size), values[left]] = np.where(is_in[left], 0, np.uint64(2**64 - 1))
        largest = np.partition(keys[:, :k], size - 1, axis=1)[:, size - 1]
        bits[left, :k] = keys[:, :k] <= largest[:, None]
        left = left[bits[left, :k].sum(axis=1) != size]
    return np.packbits(bits, axis=1, bitorder="little")


def permanent(rows: NDArray[np.uint8], mechanism: TwoStepBits, words: Words) -> NDArray[np.uint8]:
    """Permanent randomized response: every bit is replaced by a fair coin with probability f.

    Parameters
    ----------
    rows : uint8 (n, bits // 8), true bits, bit 0 lowest.
    mechanism : any RAPPOR.
    words : as in `bernoulli`.

    Returns
    -------
    uint8 (n, bits // 8).
    """
    # A fair coin instead of the bit, with probability f, is the bit flipped with probability f/2.
    return rows ^ bernoulli(rows, mechanism.flip_threshold, mechanism.flip_threshold, words)


def instantaneous(rows: NDArray[np.uint8], mechanism: TwoStepBits, words: Words) -> NDArray[np.uint8]:
    """Instantaneous randomized response: a bit is reported as 1 with probability q if it is 1, p if it is 0.

    Parameters
    ----------
    rows : uint8 (n, bits // 8), permanent responses, bit 0 lowest.
    mechanism : any RAPPOR.
    words : random source, see `bernoulli`.

    Returns
    -------
    uint8 (n, bits // 8).
    """
    return bernoulli(rows, mechanism.q_threshold, mechanism.p_threshold, words)


def bernoulli(rows: NDArray[np.uint8], if_one: int, if_zero: int, words: Words) -> NDArray[np.uint8]:
    """Draw independent bits: 1 with probability if_one / 2^32 where `rows` has a 1, else if_zero / 2^32.

    A bit is 1 iff a uniform number U of 32 binary digits is below its threshold T. A word has one digit of 64
    such numbers, complemented. Going up from the lowest digit, U < T so far iff U's digit is below T's, or
    they are equal and U < T held before. If T's digit is 1, that is `word | before`; if it is 0, `word &
    before`; if it differs between if_one and if_zero, the majority of word, before and digit. Below the
    lowest 1 of both thresholds nothing is drawn: no number is below 0.

    Parameters
    ----------
    rows : uint8 (n, size).
    if_one, if_zero : in [0, 2^32).
    words : for each digit from the lowest 1 up to the 32nd, n rows of size / 8 words, rounded up.

    Returns
    -------
    uint8 (n, size).
    """
    truth = _lanes(rows)
    before = np.zeros_like(truth)
    for place in range(PLACES):
        if not (if_one | if_zero) & ((2 << place) - 1):
            continue
        word = words.words64(truth.shape)
        match if_one >> place & 1, if_zero >> place & 1:
            case 1, 1:
                before |= word
            case 0, 0:
                before &= word
            case 1, 0:
                before ^= (before ^ word) & (before ^ truth)
            case _:
                before ^= (before ^ word) & ~(before ^ truth)
    return before.view(np.uint8)[:, : rows.shape[1]]


def _lanes(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Pack 64 bits into a word, each row padded with zeros: uint64 (n, size / 8, rounded up)."""
    count, size = rows.shape
    if size % 8 == 0 and rows.flags.c_contiguous:
        return rows.view(np.uint64)
    filled = np.zeros((count, -(-size // 8) * 8), np.uint8)
    filled[:, :size] = rows
    return filled.view(np.uint64)


def at_most(rows: NDArray[np.uint8], ones: int, words: Words) -> NDArray[np.uint8]:
    """Clear 1-bits until each row has at most `ones`; the remaining ones are a uniformly random subset.

    Parameters
    ----------
    rows : uint8 (n, size), bit 0 lowest.
    ones : in [1, 8 * size].
    words : one 64-bit word per bit.

    Returns
    -------
    uint8 (n, size).
    """
    bits = np.unpackbits(rows, axis=1, bitorder="little")
    # The 1-bits with the smallest words stay. Every order of the words is equally likely, except for ties,
    # which have probability 2^-64 for two bits.
    rank = np.where(bits, words.words64(bits.shape), np.uint64(2**64 - 1))
    stay = np.argpartition(rank, ones - 1, axis=1)[:, :ones]
    kept = np.zeros_like(bits)
    np.put_along_axis(kept, stay, np.take_along_axis(bits, stay, axis=1), axis=1)
    return np.packbits(kept, axis=1, bitorder="little")
