"""The mean of numbers of which many are at an end of the range, by both estimates; coverage and time.

    python -m bench.estimators.numbers.number_ends

As in `number_coverage`, the true numbers of a cell stay the same in all its runs.
"""

import math
import time
from pathlib import Path

import click
import numpy as np

from bench.estimators.numbers.number_coverage import judged, report_counts_of
from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.number import LEVELS, estimate_number, unbiased_mean
from deniable.estimators.mechanisms.square_wave import SquareWave

STEPS = 256
SHAPES = ("exponential, mean .02", "a tenth at the maximum", "all at the minimum")
CELLS = (
    *((shape, epsilon, 100_000, 25) for shape in SHAPES[:2] for epsilon in (0.5, 1.0, 2.0, 4.0)),
    *((SHAPES[2], epsilon, 10_000, 100) for epsilon in (1.0, 4.0)),
)
RESULTS = Path(__file__).parents[2] / "results"


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


def line_of(shape: str, epsilon: float, reports: int, runs: int) -> str:
    """One row of the table: errors of the mean, and how often its interval and that of .99 hold the truth."""
    mechanism, numbers = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon), numbers_at_an_end(shape, reports)
    truth, mean = np.bincount(mechanism.cells(numbers), minlength=STEPS), float(numbers.mean())
    high, rng = float(np.quantile(numbers, 0.99)), np.random.default_rng(1)
    smoothed, unbiased, held, began = [], [], [], time.process_time()
    for _ in range(runs):
        counts = report_counts_of(truth, mechanism, rng)
        found = estimate_number(counts, mechanism)
        of_mean, *_, of_high = judged(found, mean, np.full(len(LEVELS), high))
        smoothed.append((found.mean.value if found.mean else math.nan) - mean)
        unbiased.append(unbiased_mean(counts, mechanism)[0] - mean)
        held.append([of_mean[0], of_high[0]])
    seconds = (time.process_time() - began) / runs
    errors = (np.abs(smoothed).mean(), np.mean(smoothed), np.abs(unbiased).mean(), np.mean(unbiased))
    shown = [f"{each:.4f}" for each in (*errors, piecewise_error(numbers, epsilon))]
    covered = [f"{100 * each:.0f} %" for each in np.mean(held, axis=0)]
    cells = [shape, f"{epsilon:g}", f"{reports:,}", str(runs), *shown, *covered, f"{seconds:.2f}"]
    return f"| {' | '.join(cells)} |"


def ends_table() -> str:
    """Markdown: a line for each cell."""
    lines = [
        "Errors of the mean: means of absolute ones, fractions of the range. Seconds: of one core, a window.",
        "",
        "| numbers | epsilon | N | runs | `value` | bias | `unbiased` | bias | Piecewise | mean held |"
        " .99 held | seconds |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(line_of(*cell) for cell in CELLS),
    ]
    return "\n".join([*lines, ""])


@click.command()
def main() -> None:
    """Print the table and write it to bench/results."""
    found = ends_table()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "number_ends.md").write_text(found)
    click.echo(found, nl=False)


if __name__ == "__main__":
    main()
