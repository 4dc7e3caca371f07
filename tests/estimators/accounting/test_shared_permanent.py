"""Reports that share one permanent response: bounds against their enumerated joint distribution."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from deniable.estimators.accounting import memoized_krr
from deniable.estimators.accounting.composition import delta_at, epsilon_at
from deniable.estimators.accounting.discretization import spread
from deniable.estimators.accounting.memoized_krr import shared_krr_loss
from deniable.estimators.accounting.memoized_rappor import shared_bits_loss
from deniable.estimators.accounting.privacy_loss import PrivacyLoss, bits_loss, longitudinal_loss
from deniable.estimators.accounting.renyi import (
    epsilon_from_renyi,
    epsilon_from_rho,
    renyi_divergence,
    zcdp_rho,
)
from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor


def longitudinal(k: int, permanent: float, instantaneous: float) -> LongitudinalKRR:
    return LongitudinalKRR(KRR.from_epsilon(k, permanent), KRR.from_epsilon(k, instantaneous))


def matrix(mechanism: KRR) -> FloatArray:
    """P(report y | truth x) in row x."""
    return np.full((mechanism.k, mechanism.k), mechanism.q) + mechanism.contrast * np.eye(mechanism.k)


def law_of_sequences(mechanism: LongitudinalKRR, reports: int) -> tuple[FloatArray, FloatArray]:
    """P of every sequence of reports under the true values 0 and 1."""
    first, second = matrix(mechanism.permanent), matrix(mechanism.instantaneous)
    sequences = np.array(list(product(range(mechanism.k), repeat=reports)))
    given = second[:, sequences].prod(axis=2)
    return first[0] @ given, first[1] @ given


def law_of_bits(mechanism: HotRappor, reports: int) -> tuple[FloatArray, FloatArray]:
    """P of every sequence of reports of the differing bits, ones in the first half or in the second."""
    flip, p, q = mechanism.f / 2, mechanism.p, mechanism.q
    shown = np.array(list(product((0, 1), repeat=reports)))
    zero, one = (np.where(shown, rate, 1 - rate).prod(axis=1) for rate in (p, q))
    of_one, of_zero = (1 - flip) * one + flip * zero, flip * one + (1 - flip) * zero
    first = second = np.ones(1)
    for _ in range(mechanism.hot):
        first = np.multiply.outer(np.multiply.outer(first, of_one), of_zero).ravel()
        second = np.multiply.outer(np.multiply.outer(second, of_zero), of_one).ravel()
    return first, second


def exact_delta(law: tuple[FloatArray, FloatArray], epsilon: float) -> float:
    return float(np.maximum(law[0] - math.exp(epsilon) * law[1], 0).sum())


def largest_loss(law: tuple[FloatArray, FloatArray]) -> float:
    return float(np.log(law[0] / law[1]).max())


KRR_CASES = [(2, 1.0, 0.5, 10), (3, 1.0, 0.3, 8), (4, 3.0, 1.0, 6), (6, 1.0, 0.3, 5), (9, 2.0, 2.0, 4)]
BIT_CASES = [(0.5, 0.4, 0.6, 1, 9), (0.25, 0.1, 0.7, 1, 6), (0.3, 0.35, 0.65, 2, 3), (0.9, 0.2, 0.8, 3, 2)]


@pytest.mark.parametrize(("k", "permanent", "instantaneous", "reports"), KRR_CASES)
def test_krr_loss_matches_enumeration_of_sequences(
    k: int, permanent: float, instantaneous: float, reports: int
) -> None:
    mechanism = longitudinal(k, permanent, instantaneous)
    law = law_of_sequences(mechanism, reports)
    loss = shared_krr_loss(mechanism, reports)
    check_law(loss, law)


@pytest.mark.parametrize(("f", "p", "q", "ones", "reports"), BIT_CASES)
def test_bits_loss_matches_enumeration_of_sequences(
    f: float, p: float, q: float, ones: int, reports: int
) -> None:
    mechanism = HotRappor.from_probabilities(8, ones, f, p, q)
    check_law(shared_bits_loss(mechanism, reports), law_of_bits(mechanism, reports))


def check_law(loss: PrivacyLoss, law: tuple[FloatArray, FloatArray]) -> None:
    """Never below the exact value, and above it by less than the lattice spacing explains."""
    largest = largest_loss(law)
    assert loss.largest == pytest.approx(largest, rel=1e-12)
    for epsilon in np.linspace(0, 0.99, 5) * largest:
        exact = exact_delta(law, epsilon)
        assert exact - 1e-14 <= delta_at(loss, epsilon) <= exact * (1 + 2e-4) + 1e-14
    for order in (1.5, 4.0, 40.0):
        exact = math.log(float(law[0] ** order @ law[1] ** (1 - order))) / (order - 1)
        assert renyi_divergence(loss, order) == pytest.approx(exact, rel=1e-6)


def test_assuming_independence_undercounts_as_published() -> None:
    mechanism = longitudinal(6, 1.0, 0.3)
    assert epsilon_at(shared_krr_loss(mechanism, 8), 1e-6) == pytest.approx(0.573013, abs=1e-6)
    assert epsilon_at(longitudinal_loss(mechanism).times(8), 1e-6) == pytest.approx(0.470826, abs=1e-6)


def test_largest_joint_loss_exceeds_n_times_one_report() -> None:
    mechanism = longitudinal(6, 1.0, 0.3)
    assert shared_krr_loss(mechanism, 8).largest > 1.15 * 8 * mechanism.epsilon_one


Shared = Callable[[int], PrivacyLoss]
BLOOM = HotRappor.from_probabilities(128, 2, f=0.25, p=0.45, q=0.55)
SHARED = [
    (
        lambda reports: shared_krr_loss(longitudinal(6, 1.0, 0.2), reports),
        longitudinal(6, 1.0, 0.2).epsilon_inf,
    ),
    (lambda reports: shared_bits_loss(BLOOM, reports), BLOOM.epsilon_inf),
]


@pytest.mark.all
@pytest.mark.parametrize(("shared", "epsilon_inf"), SHARED)
def test_cost_grows_up_to_the_permanent_response(shared: Shared, epsilon_inf: float) -> None:
    numbers = [1, 2, 5, 10, 30, 31, 10_000]
    losses = [shared(reports) for reports in numbers]
    found = [epsilon_at(loss, 1e-6) for loss in losses]
    assert found == sorted(found)
    assert 0.999 * epsilon_inf < found[-1] <= epsilon_inf
    assert all(loss.largest <= epsilon_inf for loss in losses)


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "_"), SHARED)
@pytest.mark.parametrize("reports", [1, 8, 40, pytest.param(2000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_bounds_are_ordered(shared: Shared, _: float, reports: int, delta: float) -> None:
    loss = shared(reports)
    exact, rdp = epsilon_at(loss, delta), epsilon_from_renyi(loss, delta)
    assert exact <= rdp * (1 + 1e-12)
    assert rdp <= min(loss.largest, epsilon_from_rho(zcdp_rho(loss), delta)) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("permanent", "instantaneous"), [(1.0, 0.3), (2.0, 1.0), (4.0, 2.0)])
@pytest.mark.parametrize("k", [3, 6, 20, 1000])
def test_two_extremes_bound_the_enumeration_closely(
    k: int, permanent: float, instantaneous: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = longitudinal(k, permanent, instantaneous)
    exact = shared_krr_loss(mechanism, 20)
    monkeypatch.setattr(memoized_krr, "MOST_ENUMERATED", 0)
    bound = shared_krr_loss(mechanism, 20)
    for delta in (1e-9, 1e-6, 1e-3):
        truth = epsilon_at(exact, delta)
        assert truth * (1 - 1e-9) <= epsilon_at(bound, delta) <= truth * 1.03


def test_one_report_costs_as_much_as_a_fresh_one() -> None:
    mechanism = longitudinal(20, 2.0, 1.0)
    for shared, fresh in (
        (shared_krr_loss(mechanism, 1), longitudinal_loss(mechanism)),
        (shared_bits_loss(BLOOM, 1), bits_loss(BLOOM)),
    ):
        for epsilon in np.linspace(0, 0.99, 5) * fresh.largest:
            assert delta_at(shared, epsilon) == pytest.approx(delta_at(fresh, epsilon), rel=1e-4)


def test_without_permanent_noise_reports_are_independent() -> None:
    mechanism = HotRappor.from_probabilities(128, 2, f=0.0, p=0.45, q=0.55)
    shared, fresh = shared_bits_loss(mechanism, 9), bits_loss(mechanism).times(9)
    assert epsilon_at(shared, 1e-6) == epsilon_at(fresh, 1e-6)


def test_spread_preserves_both_masses_and_moves_less_than_a_step() -> None:
    losses, mass = np.array([-1.0, -0.31, 0.0, 0.123, 1.0]), np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    lattice = np.linspace(-1, 1, 21)
    spread_out = spread(losses, mass, -1.0, 1.0, 20)
    assert spread_out.sum() == pytest.approx(1.0, rel=1e-15)
    assert spread_out @ np.exp(-lattice) == pytest.approx(mass @ np.exp(-losses), rel=1e-15)
    assert np.flatnonzero(spread_out > 1e-12).tolist() == [0, 6, 7, 10, 11, 12, 20]
