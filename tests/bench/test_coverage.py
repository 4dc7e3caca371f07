"""The exact coverage printed by the benchmark agrees with simulations."""

import numpy as np
import pytest

from bench.estimators.coverage import (
    binomial,
    cell,
    channel_of,
    coverage,
    judged,
    log_factorials,
    near_the_ends,
    populations,
)
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR


def test_probabilities_of_a_binomial():
    first, probability = binomial(4, 0.25, log_factorials(4))
    assert first == 0
    np.testing.assert_allclose(probability, np.array([81, 108, 54, 12, 1]) / 256, rtol=1e-12)


def test_truncated_binomial_mass_is_negligible():
    first, probability = binomial(1_000_000, 0.3, log_factorials(1_000_000))
    assert first > 290_000
    assert probability.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("holders", [0, 20, 700])
def test_exact_coverage_matches_simulation(holders):
    """100,000 rounds: within 5 standard deviations, false alarm 6e-7. Defect caught: half a point."""
    rng, channel = np.random.default_rng(holders), Inversion.of_symmetric(KRR.from_epsilon(50, 1.0))
    counts = rng.binomial(holders, channel.hit, 100_000) + rng.binomial(1000 - holders, channel.miss, 100_000)
    low, high = channel.score_interval(channel.frequency(counts / 1000), 1000)
    seen = np.mean((low <= holders / 1000) & (holders / 1000 <= high))
    exact = coverage(holders, 1000, channel, log_factorials(1000))
    assert abs(seen - exact) < 5 * np.sqrt(exact * (1 - exact) / 100_000)


@pytest.mark.parametrize("mechanism", ["k-rr", "rappor-one-hot", "rappor-k-hot"])
def test_cell_has_the_mean_and_the_worst_value(mechanism):
    mean, worst = cell(mechanism, 10_000, 10, 1.0, 1.3)
    assert 0.93 < worst <= mean < 0.96


def test_table_shows_percent_and_names_the_worst():
    found = populations("k-rr-longitudinal", [10_000])
    row = found.rows[0]
    mean, worst = cell("k-rr-longitudinal", 10_000, 10, 1.0, 0.01)
    assert (row["N"], row["K"], row["epsilon"]) == (10_000, 10, 1)
    assert row["Zipf 0.01"] == f"{100 * mean:.1f}, worst {100 * worst:.1f}"
    assert found.below.endswith("worst value 95.01 %.")
    assert found.missed == []
    assert judged("", [], "", 0.9489).missed == ["a value: 94.9 %"]


def test_ends_begin_with_nobody_and_end_with_everybody():
    found = near_the_ends(1000, 50, 1.0)
    channel, factorials = Inversion.of_symmetric(KRR.from_epsilon(50, 1.0)), log_factorials(1000)
    assert found[0] == coverage(0, 1000, channel, factorials)
    assert found[-1] == coverage(1000, 1000, channel, factorials)


def test_other_mechanisms_have_the_channel_of_their_reports():
    steps = LongitudinalKRR.from_epsilons(4, 2.0, 1.0)
    assert channel_of("k-rr-longitudinal", 4, 1.0).hit == steps.p
    for name, bits in (("rappor-one-hot", 2), ("rappor-k-hot", 6)):
        bit = channel_of(name, 8, 1.0)
        assert bits * np.log(bit.hit / bit.miss) == pytest.approx(1.0, abs=1e-6)
