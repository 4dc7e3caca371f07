"""Coverage of the 95 % intervals of numbers by simulation, and their errors, on a grid.

The true numbers of a cell stay the same in all its runs; only the noise of the randomization is drawn anew.
Jagged shapes are air times of real flights; numbers of which two fifths are rounded to a tenth of the range;
steps with independent shares, of a relative standard deviation of 1.4; log-normal and Zipf's numbers, which
leave most steps nearly empty; three numbers alone; and one, in the first step.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.estimators.populations import channel_counts
from bench.estimators.simulation import means
from bench.sections import FOLDER, ResultRow, Section, number, percent, rows_of
from deniable.deploy.demo.flights import AIR_MINUTES, load_flights
from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.frequency.number import LEVELS, estimate_number, row_sums
from deniable.estimators.frequency.numbers.chosen_rows import with_growing_rows
from deniable.estimators.mechanisms.square_wave import SquareWave

REPORTS = (100, 1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
SMOOTH = ("Beta(5, 2)", "uniform", "two peaks", "exponential", "normal")
JAGGED = ("air time", "rounded", "unequal steps", "log-normal", "Zipf", "three atoms", "one end")
SHAPES = (*SMOOTH, *JAGGED)
NAMES = ("row", "mean", *(f"{level:g}" for level in LEVELS))
#: All rows at once, false discoveries, and rows that grow.
FAMILIES = ("all rows", "false", "edges log")
ERRORS = ("mean", "0.1", "0.5", "0.9")
ABOUT = """\
Percent covered: of all numbers by the intervals of their rows, of means, and of quantiles; then of runs
by the intervals of all rows at once, false discoveries, and of all numbers by rows that grow (`--edges
log`). Then mean absolute errors, and the mean width of the median's interval, as fractions of the range."""
STEPS = 256
RUNS = 100
#: Runs of the cells whose mean is covered least: of so many cells chance alone takes one to 89 % in 100 runs.
MORE_RUNS = 1_000
FILE = FOLDER / "numbers.md"


class NumberCell(NamedTuple):
    """One cell of the grid: coverage, and mean absolute errors and widths, as fractions of the range.

    `covered` has the histogram's rows, the mean and each quantile; `errors` and `widths` the mean and each
    quantile. `distance` is W1 between the estimated and the true distribution. `together` is the share of the
    runs whose intervals for all rows hold all, `false` the mean share of false discoveries. `growing` is what
    is covered of rows that grow (`--edges log`).
    """

    covered: Sequence[float]
    errors: Sequence[float]
    widths: Sequence[float]
    distance: float
    together: float
    false: float
    growing: float

    def row(self, reports: int, epsilon: float) -> ResultRow:
        """Row of the table: percent covered, then errors."""
        covered = (*self.covered, self.together, self.false, self.growing)
        errors, widths = (dict(zip(NAMES[1:], each, strict=True)) for each in (self.errors, self.widths))
        figures = {"W1": self.distance, **{f"error, {name}": errors[name] for name in ERRORS}}
        return {
            "N": reports,
            "epsilon": f"{epsilon:g}",
            **{name: percent(each, 0) for name, each in zip((*NAMES, *FAMILIES), covered, strict=True)},
            **{name: f"{each:.5f}" for name, each in figures.items()},
            "width, 0.5": f"{widths['0.5']:.5f}",
        }


def numbers_of(shape: str, size: int) -> NDArray[np.float64]:
    """True numbers in [0, 1], float64 (size,)."""
    rng = np.random.default_rng(SHAPES.index(shape))
    drawn: FloatArray
    match shape:
        case "Beta(5, 2)":
            drawn = rng.beta(5, 2, size)
        case "uniform":
            drawn = rng.random(size)
        case "two peaks":
            first = rng.random(size) < 0.5
            drawn = np.where(first, rng.normal(0.25, 0.06, size), rng.normal(0.7, 0.08, size))
        case "exponential":
            drawn = rng.exponential(0.15, size)
        case "normal":
            drawn = rng.normal(0.5, 0.15, size)
        case "air time":
            drawn = (rng.choice(load_flights().known_air_minutes(), size) + 0.5) / AIR_MINUTES
        case "rounded":
            exact = np.clip(rng.normal(0.45, 0.2, size), 0, 1)
            drawn = np.where(rng.random(size) < 0.4, np.round(exact, 1), exact)
        case "log-normal":
            drawn = rng.lognormal(np.log(0.05), 1.0, size)
        case "Zipf":
            drawn = (np.minimum(rng.zipf(1.5, size), STEPS) - 0.5) / STEPS
        case "three atoms":
            drawn = rng.choice([0.1, 0.5, 0.77], size, p=[0.3, 0.6, 0.1])
        case "one end":
            drawn = np.full(size, 0.001)
        case _:
            cells = rng.choice(STEPS, size, p=rng.dirichlet(np.full(STEPS, 0.5)))
            drawn = (cells + rng.random(size)) / STEPS
    return np.clip(drawn, 0, 1)


def judged(found: Estimate, mean: float, quantiles: FloatArray) -> list[tuple[bool, float, float]]:
    """Whether each interval holds the truth, its estimate's error, and its width: mean, then by level."""
    levels = {each.level: each for each in found.quantiles}
    pairs = [(found.mean, mean), *((levels[level], q) for level, q in zip(LEVELS, quantiles, strict=True))]
    return [
        (each.low <= true <= each.high, abs(each.value - float(true)), each.high - each.low)
        for each, true in pairs
        if each
    ]


def covered_rows(found: Estimate, rows: FloatArray) -> float:
    """Share of all numbers whose row's interval holds its share.

    Parameters
    ----------
    found : an estimate.
    rows : float64 array (rows,), true share of each row.
    """
    return float(rows @ ((found.low <= rows) & (rows <= found.high)))


def families(found: Estimate, true: FloatArray) -> tuple[bool, float]:
    """Whether the intervals for all rows hold all, and the share of discoveries in which nothing is."""
    ends = found.for_all
    held = ends is not None and bool(((ends.low <= true) & (true <= ends.high)).all())
    return held, float((found.significant & (true == 0)).sum()) / max(1, int(found.significant.sum()))


def number_cell(reports: int, epsilon: float, shape: str, runs: int = RUNS, seed: int = 1) -> NumberCell:
    """Simulate one population under one mechanism; `seed` is of the noise."""
    mechanism, numbers = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon), numbers_of(shape, reports)
    truth = np.bincount(mechanism.cells(numbers), minlength=STEPS)
    shares = truth / reports
    growing = with_growing_rows(mechanism)
    in_rows, in_growing = row_sums(shares, mechanism), row_sums(shares, growing)
    mean, quantiles = float(numbers.mean()), np.quantile(numbers, LEVELS)

    def run(rng: np.random.Generator) -> dict[str, ArrayLike]:
        counts = channel_counts(truth, mechanism, rng)
        found = estimate_number(counts, mechanism)
        held, errors, widths = zip(*judged(found, mean, quantiles), strict=True)
        together, false = families(found, in_rows)
        assert found.density is not None  # noqa: S101 - for mypy: a number has one
        return {
            "covered": [covered_rows(found, in_rows), *held],
            "errors": errors,
            "widths": widths,
            "distance": np.abs((found.density - shares).cumsum()).mean(),
            "together": together,
            "false": false,
            "growing": covered_rows(estimate_number(counts, growing), in_growing),
        }

    return NumberCell(**{name: each.tolist() for name, each in means(run, runs, seed).items()})


def of_shape(shape: str, runs: int = RUNS) -> Section:
    """All cells of a shape."""
    grid = list(product(REPORTS, EPSILONS))
    cells = [number_cell(*each, shape, runs) for each in grid]
    rows = [cell.row(*each) for cell, each in zip(cells, grid, strict=True)]
    about = ABOUT if shape == SHAPES[0] else "Percent covered, then errors, as above."
    return Section(about, rows, summary(cells))


def summary(cells: list[NumberCell]) -> str:
    """What all cells cover."""
    covered = np.array([one.covered for one in cells])
    parts = {"rows": covered[:, 0], "mean": covered[:, 1], "quantiles": covered[:, 2:]}
    parts["edges log"] = np.array([one.growing for one in cells])
    shown = (f"{name} {percent(of.mean())} %, least {percent(of.min(), 0)} %" for name, of in parts.items())
    return f"{'; '.join(shown).capitalize()}."


def least_again(runs: int = MORE_RUNS) -> Section:
    """Simulate the smooth and the jagged cell whose mean is covered least, as stored, with other noise."""
    rows: list[ResultRow] = []
    for shapes in (SMOOTH, JAGGED):
        stored = [(shape, row) for shape in shapes for row in rows_of(FILE, CASE_OF.format(shape))]
        shape, least = min(stored, key=lambda each: number(each[1]["mean"]))
        reports, epsilon = int(number(least["N"])), float(least["epsilon"])
        again = number_cell(reports, epsilon, shape, runs, seed=2)
        row = {"before": least["mean"], "again": percent(again.covered[1])}
        rows.append({"N": reports, "epsilon": least["epsilon"], "shape": shape, **row})
    return Section(f"The least means of all, again in {runs:,} runs with other noise, percent covered.", rows)


CASE_OF = "numbers, {}"
CASES = {
    **{CASE_OF.format(shape): partial(of_shape, shape) for shape in SHAPES},
    "the least means again": least_again,
}
