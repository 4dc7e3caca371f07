"""The most likely table: equal to Newton's and to EM, with zeros, a valid bound and few steps."""

import numpy as np
import pytest

from deniable.estimators.frequency.channel_mle import channel_mle
from deniable.estimators.frequency.pairs import joint_mle as module
from deniable.estimators.frequency.pairs.joint_mle import joint_mle
from deniable.estimators.frequency.pairs.newton_system import NewtonSystem
from deniable.estimators.frequency.pairs.table import inverted, reported, std_error
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from tests.support.estimators.joint_em import accelerated_em, em_of_likelihoods, likelihoods_of_reports
from tests.support.estimators.pairs import pair_counts, sparse_pairs
from tests.support.estimators.simulation import generator

MECHANISM = PairKRR.from_epsilons(4, 3, 1.0, 1.5)
TRUTH = np.array([[400, 100, 0], [0, 900, 300], [50, 0, 250], [0, 0, 0]])


def gap_of(table: np.ndarray, counts: np.ndarray, mechanism: PairKRR) -> float:
    """The bound, from its formula: nats of all reports that any table gains."""
    gains = reported(counts / counts.sum() / reported(table, mechanism), mechanism)
    return float(np.log(gains.max()) * counts.sum())


@pytest.mark.parametrize("seed", range(3))
def test_table_equals_an_em_that_holds_every_report(seed):
    """Some pairs are held at 0, so this is no inversion."""
    counts = pair_counts(generator(seed), TRUTH // 20, MECHANISM)
    assert inverted(counts / counts.sum(), MECHANISM).min() < -0.005
    expected = em_of_likelihoods(likelihoods_of_reports(counts, MECHANISM), 4000)
    np.testing.assert_allclose(joint_mle(counts, MECHANISM).table, expected, atol=2e-4)


@pytest.mark.parametrize("seed", range(3))
def test_table_equals_newtons_on_the_whole_matrix(seed):
    counts = pair_counts(generator(seed), TRUTH, MECHANISM)
    found = joint_mle(counts, MECHANISM)
    newton = channel_mle(counts.ravel(), MECHANISM.channel)
    rates = reported(found.table, MECHANISM)
    gain = newton.log_likelihood - (counts * np.log(rates)).sum()
    assert -1e-9 <= gain <= found.gap * counts.sum() + 1e-9 <= 1e-8 + 1e-9
    np.testing.assert_allclose(found.table.ravel(), newton.frequency, atol=1e-6)
    np.testing.assert_array_equal(found.table == 0, newton.frequency.reshape(4, 3) == 0)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "reports"), [(1, 10_000), (4, 336_776), (8, 100_000)])
def test_a_large_table_equals_accelerated_em(epsilon, reports):
    """17 carriers and 105 destinations; the gap of 1e-3 nats that EM is left with is .045 standard errors."""
    mechanism = PairKRR.from_epsilons(17, 105, epsilon / 2, epsilon / 2)
    counts = sparse_pairs(generator(3), mechanism, reports)
    found = joint_mle(counts, mechanism)
    error = std_error(inverted(counts / reports, mechanism), reports, mechanism)
    expected = accelerated_em(counts, mechanism, 1e-3 / reports, 5000)
    assert gap_of(expected, counts, mechanism) <= 1.1e-3
    assert np.abs((found.table - expected) / error).max() < 0.05
    assert (found.table == 0).sum() > 300


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.002, 1, 4, 15.9])
@pytest.mark.parametrize("reports", [1, 100, 10_000, 10_000_000, 10**12])
@pytest.mark.parametrize("shape", [(2, 2), (17, 105), (105, 17), (44, 45), (2, 1000)])
def test_every_table_has_a_certified_maximum_within_50_steps(shape, reports, epsilon, monkeypatch):
    """Each step costs less than 1 ms for 17 x 105, accelerated EM took 1,000 steps and more."""
    steps = []
    step = module._step
    monkeypatch.setattr(module, "_step", lambda *state: steps.append(1) or step(*state))
    mechanism = PairKRR.from_epsilons(*shape, epsilon / 2, epsilon / 2)
    counts = sparse_pairs(generator(4), mechanism, reports)
    found = joint_mle(counts, mechanism)
    assert len(steps) <= 50
    assert found.gap * reports <= max(1e-8, 2e-14 * reports)
    assert found.gap * reports == pytest.approx(
        gap_of(found.table, counts, mechanism), abs=1e-8 + 5e-15 * reports
    )
    assert found.table.sum() == pytest.approx(1)
    assert found.table.min() >= 0


def test_counts_as_expected_are_inverted():
    shares = TRUTH.clip(1) / TRUTH.clip(1).sum()
    counts = np.round(reported(shares, MECHANISM) * 1e12).astype(np.int64)
    found = joint_mle(counts, MECHANISM)
    np.testing.assert_allclose(found.table, shares, atol=1e-10)
    assert found.gap == 0


def test_newton_system_solves_the_equations_of_the_whole_matrix():
    rng = generator(6)
    mechanism = PairKRR.from_epsilons(3, 5, 0.5, 1.0)
    curvature, barrier, right = rng.uniform(0.1, 4, (3, 3, 5))
    curvature[1, 2] = 0
    channel = mechanism.channel
    whole = channel @ np.diag(curvature.ravel()) @ channel + np.diag(barrier.ravel())
    expected = np.linalg.solve(whole, right.ravel())
    found = NewtonSystem.of(curvature, barrier, mechanism).solve(right)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-11)
