"""EM with smoothing reaches the fixed point of its definition, written here with matrices."""

import numpy as np
import pytest

from deniable.estimators.frequency.numbers.smoothed_em import (
    TOLERANCE,
    onto_truth,
    report_rates,
    sensitivity,
    smoothed_em,
    smoothing_weight,
)
from deniable.estimators.mechanisms.square_wave import SquareWave

SMALL = SquareWave.from_epsilon(0, 1, 32, 1)


def naive_steps(shares, mechanism, steps):
    """EM with smoothing, Li et al., algorithm 1 of section 5.5, line by line."""
    channel, theta = mechanism.channel, np.full(mechanism.steps, 1 / mechanism.steps)
    matrix = np.zeros((mechanism.steps, mechanism.steps))
    for cell in range(mechanism.steps):
        for neighbour, weight in ((cell - 1, 0.25), (cell, 0.5), (cell + 1, 0.25)):
            matrix[cell, min(max(neighbour, 0), mechanism.steps - 1)] += weight
    for _ in range(steps):
        expected = theta * (channel.T @ (shares / (channel @ theta)))
        theta = matrix @ (expected / expected.sum())
    return theta


def some_shares(mechanism, seed=3):
    truth = np.random.default_rng(seed).dirichlet(np.ones(mechanism.steps))
    return report_rates(truth, mechanism)


@pytest.mark.parametrize("epsilon", [1, 4, 8])
def test_fixed_point_is_where_iteration_ends(epsilon):
    mechanism = SquareWave.from_epsilon(0, 1, 32, epsilon)
    shares = some_shares(mechanism)
    found = smoothed_em(shares, mechanism, 0.25)
    assert found.change <= TOLERANCE
    np.testing.assert_allclose(found.frequency, naive_steps(shares, mechanism, 6000), atol=1e-8)
    assert found.frequency.sum() == pytest.approx(1, abs=1e-12)
    assert found.frequency.min() > 0


def test_start_does_not_matter():
    shares = some_shares(SMALL)
    start = np.random.default_rng(4).dirichlet(np.ones(32))
    np.testing.assert_allclose(
        smoothed_em(shares, SMALL, 0.25, start).frequency,
        smoothed_em(shares, SMALL, 0.25).frequency,
        atol=1e-9,
    )


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 16])
@pytest.mark.parametrize("reports", [2, 3, 10**12])
def test_extreme_counts_have_a_fixed_point(epsilon, reports):
    """All reports in two cells: the hardest counts for Newton's method."""
    mechanism = SquareWave.from_epsilon(0, 1, 256, epsilon)
    counts = np.zeros(mechanism.width)
    counts[[0, mechanism.width // 3]] = reports, reports - 1
    found = smoothed_em(counts / counts.sum(), mechanism, 0.25)
    assert found.frequency.min() >= 0
    assert found.frequency.sum() == pytest.approx(1, abs=1e-9)
    assert found.change <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("reports", [10_000, 300_000])
def test_distribution_with_edges_takes_few_rounds(reports):
    """Half of Newton's step is needed here: without it this takes 60 rounds, and does not end."""
    mechanism = SquareWave.from_epsilon(0, 1, 256, 1)
    truth = np.zeros(256)
    truth[7:48], truth[48:80], truth[110:125] = 3, 1, 2
    counts = np.random.default_rng(8).multinomial(reports, report_rates(truth / truth.sum(), mechanism))
    found = smoothed_em(counts / reports, mechanism, smoothing_weight(reports, mechanism))
    assert found.change <= TOLERANCE
    assert found.rounds <= 40


def test_uniform_reports_have_a_uniform_estimate():
    uniform = np.full(32, 1 / 32)
    found = smoothed_em(report_rates(uniform, SMALL), SMALL, 0.25)
    np.testing.assert_allclose(found.frequency, uniform, atol=1e-12)


def test_bands_are_the_channel():
    values = np.random.default_rng(5).random((3, SMALL.steps))
    np.testing.assert_allclose(report_rates(values, SMALL), values @ SMALL.channel.T, atol=1e-14)
    weights = np.random.default_rng(6).random((3, SMALL.width))
    np.testing.assert_allclose(onto_truth(weights, SMALL), weights @ SMALL.channel, atol=1e-14)


def test_sensitivity_is_the_derivative():
    shares = some_shares(SMALL)
    theta = smoothed_em(shares, SMALL, 0.25).frequency
    derivative = sensitivity(theta, shares, SMALL, 0.25)
    move = np.random.default_rng(7).normal(size=SMALL.width) * 1e-6
    move -= move.mean()
    ahead, behind = (smoothed_em(shares + sign * move, SMALL, 0.25).frequency for sign in (1, -1))
    np.testing.assert_allclose(derivative @ move, (ahead - behind) / 2, atol=1e-9)
    assert derivative.shape == (SMALL.steps, SMALL.width)


def test_weight_is_the_published_one_and_falls_with_reports_and_with_coarser_steps():
    of_256, of_64 = (SquareWave.from_epsilon(0, 1, steps, 1) for steps in (256, 64))
    assert smoothing_weight(1, of_256) == smoothing_weight(23_000, of_256) == 0.25
    assert smoothing_weight(2_500_000, of_256) == pytest.approx(0.025, rel=0.03)
    assert smoothing_weight(25_000, of_64) == pytest.approx(0.25 / 16, rel=0.05)


@pytest.mark.parametrize(("epsilon", "reports"), [(0.5, 6600), (1, 25_000), (2, 86_000), (4, 223_000)])
def test_weight_falls_later_where_reports_say_more(epsilon, reports):
    """Against the slope of the mean report, computed from the channel."""
    mechanism = SquareWave.from_epsilon(0, 1, 256, epsilon)
    means = np.arange(mechanism.width) @ mechanism.channel
    slope = (means[-1] - means[0]) / 255 * 256 / mechanism.width
    assert 425_000 * slope**2 == pytest.approx(reports, rel=0.03)
    assert smoothing_weight(4 * reports, mechanism) == pytest.approx(0.125, rel=0.02)
