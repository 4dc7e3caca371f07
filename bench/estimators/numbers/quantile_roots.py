"""Why intervals of quantiles hold more than they state: how large the likelihood ratios at the truth are.

An interval has all cells whose root of a likelihood ratio is at most 2.7. Were no distribution excluded, the
root at a true boundary would be a standard normal. It is mostly smaller, since no cell is negative, and
larger next to gaps; and 0 if the likeliest distribution has the quantile in its true cell. Other limits are
applied to the same roots.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from bench.estimators.numbers.number_coverage import SHAPES, STEPS, numbers_of
from bench.estimators.populations import channel_counts
from bench.sections import Section, percent
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


def roots_at_truth(reports: int, epsilon: float, shape: str, runs: int = RUNS) -> NDArray[np.float64]:
    """Root of the likelihood ratio of each quantile's true cell, float64 (runs, levels), >= 0."""
    mechanism, numbers = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon), numbers_of(shape, reports)
    truth = np.bincount(mechanism.cells(numbers), minlength=STEPS)
    cells = mechanism.cells(np.quantile(numbers, LEVELS)).tolist()
    rng, found = np.random.default_rng(1), []
    for _ in range(runs):
        shares = channel_counts(truth, mechanism, rng) / reports
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


def roots(runs: int = RUNS) -> Section:
    """What intervals with each limit cover, of all cases."""
    grid = list(product(REPORTS, EPSILONS, SHAPES))
    found = np.array([roots_at_truth(*case, runs) for case in grid])  # (cases, runs, levels)
    points = np.quantile(found, 0.95, axis=1)
    middle, least, most = np.median(points), points.min(), points.max()
    about = (
        f"{len(grid)} cases of {len(LEVELS)} quantiles, {runs} runs each. The likeliest distribution has the "
        f"quantile in its own cell in {percent((found == 0).mean(), 0)} %. 95 % of the roots are below "
        f"{middle:.2f} for the median quantile, {least:.2f} to {most:.2f} for each. Percent covered:"
    )
    rows = []
    for limit in (LARGEST_ROOT, *LIMITS):
        covered = (found <= limit).mean(axis=1)
        name = f"as used: {limit:g}" if limit == LARGEST_ROOT else f"{limit:g}"
        low = percent((covered < LEAST).mean())
        figures = {"covered": percent(covered.mean()), "least case": percent(covered.min())}
        rows.append({"limit of roots": name, **figures, "of quantiles, covered below 92 %": low})
    return Section(about, rows)


CASES = {"roots of quantiles": roots}
