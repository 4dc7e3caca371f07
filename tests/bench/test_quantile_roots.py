"""Likelihood ratios at the true quantiles tell what other limits would cover."""

import numpy as np
import pytest

from bench.estimators.numbers import quantile_roots
from bench.estimators.numbers.number_coverage import STEPS, numbers_of
from bench.estimators.numbers.quantile_roots import roots, roots_at_truth
from bench.estimators.populations import channel_counts
from deniable.estimators.frequency.number import LEVELS, estimate_number
from deniable.estimators.frequency.numbers import quantile_cells
from deniable.estimators.mechanisms.square_wave import SquareWave


@pytest.mark.slow
def test_interval_has_the_true_cell_where_its_root_is_below_the_limit(monkeypatch):
    """With a limit so low that the sample has misses, too."""
    limit = 1.2
    monkeypatch.setattr(quantile_cells, "LARGEST_ROOT", limit)
    reports, epsilon, shape, runs = 10_000, 4.0, "rounded", 4
    mechanism, numbers = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon), numbers_of(shape, reports)
    truth = np.bincount(mechanism.cells(numbers), minlength=STEPS)
    quantiles, rng = np.quantile(numbers, LEVELS), np.random.default_rng(1)
    at_truth = roots_at_truth(reports, epsilon, shape, runs)
    for run in range(runs):
        found = estimate_number(channel_counts(truth, mechanism, rng), mechanism)
        levels = {each.level: each for each in found.quantiles}
        cells = [levels[level] for level in LEVELS]
        covers = [each.low <= q <= each.high for each, q in zip(cells, quantiles, strict=True)]
        assert covers == (at_truth[run] <= limit).tolist()
    assert (at_truth > limit).any()


def test_table_counts_what_each_limit_covers(monkeypatch):
    monkeypatch.setattr(quantile_roots, "roots_at_truth", lambda *case: np.array([[0.0] * 9, [1.7] * 9]))
    found = roots(2)
    assert found.about.startswith("72 cases of 9 quantiles, 2 runs each. The likeliest")
    assert "in 50 %" in found.about
    first, *_, last = (list(row.values()) for row in found.rows)
    assert first == ["as used: 2.7", "100.0", "100.0", "0.0"]
    assert last == ["1.35", "50.0", "50.0", "100.0"]
