"""Local hashing: its exact epsilon, the choice of buckets, and the probabilities that estimates invert."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.hashing.function_block import block_of, is_prime
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash, best_buckets
from deniable.estimators.mechanisms.krr import WORDS, rarest
from tests.estimators.mechanisms.test_longitudinal_krr import exact_channel, within
from tests.support.messages import PinMessages

PRIMES = [number for number in range(2, 252) if is_prime(number)]


@given(st.floats(0.01, 16), st.sampled_from([None, 2, 3, 7, 53, 251]))
def test_epsilon_is_reached_and_not_exceeded(epsilon, buckets):
    """The function is drawn whatever the value is, so the worst ratio of two reports is that of k-RR."""
    mechanism = LocalHash.from_epsilon(epsilon, hash_buckets=buckets)
    assert mechanism.epsilon <= epsilon
    truth = Fraction(mechanism.threshold, WORDS)
    ratio = truth / ((1 - truth) * Fraction(rarest(mechanism.hash_buckets), WORDS))
    assert within(ratio, mechanism.epsilon)
    assert not within(ratio, mechanism.epsilon * (1 - 2**-40))
    above = Fraction(min(mechanism.threshold + 1, WORDS - 1), WORDS)
    bolder = above / ((1 - above) * Fraction(rarest(mechanism.hash_buckets), WORDS))
    assert mechanism.threshold == WORDS - 1 or not within(bolder, epsilon)


@pytest.mark.slow
def test_probabilities_are_those_of_the_exact_channel():
    """By enumeration of all reports of two values under one block of functions, in exact fractions."""
    mechanism = LocalHash.from_epsilon(1.0, hash_functions=26)
    table, channel = block_of(3).table, exact_channel(mechanism.response)
    pairs = [(x, y) for x in range(0, 729, 40) for y in range(0, 729, 27)]
    hits = {sum(channel[table[c, x]][table[c, x]] for c in range(26)) / 26 for x, _ in pairs}
    assert [float(hit) for hit in hits] == [mechanism.hit]
    over_all = [
        sum(channel[table[c, x]][table[c, y]] for c in range(26) for y in range(729)) / (26 * 729)
        for x in (0, 1, 500)
    ]
    assert [float(share) for share in over_all] == pytest.approx([mechanism.miss] * 3, rel=1e-15)
    assert mechanism.contrast == pytest.approx(mechanism.hit - mechanism.miss, rel=1e-14)
    worst = max(
        channel[table[c, x]][b] / channel[table[c, y]][b]
        for c in range(26)
        for x, y in pairs
        for b in range(3)
    )
    assert within(worst, mechanism.epsilon)


@pytest.mark.parametrize(
    ("epsilon", "buckets"),
    [(0.1, 2), (0.5, 3), (1.0, 3), (1.5, 5), (2.0, 7), (3.0, 23), (4.0, 53), (9.0, 251)],
)
def test_best_buckets_have_the_least_variance(epsilon, buckets):
    """Against every prime, by the thresholds of its k-RR; and within 3.1 % of the optimum of real g."""

    def variance(g):
        mechanism = LocalHash.from_epsilon(epsilon, hash_buckets=g)
        return mechanism.miss * (1 - mechanism.miss) / mechanism.contrast**2

    assert best_buckets(epsilon) == buckets == min(PRIMES, key=variance)
    optimum = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    assert optimum * (1 - 1e-9) <= variance(buckets)
    assert buckets == 251 or variance(buckets) <= 1.031 * optimum


def test_default_number_of_functions_fills_a_page_of_counters():
    for epsilon in np.linspace(0.1, 6, 60):
        mechanism = LocalHash.from_epsilon(float(epsilon))
        step = block_of(mechanism.hash_buckets).functions
        assert mechanism.hash_functions % step == 0
        assert 2**16 - (step + 1) * mechanism.hash_buckets < mechanism.width <= 2**16


def test_number_of_functions_is_rounded_down_to_whole_blocks():
    assert LocalHash.from_epsilon(1.0, hash_functions=1000).hash_functions == 988
    assert LocalHash.from_epsilon(1.0, 70, 7).parameters() == {
        "kind": "local-hash",
        "hash_functions": 64,
        "hash_buckets": 7,
        "threshold": LocalHash.from_epsilon(1.0, 70, 7).response.threshold,
    }


def test_messages(pin_messages: PinMessages) -> None:
    chosen = LocalHash.from_epsilon
    pin_messages(
        {"epsilon is 0": partial(chosen, 0.0)}
        | {f"{each} hash functions": partial(chosen, 1.0, each) for each in (25, 349_526)}
        | {f"{each} hash buckets": partial(chosen, 1.0, None, each) for each in (4, 257)}
        | {
            "part of a block of functions": partial(LocalHash, 27, 3, WORDS // 2),
            "a threshold of chance": partial(LocalHash, 26, 3, WORDS // 3),
        }
    )
