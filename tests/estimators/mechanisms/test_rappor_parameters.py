"""f, p and q from two epsilons: neither is exceeded, both are reached if possible, error is minimal."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_bits import choose_thresholds
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from tests.support.messages import PinMessages


def variance(p_star, q_star):
    return p_star * (1 - p_star) / (q_star - p_star) ** 2


@given(st.integers(1, 16), st.floats(0.01, 40), st.floats(0.01, 1))
def test_both_epsilons_are_reached_within_32_bits(hashes, epsilon_inf, part):
    epsilon_one = part * epsilon_inf
    mechanism = Rappor(128, hashes, 8, *choose_thresholds(hashes, epsilon_inf, epsilon_one))
    assert mechanism.epsilon_inf <= epsilon_inf
    assert mechanism.epsilon_one <= epsilon_one
    if epsilon_inf / hashes <= 20:  # f is not the smallest possible
        assert mechanism.epsilon_inf >= epsilon_inf * (1 - 1e-4)
        assert mechanism.epsilon_one >= epsilon_one * (1 - 1e-3)


@pytest.mark.parametrize(
    ("hashes", "epsilon_inf", "epsilon_one"),
    [(2, 10.39088168983715, 1.0), (3, 6.7297986830701884e-06, 6.705324997826774e-06)],
)
def test_float_rounding_never_exceeds_an_epsilon(hashes, epsilon_inf, epsilon_one):
    """Cases where float arithmetic alone makes f or p one unit too low."""
    mechanism = Rappor(128, hashes, 8, *choose_thresholds(hashes, epsilon_inf, epsilon_one))
    assert mechanism.epsilon_inf <= epsilon_inf
    assert mechanism.epsilon_one <= epsilon_one


@pytest.mark.slow
@pytest.mark.parametrize("ones", [1, 2])
@pytest.mark.parametrize("epsilon_inf", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 1.0])
def test_no_other_feasible_choice_has_less_variance(ones, epsilon_inf, part):
    """All f, p and q on a grid. Its best is within a quarter, so the grid is fine enough to be a test."""
    epsilon_one = part * epsilon_inf
    mechanism = HotRappor(8, ones, *choose_thresholds(ones, epsilon_inf, epsilon_one))
    least_flip = 1 / (1 + math.exp(epsilon_inf / (2 * ones)))
    flip, p, q = np.meshgrid(
        np.linspace(least_flip, 0.5, 12, endpoint=False),
        np.linspace(0, 1, 250),
        np.linspace(0, 1, 250),
        sparse=True,
    )
    p_star, q_star = p * (1 - flip) + q * flip, q * (1 - flip) + p * flip
    kept = (p_star < q_star) & (
        q_star * (1 - p_star) <= p_star * (1 - q_star) * math.exp(epsilon_one / ones) * (1 + 1e-12)
    )
    best = variance(p_star[kept], q_star[kept]).min()
    chosen = variance(mechanism.p_star, mechanism.q_star)
    assert chosen <= best * (1 + 1e-6)
    assert best <= chosen * 1.25


def test_large_epsilon_inf_gives_optimized_unary_encoding():
    mechanism = HotRappor(8, 1, *choose_thresholds(1, 8.0, 1.0))
    assert mechanism.q_star == pytest.approx(0.5, abs=1e-8)
    assert mechanism.p_star == pytest.approx(1 / (math.e + 1), abs=1e-8)


def test_equal_epsilons_need_no_instantaneous_step():
    flip, p, q = choose_thresholds(1, 2.0, 2.0)
    assert (p, q) == (1, (1 << 32) - 1)
    assert flip == pytest.approx((1 << 32) / (1 + math.e), rel=1e-8)


@pytest.mark.parametrize(("ones", "epsilon_inf"), [(1, 1e-6), (16, 16e-6), (1, 64.0), (3, 1.0)])
def test_smallest_epsilon_one_can_be_reached(ones, epsilon_inf):
    mechanism = HotRappor(64, ones, *choose_thresholds(ones, epsilon_inf, 1e-6 * ones))
    assert mechanism.epsilon_one <= 1e-6 * ones
    assert mechanism.epsilon_inf <= epsilon_inf


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages(
        {"no ones": partial(choose_thresholds, 0, 2.0, 1.0)}
        | {
            f"epsilon_inf is {each}": partial(choose_thresholds, 1, each, 1.0)
            for each in (0.0, 65.0, math.nan)
        }
        | {
            f"epsilon_one is {each}": partial(choose_thresholds, 2, 2.0, each)
            for each in (1e-6, 2.5, math.nan)
        }
    )
