"""Exact composition agrees with golden vectors, exact fractions and dp-accounting; bounds are ordered."""

import math
from collections import Counter
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.estimators.accounting.composition import delta_at, epsilon_at
from deniable.estimators.accounting.privacy_loss import PrivacyLoss, bits_loss, krr_loss
from deniable.estimators.accounting.renyi import epsilon_from_renyi, epsilon_from_rho, zcdp_rho
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from tests.support.estimators.accounting_vectors import VECTORS, ideal_krr, loss_of
from tests.support.messages import PinMessages

BLOOM = HotRappor.from_probabilities(128, 2, f=0.25, p=0.35, q=0.65)


def test_delta_matches_the_vectors() -> None:
    for row in VECTORS["composition"]:
        delta = delta_at(loss_of(row).times(row["reports"]), row["total_epsilon"])
        assert delta == pytest.approx(row["delta"], rel=1e-8), row


def exact_delta(up: Fraction, down: Fraction, copies: int, odds: Fraction) -> Fraction:
    """Delta at epsilon ln(odds) by convolution in fractions."""
    one = {1: up, 0: 1 - up - down, -1: down}
    composed = Counter({0: Fraction(1)})
    for _ in range(copies):
        following: Counter[int] = Counter()
        for so_far, mass in composed.items():
            for loss, chance in one.items():
                following[so_far + loss] += mass * chance
        composed = following
    return sum(
        (max(mass * (1 - odds / (up / down) ** loss), Fraction(0)) for loss, mass in composed.items()),
        Fraction(0),
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    ratio=st.fractions(Fraction(21, 20), 20, max_denominator=50),
    silent=st.fractions(0, Fraction(99, 100), max_denominator=100),
    copies=st.integers(1, 40),
    share=st.floats(0, 0.999),
)
def test_delta_is_a_close_upper_bound(ratio: Fraction, silent: Fraction, copies: int, share: float) -> None:
    up = (1 - silent) * ratio / (1 + ratio)
    loss = PrivacyLoss.of_three_atoms(up, up / ratio, copies)
    epsilon = share * loss.largest
    truth = exact_delta(up, up / ratio, copies, Fraction(math.exp(epsilon)))
    assert float(truth) * (1 - 1e-13) <= delta_at(loss, epsilon) <= float(truth) * (1 + 1e-9) + 1e-14


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(
    k=st.integers(2, 10_000),
    epsilon=st.floats(0.01, 8),
    reports=st.integers(1, 300),
    delta=st.sampled_from([1e-12, 1e-6, 1e-3, 0.1]),
)
def test_bounds_are_ordered(k: int, epsilon: float, reports: int, delta: float) -> None:
    loss = krr_loss(KRR.from_epsilon(k, epsilon)).times(reports)
    exact, rdp = epsilon_at(loss, delta), epsilon_from_renyi(loss, delta)
    assert exact <= rdp * (1 + 1e-12)
    assert rdp <= min(loss.largest, epsilon_from_rho(zcdp_rho(loss), delta)) * (1 + 1e-12)


@pytest.mark.parametrize("loss", [ideal_krr(16, 1.0).times(20), bits_loss(BLOOM).times(20)])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_epsilon_at_delta_inverts_delta_at_epsilon(loss: PrivacyLoss, delta: float) -> None:
    epsilon = epsilon_at(loss, delta)
    assert delta_at(loss, epsilon) <= delta < delta_at(loss, epsilon * (1 - 1e-9))


def test_epsilon_is_0_for_large_delta() -> None:
    loss = ideal_krr(16, 0.1)
    assert epsilon_at(loss, 0.5) == 0.0
    assert epsilon_at(loss, 1e-90) == loss.largest


def theirs(loss: PrivacyLoss, delta: float, pessimistic: bool, interval: float) -> float:
    """Epsilon at delta by the accountant of dp-accounting, on its own lattice."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # half a second

    under_p = {output: math.log(mass) for output, mass in enumerate(loss.mass) if mass > 0}
    under_q = {output: under_p[output] - loss.losses[output] for output in under_p}
    one = pld.from_two_probability_mass_functions(
        under_p, under_q, pessimistic_estimate=pessimistic, value_discretization_interval=interval
    )
    return float(one.self_compose(loss.copies).get_epsilon_for_delta(delta))


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    [
        krr_loss(KRR.from_epsilon(2, 0.5)).times(10),
        krr_loss(KRR.from_epsilon(16, 1.0)).times(20),
        krr_loss(KRR.from_epsilon(1000, 2.0)).times(100),
        bits_loss(BLOOM).times(15),
    ],
)
@pytest.mark.parametrize("delta", [1e-8, pytest.param(1e-4, marks=pytest.mark.nightly)])
def test_dp_accounting_agrees_within_its_discretization(loss: PrivacyLoss, delta: float) -> None:
    interval = 1e-4
    exact = epsilon_at(loss, delta)
    above = theirs(loss, delta, pessimistic=True, interval=interval)
    assert exact * (1 - 1e-9) <= above <= exact + interval * loss.copies
    # dp-accounting truncates a mass of 1e-15 and adds it to delta.
    below = theirs(loss, delta, pessimistic=False, interval=interval)
    assert below <= epsilon_at(loss, delta - 2e-15) * (1 + 1e-9)


def test_ten_thousand_reports_compose_fast_and_accurately() -> None:
    loss = krr_loss(KRR.from_epsilon(16, 0.1)).times(10_000)
    epsilon = epsilon_at(loss, 1e-6)
    mean, variance = loss.copies * loss.mass @ loss.losses, loss.copies * loss.mass @ loss.losses**2
    # The loss is nearly normal, its variance twice its mean: delta = P(Z > a) - e^epsilon P(Z > a + sd).
    deviation = math.sqrt(variance)
    a = (epsilon - mean) / deviation
    normal = (
        math.erfc(a / math.sqrt(2)) / 2 - math.exp(epsilon) * math.erfc((a + deviation) / math.sqrt(2)) / 2
    )
    assert normal == pytest.approx(1e-6, rel=0.1)


def test_messages(pin_messages: PinMessages) -> None:
    loss = ideal_krr(2, 1.0)
    pin_messages(
        {f"delta is {each}": partial(epsilon_at, loss, each) for each in (0.0, 1.0, -0.1, math.nan)}
        | {f"epsilon is {each}": partial(delta_at, loss, each) for each in (-0.1, math.nan)}
    )
