"""RDP, zCDP and their conversions match golden vectors; the search for a supremum finds it."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from deniable.estimators.accounting.privacy_loss import PrivacyLoss, krr_loss
from deniable.estimators.accounting.renyi import (
    epsilon_from_renyi,
    epsilon_from_rho,
    renyi_divergence,
    zcdp_rho,
)
from deniable.estimators.mechanisms.krr import KRR
from tests.support.estimators.accounting_vectors import VECTORS, ideal_bits, ideal_krr, loss_of
from tests.support.messages import PinMessages

#: Rows whose rho was computed slightly off alpha = 1, where the supremum is: too low by up to 4e-6.
BELOW_THE_SUPREMUM = [
    {"mechanism": "krr", "k": 5, "epsilon": 3},
    {"mechanism": "rappor_bloom", "hashes": 2, "p_star": 0.3, "q_star": 0.65},
]


def test_rdp_matches_the_vectors() -> None:
    for row in VECTORS["rdp"]:
        assert renyi_divergence(loss_of(row), row["alpha"]) == pytest.approx(row["rdp"], rel=1e-9), row


def exact_to_1e9(row: dict[str, Any]) -> bool:
    return {name: value for name, value in row.items() if name != "rho"} not in BELOW_THE_SUPREMUM


def test_rho_matches_the_vectors() -> None:
    rows = [row for row in VECTORS["zcdp"] if exact_to_1e9(row)]
    assert len(rows) == len(VECTORS["zcdp"]) - len(BELOW_THE_SUPREMUM)
    for row in rows:
        assert zcdp_rho(loss_of(row)) == pytest.approx(row["rho"], rel=1e-9), row


def test_two_vectors_are_slightly_below_their_supremum() -> None:
    for row in VECTORS["zcdp"]:
        if not exact_to_1e9(row):
            loss = loss_of(row)
            limit = loss.copies * float(loss.mass @ loss.losses)
            assert zcdp_rho(loss) == pytest.approx(limit, rel=1e-11)
            assert row["rho"] < renyi_divergence(loss, 1 + 1e-7) / (1 + 1e-7) < limit
            assert row["rho"] == pytest.approx(limit, rel=4e-6)


def test_bun_steinke_conversion_matches_the_vectors() -> None:
    for row in VECTORS["bun_steinke"]:
        assert epsilon_from_rho(row["rho"], row["delta"]) == pytest.approx(row["epsilon"], rel=1e-9)


def test_divergence_runs_from_kullback_leibler_to_the_largest_loss() -> None:
    loss = ideal_krr(16, 1.0)
    p, q = 1 / (1 + 15 / math.e), 1 / (math.e + 15)
    assert renyi_divergence(loss, 1) == pytest.approx(p - q, rel=1e-14)
    assert renyi_divergence(loss, 1 + 1e-9) == pytest.approx(p - q, rel=1e-8)
    assert renyi_divergence(loss, 1e12) == pytest.approx(1.0, rel=1e-11)


def mixture(*parts: tuple[float, PrivacyLoss]) -> PrivacyLoss:
    """A mixture: one of several outputs is sent, and the observer sees which."""
    steps = [(weight, loss, round(loss.step * 100)) for weight, loss in parts]
    half = max(step for *_, step in steps)
    mass = np.zeros(2 * half + 1)
    for weight, loss, step in steps:
        mass[[half - step, half, half + step]] += weight * loss.mass
    return PrivacyLoss(0.01, -half, mass, half * 0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    [
        ideal_krr(2, 1e-5),
        ideal_krr(2, 16.0),
        ideal_krr(1000, 0.01),
        ideal_krr(2**31, 1.0),
        ideal_bits(0.001, 0.3, 3),
        mixture((0.99, ideal_krr(2, 1.0)), (0.01, ideal_krr(2, 4.0))),
        mixture((0.9999, ideal_krr(2, 0.2)), (0.00005, ideal_krr(2, 3.0)), (0.00005, ideal_krr(50, 12.0))),
    ],
)
def test_no_order_exceeds_rho_and_one_reaches_it(loss: PrivacyLoss) -> None:
    orders = 1 + np.append(0, np.geomspace(1e-12, 1e12, 5000))
    best = max(renyi_divergence(loss, order) / order for order in orders)
    assert best <= zcdp_rho(loss) <= best * (1 + 1e-4)


def test_higher_of_two_maxima_is_found() -> None:
    loss = mixture((0.99, ideal_krr(2, 1.0)), (0.01, ideal_krr(2, 4.0)))
    values = np.array([renyi_divergence(loss, 1 + t) / (1 + t) for t in np.geomspace(1e-3, 100, 500)])
    rising = np.diff(values) > 0
    assert not rising[0]
    assert rising.any()
    assert not rising[-1]
    assert zcdp_rho(loss) == pytest.approx(values.max(), rel=1e-4)
    assert values.max() > 1.2 * values[0]


def test_divergences_of_copies_add() -> None:
    loss = ideal_bits(0.3, 0.65, 2)
    assert zcdp_rho(loss.times(7)) == pytest.approx(7 * zcdp_rho(loss), rel=1e-14)
    assert renyi_divergence(loss.times(7), 3.5) == pytest.approx(7 * renyi_divergence(loss, 3.5), rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("reports", [1, 10, 1000])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_conversion_finds_the_best_order_of_a_fine_grid(reports: int, delta: float) -> None:
    loss = ideal_krr(16, 0.5).times(reports)
    orders = 1 + np.geomspace(1e-6, 1e9, 20_000)
    grid = min(
        renyi_divergence(loss, order)
        + math.log1p(-1 / order)
        - (math.log(delta) + math.log(order)) / (order - 1)
        for order in orders
    )
    assert epsilon_from_renyi(loss, delta) == pytest.approx(min(grid, loss.largest), rel=1e-6)
    assert epsilon_from_renyi(loss, delta) <= grid * (1 + 1e-14)


def test_rounded_thresholds_change_rho_within_rounding() -> None:
    realised = zcdp_rho(krr_loss(KRR.from_epsilon(1000, 1.0)))
    assert realised == pytest.approx(zcdp_rho(ideal_krr(1000, 1.0)), rel=1e-11)


def test_messages(pin_messages: PinMessages) -> None:
    loss = ideal_krr(2, 1.0)
    pin_messages(
        {f"order is {each}": partial(renyi_divergence, loss, each) for each in (0.99, -1.0, math.nan)}
    )
