"""The mean of numbers of which many are at an end of the range, by both estimates; coverage and time.

As in `number_coverage`, the true numbers of a cell stay the same in all its runs.
"""

import math
import time

import numpy as np

from bench.estimators.numbers.number_coverage import judged
from bench.estimators.populations import channel_counts
from bench.estimators.simulation import means
from bench.sections import ResultRow, Section, percent
from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.number import LEVELS, estimate_number, unbiased_mean
from deniable.estimators.mechanisms.square_wave import SquareWave

STEPS = 256
SHAPES = ("exponential, mean .02", "a tenth at the maximum", "all at the minimum")
CELLS = (
    *((shape, epsilon, 100_000, 25) for shape in SHAPES[:2] for epsilon in (0.5, 1.0, 2.0, 4.0)),
    *((SHAPES[2], epsilon, 10_000, 100) for epsilon in (1.0, 4.0)),
)


def numbers_at_an_end(shape: str, size: int) -> FloatArray:
    """True numbers in [0, 1], float64 (size,)."""
    rng = np.random.default_rng(SHAPES.index(shape))
    if shape == SHAPES[0]:
        return np.clip(rng.exponential(0.02, size), 0, 1)
    if shape == SHAPES[1]:
        return np.where(rng.random(size) < 0.1, 1.0, np.clip(rng.normal(0.5, 0.15, size), 0, 1))
    return np.zeros(size)


def piecewise_error(numbers: FloatArray, epsilon: float) -> float:
    """Expected absolute error of the mean of numbers in [0, 1] by the Piecewise mechanism.

    Source: Wang et al., "Collecting and Analyzing Multidimensional Data" (ICDE 2019), equation 8.
    """
    half = math.expm1(epsilon / 2)
    variances = (2 * numbers - 1) ** 2 / half + (half + 4) / (3 * half**2)
    return math.sqrt(2 / math.pi * float(variances.mean()) / len(numbers)) / 2


def row_of(shape: str, epsilon: float, reports: int, runs: int) -> ResultRow:
    """Errors of the mean, and how often its interval and that of .99 hold the truth."""
    mechanism, numbers = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon), numbers_at_an_end(shape, reports)
    truth, mean = np.bincount(mechanism.cells(numbers), minlength=STEPS), float(numbers.mean())
    high, began = float(np.quantile(numbers, 0.99)), time.process_time()

    def run(rng: np.random.Generator) -> dict[str, float]:
        counts = channel_counts(truth, mechanism, rng)
        found = estimate_number(counts, mechanism)
        of_mean, *_, of_high = judged(found, mean, np.full(len(LEVELS), high))
        bias = (found.mean.value if found.mean else math.nan) - mean
        other = unbiased_mean(counts, mechanism)[0] - mean
        errors = {"`value`": abs(bias), "its bias": bias, "`unbiased`": abs(other), "bias of that": other}
        return {**errors, "mean held": of_mean[0], ".99 held": of_high[0]}

    figures = means(run, runs)
    held = {f"{name}, %": percent(float(figures.pop(name)), 0) for name in ("mean held", ".99 held")}
    errors = {**figures, "Piecewise": piecewise_error(numbers, epsilon)}
    return {
        "numbers": shape,
        "epsilon": epsilon,
        "N": reports,
        "runs": runs,
        **{name: f"{error:.4f}" for name, error in errors.items()},
        **held,
        "seconds": f"{(time.process_time() - began) / runs:.2f}",
    }


def ends() -> Section:
    """Simulate all cells."""
    about = (
        "Errors of the mean of numbers of which many are at an end of the range: means of absolute "
        "ones, fractions "
        "of the range, of both estimates and of the Piecewise mechanism. Seconds: of one core, a window."
    )
    return Section(about, [row_of(*cell) for cell in CELLS])


CASES = {"numbers at an end": ends}
