"""The published method has its own reports, real numbers, and is measured as ours is."""

import numpy as np
import pytest

from bench.estimators.numbers.published_reports import (
    RealSquareWave,
    our_distances,
    published_reports,
    real_distances,
)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_channel_is_that_of_the_reports(epsilon):
    """10 standard deviations of any count, 1,600: a false alarm in 1e-20 of seeds. A wave half as wide, or of
    another epsilon, is tens of thousands off.
    """
    mechanism, cells = RealSquareWave(epsilon), 16
    channel, b = mechanism.channel(cells), mechanism.half_width
    assert channel.sum(axis=0) == pytest.approx(np.ones(cells))
    near, far = mechanism.densities
    assert near / far == pytest.approx(np.exp(epsilon))
    assert 2 * b * near + far == pytest.approx(1)
    rng = np.random.default_rng(1)
    numbers = rng.uniform(3 / 16, 4 / 16, 100_000)
    counts = np.histogram(mechanism.reports(numbers, rng), cells, (-b, 1 + b))[0]
    assert counts.sum() == 100_000
    assert np.abs(counts - 100_000 * channel[:, 3]).max() < 1600


@pytest.mark.slow
def test_both_methods_are_near_the_truth():
    """Equal shares would be .2 away."""
    for found in (real_distances(4.0, 3), our_distances(4.0, 3)):
        assert found.shape == (3,)
        assert 0 < found.min() < found.max() < 0.01


def test_table_has_a_line_for_each_epsilon(monkeypatch):
    for name in ("real_distances", "our_distances"):
        monkeypatch.setattr(
            f"bench.estimators.numbers.published_reports.{name}", lambda epsilon, runs: np.full(runs, epsilon)
        )
    rows = published_reports(4).rows
    assert list(rows[-1].values()) == [4, "0.0007", *["4.00000 ± 0.00000", "4.00000 to 4.00000"] * 2]
    assert len(rows) == 4
