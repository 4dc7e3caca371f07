"""The shared hash functions: a block's code, exactly; the definition, pinned; independence, measured."""

import hmac
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from deniable.estimators.mechanisms.hashing.function_block import FunctionBlock, block_of
from deniable.estimators.mechanisms.hashing.hash_functions import HashFunctions, hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash

FINGERPRINT = 0x0123456789ABCDEF
FALSE_ALARM = 1e-6
SIZES = {
    2: (62, 1024),
    3: (26, 729),
    5: (12, 625),
    7: (16, 2401),
    11: (3, 1331),
    53: (2, 2809),
}


@pytest.mark.parametrize("buckets", SIZES)
def test_a_block_has_the_functions_of_its_code(buckets):
    block = block_of(buckets)
    assert (block.functions, block.symbols) == SIZES[buckets] == block.table.shape
    assert len(np.unique(block.table, axis=0)) == block.functions
    share = block.symbols // buckets
    for row in block.table:
        assert np.bincount(row).tolist() == [share] * buckets


@pytest.mark.slow
@pytest.mark.parametrize("buckets", [2, 3, 5, 7, 11])
def test_variance_of_collisions_is_exactly_that_of_independent_functions(buckets):
    """Over all pairs of symbols: mean 1/g, variance (1/g)(1 - 1/g) / functions; and the code's distances."""
    block = FunctionBlock(buckets)
    collisions = sum((row[:, np.newaxis] == row).astype(np.int64) for row in block.table)
    pairs, total = collisions.size, Fraction(int(collisions.sum()))
    mean = total / pairs / block.functions
    square = Fraction(int((collisions**2).sum()), pairs) / block.functions**2
    miss = Fraction(1, buckets)
    assert mean == miss
    assert square - mean**2 == miss * (1 - miss) / block.functions
    lines, some = block.functions // block.chunks, (buckets ** (block.digits - 1) - 1) // (buckets - 1)
    assert set(np.unique(collisions)) <= {
        equal * lines + (block.chunks - equal) * some for equal in range(block.chunks + 1)
    }


@pytest.mark.parametrize(("epsilon", "expected"), [(1.0, [0, 0, 0, 1]), (4.0, [1, 14, 27, 32])])
def test_hashes_are_those_of_the_definition(epsilon, expected):
    """Computed again from the text of the docstring with Python's integers, and pinned."""
    mechanism = LocalHash.from_epsilon(epsilon)
    functions = HashFunctions(mechanism, FINGERPRINT)
    g, block = mechanism.hash_buckets, functions.block
    key = FINGERPRINT.to_bytes(8, "little")
    of_values = hmac.digest(key, b"deniable local-hash values", "sha256")
    of_blocks = hmac.digest(key, b"deniable local-hash blocks", "sha256")
    words = functions.words(["naïve café", ""])
    found = []
    for word, text in zip(words, ["naïve café", ""], strict=True):
        w = int.from_bytes(hmac.digest(of_values, text.encode(), "sha256")[:8], "little")
        assert w == int(word)
        for number in (0, mechanism.hash_functions - 1):
            b, row = divmod(number, block.functions)
            drawn = hmac.digest(of_blocks, b.to_bytes(4, "little"), "sha256")
            a, d = (int.from_bytes(drawn[i : i + 8], "little") for i in (0, 8))
            symbol = (((a * w + d) % 2**64 >> 32) * block.symbols) >> 32
            bucket = int(functions.buckets(np.array([word]), np.array([number]))[0])
            assert bucket == block.table[row, symbol] < g
            assert functions.symbols(words[:0], b, np.empty(0, np.uint64)).size == 0
            found.append(bucket)
    assert found == expected


def test_a_lone_surrogate_hashes_like_a_question_mark():
    functions = hash_functions_of(LocalHash.from_epsilon(1.0, 26), FINGERPRINT)
    assert functions.words(["a\udc80"]) == functions.words(["a?"])


def test_functions_depend_on_the_fingerprint():
    """Of two collections, and of two values in one, the hashes agree in a g-th of the functions.

    False-alarm rate 1e-6 in all. Functions that ignored the fingerprint would agree in all.
    """
    mechanism = LocalHash.from_epsilon(1.0)
    numbers = np.arange(mechanism.hash_functions)
    first, second = (HashFunctions(mechanism, fingerprint) for fingerprint in (1, 2))

    def hashed(functions, text):
        return functions.buckets(np.repeat(functions.words([text]), len(numbers)), numbers)

    bound = NormalDist().inv_cdf(1 - FALSE_ALARM / 4) * np.sqrt(2 / 9 / len(numbers))
    assert abs((hashed(first, "a") == hashed(second, "a")).mean() - 1 / 3) < bound
    assert abs((hashed(first, "a") == hashed(first, "b")).mean() - 1 / 3) < bound


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.0, 4.0])
def test_collisions_of_many_values_have_the_stated_mean_and_variance(epsilon):
    """19,900 pairs of 200 values: uncorrelated, so mean and mean square have known errors.

    False-alarm rate 1e-6 each, with normal quantiles and a fifth more for the square, whose pairs have
    somewhat heavier tails. A family that hashes one pair in 1,000 alike under all functions is caught: it
    adds (1 - 1/g)^2 / 1,000 to a mean square of about 1 / 65,536.
    """
    mechanism = LocalHash.from_epsilon(epsilon)
    functions, g = HashFunctions(mechanism, FINGERPRINT), mechanism.hash_buckets
    words, numbers = functions.words([f"value {i}" for i in range(200)]), np.arange(mechanism.hash_functions)
    hashed = np.stack([functions.buckets(np.repeat(word, len(numbers)), numbers) for word in words])
    share = np.zeros((200, 200))
    for bucket in range(g):
        held = (hashed == bucket).astype(np.float32)
        share += held @ held.T
    excess = (share / len(numbers) - 1 / g)[np.triu_indices(200, 1)]
    expected = (1 - 1 / g) / g / len(numbers)
    quantile = NormalDist().inv_cdf(1 - FALSE_ALARM / 2)
    assert abs(excess.mean()) < quantile * np.sqrt(expected / len(excess))
    assert abs((excess**2).mean() / expected - 1) < 1.2 * quantile * np.sqrt(2 / len(excess))
