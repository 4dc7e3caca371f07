"""The thresholds of k-RR never exceed the declared epsilon."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.krr import KRR
from tests.support.messages import PinMessages

WORDS = 1 << 64


def words_of(number: int, k: int) -> int:
    """Number of 64-bit words that multiply-shift maps to this one of k - 1: those in [start, next start)."""
    return -(-(number + 1) * WORDS // (k - 1)) + (number * -WORDS // (k - 1))


def worst_ratio(k: int, threshold: int, rarest: int) -> Fraction:
    truth = Fraction(threshold, WORDS)
    return truth / ((1 - truth) * Fraction(rarest, WORDS))


def within(ratio: Fraction, epsilon: float) -> bool:
    """True when ln(ratio) <= epsilon, in 90 digits."""
    with localcontext(prec=90):
        return Decimal(ratio.numerator) / Decimal(ratio.denominator) <= Decimal(epsilon).exp()


@given(st.integers(2, 1 << 31), st.floats(1e-6, 16))
@example(2, math.log(3))
@example(1 << 31, 16.0)
@example((1 << 31) - 1, 0.1)
def test_threshold_is_the_largest_within_epsilon(k, epsilon):
    mechanism = KRR.from_epsilon(k, epsilon)
    rarest = WORDS // (k - 1)
    assert within(worst_ratio(k, mechanism.threshold, rarest), epsilon)
    assert not within(worst_ratio(k, mechanism.threshold + 1, rarest), epsilon)
    assert within(worst_ratio(k, mechanism.threshold, rarest), mechanism.epsilon)
    assert mechanism.epsilon <= epsilon
    assert not within(worst_ratio(k, mechanism.threshold, rarest), math.nextafter(mechanism.epsilon, 0))


@pytest.mark.parametrize("k", [2, 3, 4, 7, 17, 1001])
def test_other_values_get_equal_shares_within_one_word(k):
    shares = [words_of(number, k) for number in range(k - 1)]
    assert sum(shares) == WORDS
    assert min(shares) == WORDS // (k - 1)
    assert max(shares) <= min(shares) + 1


@pytest.mark.slow
@given(st.integers(2, 1 << 31), st.data())
def test_truth_is_likelier_than_any_other_value(k, data):
    """So p / smallest q is the worst ratio: no probability exceeds p or is below the smallest q."""
    mechanism = KRR.from_epsilon(k, 1e-6)
    number = data.draw(st.integers(0, k - 2))
    lie = (1 - Fraction(mechanism.threshold, WORDS)) * Fraction(words_of(number, k), WORDS)
    assert lie < Fraction(mechanism.threshold, WORDS)


def test_probabilities_are_those_of_the_thresholds():
    mechanism = KRR.from_epsilon(4, math.log(9))
    assert mechanism.p == pytest.approx(0.75, rel=1e-15)
    assert mechanism.q == pytest.approx(1 / 12, rel=1e-15)
    assert mechanism.contrast == pytest.approx(2 / 3, rel=1e-15)
    assert KRR(2, (1 << 62) * 3).p == 0.75


@pytest.mark.parametrize(("k", "odds"), [(2, 3), (4, 9)])
def test_epsilon_at_p_three_quarters_matches_published_values(k, odds):
    mechanism = KRR.from_probability(k, 0.75)
    assert mechanism == KRR(k, 3 << 62)
    assert mechanism.epsilon == pytest.approx(math.log(odds), rel=1e-15)
    assert within(worst_ratio(k, mechanism.threshold, WORDS // (k - 1)), mechanism.epsilon)


@given(st.integers(2, 1 << 31), st.floats(0.51, 1, exclude_max=True))
def test_p_is_rounded_down_by_less_than_a_word(k, p):
    assert 0 <= Fraction(p) * WORDS - KRR.from_probability(k, p).threshold < 1


def test_channel_has_the_truth_on_its_diagonal():
    np.testing.assert_array_equal(
        KRR(3, 1 << 63).channel, [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]
    )


def test_contrast_is_positive_if_p_and_q_round_alike():
    mechanism = KRR(2, (1 << 63) + 1)
    assert mechanism.p == mechanism.q == 0.5
    assert mechanism.contrast == 2.0**-63


def test_width_cohorts_and_parameters():
    mechanism = KRR(16, 1 << 63)
    assert (mechanism.width, mechanism.cohorts) == (16, 1)
    assert mechanism.parameters() == {"kind": "k-rr", "k": 16, "threshold": 1 << 63}


def test_messages(pin_messages: PinMessages) -> None:
    """At p = 1/4 = q, reports of four values carry no information."""
    pin_messages(
        {f"p is {p}": partial(KRR.from_probability, 4, p) for p in (-0.5, 0.0, 0.25, 1.0, math.nan)}
        | {f"epsilon is {e}": partial(KRR.from_epsilon, 16, e) for e in (-1.0, 0.0, 16.1, math.nan, math.inf)}
        | {f"k is {k}, of epsilon": partial(KRR.from_epsilon, k, 1.0) for k in (1, (1 << 31) + 1)}
        | {f"k is {k}, of p": partial(KRR.from_probability, k, 0.75) for k in (1, (1 << 31) + 1)}
        | {f"k is {k}": partial(KRR, k, 1 << 63) for k in (1, (1 << 31) + 1)}
        | {"epsilon is too small for k": partial(KRR.from_epsilon, 1_000_000, 1e-15)}
        | {f"threshold is {each}": partial(KRR, 4, each) for each in (0, 1 << 62, 1 << 64)}
    )


def test_least_epsilon_in_the_message_is_accepted():
    with pytest.raises(ValueError, match="epsilon") as refused:
        KRR.from_epsilon(1_000_000, 1e-15)
    least = float(str(refused.value).split("[")[1].split(",")[0])
    assert KRR.from_epsilon(1_000_000, least).epsilon == least
