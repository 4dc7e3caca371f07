"""No valid counts raise, and all their figures are finite, in order and in range: a search over bad ones."""

from itertools import product

import numpy as np
import pytest

from deniable.estimators.frequency.number import (
    estimate_number,
    expected_median_error,
    expected_median_interval,
    unbiased_mean,
)
from deniable.estimators.mechanisms.square_wave import LARGEST_STEPS, SquareWave

LARGEST_COUNT = 2**40
EPSILONS = (0.01, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 16.0)


def adversarial_counts(mechanism, rng):
    """Counts of one cell, of both ends, alternate and steep ones, and those of a few reports."""
    width = mechanism.width
    cells, zeros = np.arange(width), np.zeros(width, np.int64)
    for chosen in ([0], [width - 1], [width // 2], [0, width - 1], [width // 2, width // 2 + 1]):
        counts = zeros.copy()
        counts[chosen] = 1
        yield counts
    for every in (1, 2, 3, max(2, mechanism.near), max(2, mechanism.half_width)):
        yield (cells % every == 0).astype(np.int64)
    yield (cells < max(1, mechanism.half_width)).astype(np.int64)
    yield np.maximum(10_000 // (cells + 1) ** 2, 0).astype(np.int64)
    yield 2 ** (cells % 41).astype(np.int64)
    steep = np.exp(-30 * cells / width)
    for reports in (2, 100, 100, 100):
        yield rng.multinomial(reports, steep / steep.sum()).astype(np.int64)


def assert_in_order(counts, mechanism):
    found, (mean, error) = estimate_number(counts, mechanism), unbiased_mean(counts, mechanism)
    assert found.mean is not None
    assert found.for_all is not None
    columns = [found.frequency, found.std_error, found.low, found.high, *found.for_all]
    assert all(np.isfinite(column).all() for column in columns)
    assert (found.std_error > 0).all()
    assert ((found.low <= found.frequency) & (found.frequency <= found.high)).all()
    assert ((found.for_all.low <= found.low) & (found.high <= found.for_all.high)).all()
    assert found.low.min() >= 0
    assert found.high.max() <= 1
    for each in (found.mean, *found.quantiles):
        assert mechanism.minimum <= each.low <= each.value <= each.high <= mechanism.maximum
    assert np.isfinite([mean, error, found.mean.std_error]).all()
    assert error >= 0


def searched(steps, epsilon, scales):
    """Estimate all counts of one mechanism, times each scale up to the largest count."""
    mechanism, rng = SquareWave.from_epsilon(-2.0, 3.0, steps, epsilon), np.random.default_rng(5)
    for counts, scale in product(adversarial_counts(mechanism, rng), scales):
        if int(counts.max()) * scale <= LARGEST_COUNT:
            assert_in_order(counts * scale, mechanism)
    for reports in (1, 100, 10**6, 2**50):
        assert 0 < expected_median_interval(mechanism, reports) <= 1
        assert expected_median_error(mechanism, reports) > 0


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "epsilon"), [(4, 16.0), (16, 4.0)])
def test_no_valid_counts_raise(steps, epsilon):
    searched(steps, epsilon, (1, LARGEST_COUNT))


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", [*EPSILONS, 0.1, 3.0, 5.0, 7.0, 12.0])
@pytest.mark.parametrize("steps", [4, 5, 16, 32, 64, 256, LARGEST_STEPS])
def test_no_valid_counts_raise_at_any_size(steps, epsilon):
    # Of most steps at a small epsilon, one estimate of so large counts takes a minute.
    largest = () if steps == LARGEST_STEPS and epsilon < 0.5 else (LARGEST_COUNT,)
    searched(steps, epsilon, (1, 1000, *largest))


@pytest.mark.slow
def test_skewed_windows_of_few_reports_have_an_estimate():
    """Of 100 log-normal numbers: of 256 steps one such window in 300 had singular equations."""
    rng = np.random.default_rng(6)
    for epsilon in (4.0, 8.0):
        mechanism = SquareWave.from_epsilon(0.0, 1.0, 64, epsilon)
        for _ in range(5):
            numbers = np.clip(rng.lognormal(np.log(0.05), 1.0, 100), 0, 1)
            rates = mechanism.channel @ np.bincount(mechanism.cells(numbers), minlength=64) / 100
            assert_in_order(rng.multinomial(100, rates / rates.sum()).astype(np.int64), mechanism)


def test_counts_whose_equations_are_singular_have_intervals(monkeypatch):
    """They are those of the counts beyond a cell, which solve nothing."""

    def singular(*_):
        raise np.linalg.LinAlgError("Singular matrix")

    mechanism = SquareWave.from_epsilon(0.0, 1.0, 16, 1.0)
    counts = np.full(mechanism.width, 10_000, np.int64)
    usual = estimate_number(counts, mechanism).quantiles[4]
    monkeypatch.setattr("deniable.estimators.frequency.numbers.quantiles.chi_square_loss", singular)
    found = estimate_number(counts, mechanism).quantiles[4]
    assert found.low <= usual.low < usual.high <= found.high
