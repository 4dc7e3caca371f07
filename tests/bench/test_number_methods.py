"""The published EM with smoothing, and ours, are measured on the same reports."""

import numpy as np
import pytest

from bench.estimators.numbers.number_methods import METHODS, distances, published
from deniable.estimators.frequency.numbers.smoothed_em import report_rates
from deniable.estimators.mechanisms.square_wave import SquareWave


def test_the_published_method_finds_what_exact_reports_say():
    """Smoothed: a distribution without edges is within .004 of the truth, equal shares would be .13 away."""
    mechanism = SquareWave.from_epsilon(0.0, 1.0, 64, 4.0)
    truth = np.sin(np.pi * (np.arange(64) + 0.5) / 64) ** 2
    truth /= truth.sum()
    counts = np.rint(10**6 * report_rates(truth, mechanism)).astype(np.int64)
    found = published(counts, mechanism)
    assert np.abs(found - 1 / 64).sum() > 0.5
    assert np.abs((found - truth).cumsum()).mean() < 0.004


@pytest.mark.slow
def test_all_methods_have_a_distance_that_more_reports_reduce():
    few, many = (distances(reports, 4.0, "Beta(5, 2)", runs=2) for reports in (1_000, 100_000))
    assert list(few) == list(METHODS)
    assert all(0 < many[name] < few[name] / 3 for name in METHODS)
