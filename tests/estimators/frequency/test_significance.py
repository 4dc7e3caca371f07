"""Tests of frequency > 0 are valid, and Benjamini and Hochberg's rule selects among them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.estimators.frequency.estimate import shown_interval
from deniable.estimators.frequency.significance import benjamini_hochberg, binomial_tail, normal_tail


def exact_tail(count: int, trials: int, probability: Fraction) -> Fraction:
    """P(X >= count) for binomial X."""
    terms = (
        math.comb(trials, i) * probability**i * (1 - probability) ** (trials - i)
        for i in range(count, trials + 1)
    )
    return sum(terms, Fraction(0))


def test_normal_tail_keeps_its_digits_far_out():
    """Published values of the normal distribution; Q(10) and Q(30) to 12 digits."""
    z = np.array([-1.0, 0.0, 1.6448536269514722, 1.959963984540054, 10.0, 30.0])
    expected = [0.8413447460685429, 0.5, 0.05, 0.025, 7.619853024160525e-24, 4.906713927148187e-198]
    np.testing.assert_allclose(normal_tail(z), expected, rtol=1e-12)


@settings(max_examples=50)
@given(st.integers(1, 60), st.integers(1, 99), st.data())
def test_binomial_tail_is_a_close_upper_bound(trials, percent, data):
    count = data.draw(st.integers(0, trials))
    probability = Fraction(percent, 100)
    (tail,) = binomial_tail(np.array([count]), trials, float(probability))
    assert tail >= float(exact_tail(count, trials, probability)) * (1 - 1e-9)
    if count - 1 > trials * probability:
        assert tail <= float(exact_tail(count - 1, trials, probability)) * (1 + 1e-9)


def test_binomial_tail_of_rare_counts_is_close_to_poisson():
    """With 0.5 expected of a million, seven or more have 1.0e-6 by Poisson, but 2e-20 by the normal tail."""
    (tail,) = binomial_tail(np.array([7]), 1_000_000, 5e-7)
    assert 1.0e-6 < tail < 1.42e-5


def test_example_of_benjamini_and_hochberg():
    """Section 3.2 of the paper: of fifteen p-values, the four smallest are rejected at 5 %."""
    p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    p_values += [0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    shuffled = np.array(p_values)[::-1]
    assert benjamini_hochberg(shuffled)[::-1].tolist() == [True] * 4 + [False] * 11


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_benjamini_hochberg_matches_its_definition(p_values):
    ranked = sorted(p_values)
    limits = [p for rank, p in enumerate(ranked, 1) if p <= 0.05 * rank / len(ranked)]
    expected = [bool(limits) and p <= max(limits) for p in p_values]
    assert benjamini_hochberg(np.array(p_values)).tolist() == expected


def test_shown_interval_is_clipped_and_contains_the_estimate():
    low, high = shown_interval(
        np.array([-0.2, 0.3, -0.3, 0.9]), np.array([0.1, 0.4, -0.1, 1.2]), np.array([0.0, 0.45, 0.02, 0.95])
    )
    assert low.tolist() == [0.0, 0.3, 0.0, 0.9]
    assert high.tolist() == [0.1, 0.45, 0.02, 1.0]


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_false_discoveries_stay_at_the_rate(rate):
    """Uniform p-values: a share `rate` of 2,000 rounds has a discovery, within 5 sigma (false alarm 6e-7).

    Defect caught: a rate twice as high, 10 sigma away.
    """
    from tests.support.estimators.simulation import generator

    rounds = generator(1).random((2000, 50))
    found = sum(bool(benjamini_hochberg(p_values, rate).any()) for p_values in rounds) / 2000
    assert abs(found - rate) < 5 * math.sqrt(rate * (1 - rate) / 2000)
