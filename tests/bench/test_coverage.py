"""The exact coverage printed by the benchmark agrees with simulations."""

import numpy as np
import pytest

from bench.estimators.coverage import (
    binomial,
    cell,
    coverage,
    edge_coverage,
    edge_table,
    log_factorials,
    other_cell,
    other_channel,
    other_table,
    table,
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


def test_cell_keeps_the_mean_and_the_worst_value():
    found = cell(10_000, 10, 1.0, 1.3)
    assert 0.93 < found.worst <= found.mean < 0.96


def test_table_shows_percent_and_names_the_worst():
    cells = [cell(10_000, 10, 1.0, exponent) for exponent in (0.01, 1.3, 2.5)]
    lines = table(cells).splitlines()
    assert lines[2].startswith("| 10,000 | 10 | 1 | 95.2, worst 95.1 |")
    assert lines[-1] == f"Worst value of all: {100 * min(one.worst for one in cells):.2f} %."


def test_edge_coverage_begins_with_nobody_and_ends_with_everybody():
    found = edge_coverage(1000, 50, 1.0)
    channel, factorials = Inversion.of_symmetric(KRR.from_epsilon(50, 1.0)), log_factorials(1000)
    assert found.near_0[0] == coverage(0, 1000, channel, factorials)
    assert found.at_1 == coverage(1000, 1000, channel, factorials)
    row = edge_table([found]).splitlines()[-1]
    assert row.startswith(f"| 1,000 | 50 | 1 | 19.3 | {100 * found.near_0[0]:.1f} |")
    assert row.endswith(f"| {100 * found.at_1:.1f} |")


def test_other_mechanisms_have_the_channel_of_their_reports():
    steps = LongitudinalKRR.from_epsilons(4, 2.0, 1.0)
    assert other_channel("k-rr-longitudinal", 4, 1.0).hit == steps.p
    for name, bits in (("rappor-one-hot", 2), ("rappor-k-hot", 6)):
        bit = other_channel(name, 8, 1.0)
        assert bits * np.log(bit.hit / bit.miss) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
def test_table_of_other_mechanisms_names_each():
    cells = [
        other_cell(name, 10_000, 10, 1.0, exponent)
        for name in ("rappor-one-hot", "rappor-k-hot")
        for exponent in (0.01, 1.3, 2.5)
    ]
    lines = other_table(cells).splitlines()
    assert [line.split(" | ")[:4] for line in lines[2:4]] == [
        ["| rappor-one-hot", "10,000", "10", "1"],
        ["| rappor-k-hot", "10,000", "10", "1"],
    ]
    assert all(0.93 < one.worst <= one.mean < 0.96 for one in cells)
    assert [line.split(":")[0] for line in lines[-2:]] == ["All of rappor-one-hot", "All of rappor-k-hot"]
