"""A bit for each pair: the epsilon of one-hot bits, whatever the number of pairs; wrong shapes are named."""

import math
from fractions import Fraction
from functools import partial

import pytest

from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from tests.support.messages import PinMessages

WORDS = 1 << 32


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 16.0])
def test_epsilon_is_that_of_two_bits_and_at_most_the_declared_one(epsilon):
    """Two pairs differ in two bits: the largest ratio is q (1 - p) / (p (1 - q)), in fractions."""
    mechanism = OneHotPair.from_epsilon(17, 105, epsilon)
    p, q = Fraction(mechanism.p_threshold, WORDS), Fraction(mechanism.q_threshold, WORDS)
    assert mechanism.epsilon >= math.log(q * (1 - p) / (p * (1 - q))) - 1e-15
    assert mechanism.epsilon <= epsilon
    assert mechanism.epsilon == pytest.approx(epsilon, rel=2e-3)
    assert mechanism.epsilon == OneHotPair.from_epsilon(2, 2, epsilon).epsilon


def test_parameters_have_the_shape():
    mechanism = OneHotPair.from_epsilon(3, 4, 2.0)
    assert mechanism.parameters() == {
        "kind": "one-hot-pair",
        "first_k": 3,
        "second_k": 4,
        "p_threshold": mechanism.p_threshold,
        "q_threshold": WORDS // 2,
    }
    assert (mechanism.name, mechanism.shape, mechanism.bits) == ("one-hot-pair", (3, 4), 16)


def test_messages(pin_messages: PinMessages) -> None:
    def shape(buckets: int, hot: int, flip: int, columns: int) -> OneHotPair:
        return OneHotPair(buckets, hot, flip, WORDS // 4, WORDS // 2, columns)

    pin_messages(
        {"too many pairs of values": lambda: shape(2040, 1, 0, 51)}
        | {f"columns is {each}": partial(shape, 12, 1, 0, each) for each in (5, 1, 12)}
        | {
            "two hot bits": lambda: shape(12, 2, 0, 3),
            "a permanent response": lambda: shape(12, 1, 9, 3),
        }
        | {f"epsilon is {each}": partial(OneHotPair.from_epsilon, 2, 2, each) for each in (0, 17, math.nan)}
    )
