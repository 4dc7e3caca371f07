"""Longitudinal k-RR: the composite channel, and both epsilons from exact integers."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from tests.support.messages import PinMessages

WORDS = 1 << 64


def within(ratio: Fraction, epsilon: float) -> bool:
    """True when ln(ratio) <= epsilon, in 90 digits."""
    with localcontext(prec=90):
        return Decimal(ratio.numerator) / Decimal(ratio.denominator) <= Decimal(epsilon).exp()


def exact_channel(mechanism: KRR) -> list[list[Fraction]]:
    """P(report y | truth x) as [x][y], with the words that multiply-shift maps to each other value."""
    k, truth = mechanism.k, Fraction(mechanism.threshold, WORDS)
    starts = [-(-number * WORDS // (k - 1)) for number in range(k)]
    lies = [(1 - truth) * Fraction(starts[i + 1] - starts[i], WORDS) for i in range(k - 1)]
    return [[*lies[:x], truth, *lies[x:]] for x in range(k)]


def worst_ratio(mechanism: LongitudinalKRR) -> Fraction:
    """Largest P(y|x) / P(y|w) over all reports and pairs of truths, by summing over permanent responses."""
    first, second = exact_channel(mechanism.permanent), exact_channel(mechanism.instantaneous)
    k = mechanism.k
    both = [[sum(first[x][z] * second[z][y] for z in range(k)) for y in range(k)] for x in range(k)]
    return max(max(row[y] for row in both) / min(row[y] for row in both) for y in range(k))


@pytest.mark.slow
@settings(max_examples=50)
@given(st.integers(2, 7), st.floats(1e-3, 16), st.floats(0.01, 0.99))
def test_both_epsilons_are_reached_and_not_exceeded(k, epsilon_inf, part):
    epsilon_one = part * epsilon_inf
    mechanism = LongitudinalKRR.from_epsilons(k, epsilon_inf, epsilon_one)
    assert mechanism.epsilon_inf <= epsilon_inf
    assert mechanism.epsilon_one <= epsilon_one
    ratio = worst_ratio(mechanism)
    assert within(ratio, mechanism.epsilon_one)
    assert not within(ratio, mechanism.epsilon_one * (1 - 2**-40))
    bolder = KRR(k, min(mechanism.instantaneous.threshold + (1 << 30), WORDS - 1))
    assert not within(worst_ratio(LongitudinalKRR(mechanism.permanent, bolder)), epsilon_one * (1 - 2**-40))


@given(st.integers(2, 1 << 31), st.floats(0.01, 16), st.floats(0.01, 0.99))
def test_epsilon_one_is_bracketed_for_any_k(k, epsilon_inf, part):
    """Lower bracket: the least likely truth over the likeliest lie, with word shares rounded inwards."""
    epsilon_one = part * epsilon_inf
    mechanism = LongitudinalKRR.from_epsilons(k, epsilon_inf, epsilon_one)
    truth, again = (Fraction(m.threshold, WORDS) for m in (mechanism.permanent, mechanism.instantaneous))
    rare, common = Fraction(WORDS // (k - 1), WORDS), Fraction(-(-WORDS // (k - 1)), WORDS)
    lie = (1 - truth) * common
    least = truth * again + (1 - truth) * (1 - again) * rare
    most = lie * again + (1 - lie) * (1 - again) * common
    assert not within(least / most, epsilon_one - 2**-30)
    assert mechanism.epsilon_one <= epsilon_one


@given(st.integers(2, 1 << 31), st.floats(0.01, 8), st.floats(0.1, 0.9))
def test_composite_is_symmetric_and_its_rows_sum_to_1(k, epsilon_inf, part):
    mechanism = LongitudinalKRR.from_epsilons(k, epsilon_inf, part * epsilon_inf)
    assert mechanism.p + (k - 1) * mechanism.q == pytest.approx(1, rel=1e-12)
    assert mechanism.contrast == pytest.approx(
        mechanism.permanent.contrast * mechanism.instantaneous.contrast, rel=1e-12
    )
    assert mechanism.p - mechanism.q == pytest.approx(mechanism.contrast, abs=1e-15)


def test_composite_channel_is_the_product_of_the_two():
    mechanism = LongitudinalKRR(KRR.from_epsilon(5, 2.0), KRR.from_epsilon(5, 1.0))
    product = mechanism.instantaneous.channel @ mechanism.permanent.channel
    np.testing.assert_allclose(mechanism.channel, product, rtol=1e-12)


def test_epsilon_one_is_at_most_epsilon_inf():
    mechanism = LongitudinalKRR(KRR.from_epsilon(1 << 31, 1.0), KRR(1 << 31, WORDS - 1))
    assert mechanism.epsilon_one <= mechanism.epsilon_inf
    assert mechanism.epsilon == mechanism.epsilon_one


def test_epsilon_one_between_realised_and_declared_epsilon_inf_is_kept():
    """No threshold in 2^64 words makes the second step more truthful than the target requires."""
    between = math.nextafter(1.0, 0)
    assert KRR.from_epsilon(1 << 31, 1.0).epsilon < between
    mechanism = LongitudinalKRR.from_epsilons(1 << 31, 1.0, between)
    assert mechanism.instantaneous.threshold == WORDS - 1
    assert mechanism.epsilon_one <= between


def test_width_cohorts_and_parameters():
    mechanism = LongitudinalKRR(KRR(4, 3 << 62), KRR(4, 1 << 63))
    assert (mechanism.k, mechanism.width, mechanism.cohorts) == (4, 4, 1)
    assert mechanism.parameters() == {
        "kind": "k-rr-longitudinal",
        "k": 4,
        "permanent_threshold": 3 << 62,
        "instantaneous_threshold": 1 << 63,
    }


def test_too_small_epsilon_one_is_rejected_with_the_least_one():
    with pytest.raises(ValueError, match="epsilon_one") as refused:
        LongitudinalKRR.from_epsilons(1_000_000, 1.0, 1e-20)
    least = float(str(refused.value).split("[")[1].split(",")[0])
    assert LongitudinalKRR.from_epsilons(1_000_000, 1.0, least).epsilon_one == least


def test_messages(pin_messages: PinMessages) -> None:
    chosen = LongitudinalKRR.from_epsilons
    infinite, one = (-1.0, 0.0, 16.1, math.nan), (-1.0, 0.0, 2.0, 3.0, math.nan)
    pin_messages(
        {f"epsilon_inf is {each}": partial(chosen, 4, each, 1.0) for each in infinite}
        | {f"epsilon_one is {each}": partial(chosen, 4, 2.0, each) for each in one}
        | {"epsilon_one is too small for k": partial(chosen, 1_000_000, 1.0, 1e-20)}
        | {
            "steps of different k": lambda: LongitudinalKRR(
                KRR.from_epsilon(3, 1.0), KRR.from_epsilon(4, 1.0)
            )
        }
    )
