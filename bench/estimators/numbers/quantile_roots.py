"""Why intervals of quantiles hold more than they state: how large the likelihood ratios at the truth are.

    python -m bench.estimators.numbers.quantile_roots

An interval has all cells whose root of a likelihood ratio is at most 2.7. Were no distribution excluded, the
root at a true boundary would be a standard normal. It is mostly smaller, since no cell is negative, and
larger next to gaps; and 0 if the likeliest distribution has the quantile in its true cell. Other limits are
applied to the same roots.
"""

from itertools import product
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from bench.estimators.numbers.number_coverage import SHAPES, STEPS, numbers_of, report_counts_of
from deniable.estimators.frequency.number import LEVELS
from deniable.estimators.frequency.numbers.quantile_cells import LARGEST_ROOT
from deniable.estimators.frequency.numbers.quantiles import chi_square_loss
from deniable.estimators.frequency.numbers.smoothed_em import smoothed_em, smoothing_weight
from deniable.estimators.frequency.numbers.two_masses import PivotedLoss, QuadraticLoss, minimize_with_mass
from deniable.estimators.mechanisms.square_wave import SquareWave

REPORTS = (10_000, 1_000_000)
EPSILONS = (0.5, 1.0, 4.0)
LIMITS = (1.96, 1.8, 1.65, 1.5, 1.35)
LEAST = 0.92
RUNS = 50
RESULTS = Path(__file__).parents[2] / "results"


def roots_at_truth(reports: int, epsilon: float, shape: str, runs: int = RUNS) -> NDArray[np.float64]:
    """Root of the likelihood ratio of each quantile's true cell, float64 (runs, levels), >= 0."""
    mechanism, numbers = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon), numbers_of(shape, reports)
    truth = np.bincount(mechanism.cells(numbers), minlength=STEPS)
    cells = mechanism.cells(np.quantile(numbers, LEVELS)).tolist()
    rng, found = np.random.default_rng(1), []
    for _ in range(runs):
        shares = report_counts_of(truth, mechanism, rng) / reports
        theta = smoothed_em(shares, mechanism, smoothing_weight(reports, mechanism)).frequency
        found.append(_roots(chi_square_loss(theta, shares, reports, mechanism), cells))
    return np.array(found)


def _roots(loss: QuadraticLoss, cells: list[int]) -> list[float]:
    begin = np.arange(STEPS) % 8 == 0
    likeliest, free = minimize_with_mass(PivotedLoss(loss, begin), 0, 0.0, begin)
    pivoted = PivotedLoss(loss, free)
    below, found = np.append(0, likeliest.cumsum()), []
    for level, cell in zip(LEVELS, cells, strict=True):
        likeliest_cell = int(np.clip(np.searchsorted(below, level), 1, STEPS)) - 1
        if cell == likeliest_cell:
            found.append(0.0)
            continue
        # What is tested is the boundary of the true cell that is nearer to the likeliest one.
        least, _ = minimize_with_mass(pivoted, cell + (cell < likeliest_cell), level, free)
        found.append(float(np.sqrt(2 * max(0.0, loss.of(least) - loss.of(likeliest)))))
    return found


def roots_table(runs: int = RUNS) -> str:
    """Markdown: what intervals with each limit cover, of all cases."""
    grid = list(product(REPORTS, EPSILONS, SHAPES))
    roots = np.array([roots_at_truth(*case, runs) for case in grid])  # (cases, runs, levels)
    points = np.quantile(roots, 0.95, axis=1)
    middle, least, most = np.median(points), points.min(), points.max()
    lines = [
        f"{len(grid)} cases of {len(LEVELS)} quantiles, {runs} runs each. The likeliest distribution has the"
        f" quantile in its own cell in {100 * (roots == 0).mean():.0f} %. 95 % of the roots are below"
        f" {middle:.2f} for the median quantile, {least:.2f} to {most:.2f} for each.",
        "",
        "| limit of roots | covered | least case | of quantiles, covered below 92 % |",
        "|---|---:|---:|---:|",
    ]
    limits = [(f"as used: {LARGEST_ROOT:g}", LARGEST_ROOT), *((f"{each:g}", each) for each in LIMITS)]
    for name, limit in limits:
        covered = (roots <= limit).mean(axis=1)
        figures = covered.mean(), covered.min(), (covered < LEAST).mean()
        lines.append(f"| {name} | {' | '.join(f'{100 * each:.1f} %' for each in figures)} |")
    return "\n".join([*lines, ""])


@click.command()
@click.option("--runs", type=click.IntRange(1), default=RUNS, show_default=True, help="Runs of each case.")
def main(runs: int) -> None:
    """Print the table and write it to bench/results."""
    found = roots_table(runs)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "number_quantiles.md").write_text(found)
    click.echo(found, nl=False)


if __name__ == "__main__":
    main()
