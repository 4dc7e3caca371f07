"""A number's figures are the same fractions of its range, whatever the range is."""

import numpy as np
import pytest

from deniable.estimators.frequency.number import estimate_number, quantile, unbiased_mean
from deniable.estimators.mechanisms.square_wave import SquareWave

STEPS = 16
UNIT = SquareWave.from_epsilon(0, 1, STEPS, 1)
COUNTS = np.random.default_rng(41).multinomial(5000, UNIT.channel @ np.linspace(0, 2 / STEPS, STEPS))
#: From nearly the smallest width of 16 steps to the largest one.
RANGES = [
    *((0.0, 10.0**exponent) for exponent in (-297, -250, -160, -150, -20, 20, 150, 160, 200, 250, 300)),
    *((-(10.0**exponent), 10.0**exponent) for exponent in (-297, -155, 155, 300)),
    (-1e300, 0.0),
    (1e300 - 1e297, 1e300),
]


@pytest.mark.slow
@pytest.mark.parametrize(("minimum", "maximum"), RANGES)
def test_figures_are_fractions_of_any_range(minimum, maximum):
    """Squares of numbers near 1e200 overflow, and those near 1e-200 are 0."""
    wave = SquareWave.from_epsilon(minimum, maximum, STEPS, 1)
    found, unit = estimate_number(COUNTS, wave), estimate_number(COUNTS, UNIT)
    width = maximum - minimum

    def of_range(figures):
        return (np.array(figures) - minimum) / width

    def near(figures):
        return pytest.approx(figures, abs=1e-9)

    assert of_range([found.mean.value, found.mean.low, found.mean.high]) == near(
        [unit.mean.value, unit.mean.low, unit.mean.high]
    )
    assert found.mean.std_error / width == near(unit.mean.std_error)
    ours, theirs = ([[each.value, each.low, each.high] for each in of.quantiles] for of in (found, unit))
    assert of_range(ours) == near(np.array(theirs))
    assert of_range([quantile(0.4, unit.density, wave)]) == near([quantile(0.4, unit.density, UNIT)])
    for name in ("frequency", "low", "high", "std_error"):
        assert getattr(found, name).tolist() == getattr(unit, name).tolist()
    (mean, error), (unit_mean, unit_error) = unbiased_mean(COUNTS, wave), unbiased_mean(COUNTS, UNIT)
    assert [*of_range([mean]), error / width] == near([unit_mean, unit_error])
    assert minimum <= found.mean.low <= found.mean.value <= found.mean.high <= maximum
