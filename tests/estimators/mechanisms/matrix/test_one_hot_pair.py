"""A bit for each pair: the epsilon of one-hot bits, whatever the number of pairs; wrong shapes are named."""

import math
from fractions import Fraction

import pytest

from estimators.mechanisms.matrix.one_hot_pair import OneHotPair

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


@pytest.mark.parametrize(
    ("buckets", "hot", "flip", "columns", "message"),
    [
        (2040, 1, 0, 51, "pairs of values must be at most 2000, got 2040"),
        (12, 1, 0, 5, "columns must be at least 2 and divide buckets = 12 into at least 2 rows, got 5"),
        (12, 1, 0, 1, "columns must be at least 2 and divide buckets = 12 into at least 2 rows, got 1"),
        (12, 1, 0, 12, "columns must be at least 2 and divide buckets = 12 into at least 2 rows, got 12"),
        (12, 2, 0, 3, "hot must be 1 and flip_threshold 0 for pairs, got 2 and 0"),
        (12, 1, 9, 3, "hot must be 1 and flip_threshold 0 for pairs, got 1 and 9"),
    ],
)
def test_other_shapes_are_refused(buckets, hot, flip, columns, message):
    with pytest.raises(ValueError, match=message):
        OneHotPair(buckets, hot, flip, WORDS // 4, WORDS // 2, columns)


@pytest.mark.parametrize("epsilon", [0, 17, math.nan])
def test_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(ValueError, match=r"epsilon must be in \[1e-06, 16.0\], got|\[1e-06, 16\], got"):
        OneHotPair.from_epsilon(2, 2, epsilon)
