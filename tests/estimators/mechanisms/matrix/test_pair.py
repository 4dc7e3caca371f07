"""The channel of a pair is a Kronecker product, and its epsilon is never below the truth."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from tests.estimators.mechanisms.test_krr import within, words_of, worst_ratio
from tests.support.messages import PinMessages

WORDS = 1 << 64


def exact_channel(field: KRR) -> list[list[Fraction]]:
    """P(report | truth) of the code, by counting words."""
    truth = Fraction(field.threshold, WORDS)
    others = [(1 - truth) * Fraction(words_of(number, field.k), WORDS) for number in range(field.k - 1)]
    return [[*others[:true], truth, *others[true:]] for true in range(field.k)]


def test_epsilon_is_the_largest_ratio_of_all_pairs_and_reports():
    """By enumeration, in fractions; the float is the next one above."""
    mechanism = PairKRR.from_epsilons(3, 4, 0.7, 1.3)
    first, second = map(exact_channel, mechanism.fields)
    rows = [[x * y for x in one for y in other] for one in first for other in second]
    assert all(sum(row) == 1 for row in rows)
    ratio = max(max(column) / min(column) for column in zip(*rows, strict=True))
    assert within(ratio, mechanism.epsilon)
    assert not within(ratio, math.nextafter(mechanism.epsilon, 0))
    np.testing.assert_allclose(mechanism.channel, np.array(rows, float).T, rtol=1e-12)


@given(st.integers(2, 40), st.integers(2, 50), st.floats(1e-3, 8), st.floats(1e-3, 8))
def test_epsilon_is_at_most_the_sum_of_those_declared(k1, k2, one, other):
    mechanism = PairKRR.from_epsilons(k1, k2, one, other)
    thresholds = ((field.k, field.threshold) for field in mechanism.fields)
    ratio = math.prod(worst_ratio(k, threshold, WORDS // (k - 1)) for k, threshold in thresholds)
    assert within(ratio, mechanism.epsilon)
    assert mechanism.epsilon <= math.nextafter(one + other, math.inf)
    assert mechanism.epsilon > max(field.epsilon for field in mechanism.fields)


def test_parameters_name_both_fields():
    first, second = KRR(3, WORDS // 2), KRR(4, WORDS // 3)
    assert PairKRR(first, second).parameters() == {
        "kind": "k-rr-pair",
        "first_k": 3,
        "first_threshold": WORDS // 2,
        "second_k": 4,
        "second_threshold": WORDS // 3,
    }


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages(
        {
            "too many pairs of values": partial(PairKRR.from_epsilons, 40, 51, 1, 1),
            "an epsilon of both fields above 16": partial(PairKRR.from_epsilons, 5, 4, 8, 9),
        }
    )
