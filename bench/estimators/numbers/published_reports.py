"""The published method with its own reports, real numbers, beside ours with steps: errors of both.

Its published distances are means of three runs. Here are means of many, and what means of three vary by.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.estimators.numbers.number_coverage import numbers_of
from bench.estimators.numbers.number_methods import STEPS, smooth_until_slow, weighted
from bench.estimators.populations import channel_counts
from bench.sections import ResultRow, Section
from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.square_wave import SquareWave, best_half_width

SHAPE, REPORTS = "Beta(5, 2)", 100_000
PUBLISHED = {0.5: 0.0097, 1.0: 0.0047, 2.0: 0.0022, 4.0: 0.0007}
RUNS = 60
POINTS = 64  # of a cell, over which its channel is averaged


@dataclass(frozen=True)
class RealSquareWave:
    """Square Wave of real numbers in [0, 1]: near a number, within b, a report is e^epsilon times as dense.

    Parameters
    ----------
    epsilon : privacy loss of one report, nats, > 0.

    Source: Li et al. (SIGMOD 2020), section 5.
    """

    epsilon: float

    @property
    def half_width(self) -> float:
        """The published b, a fraction of the range."""
        return best_half_width(self.epsilon)

    @property
    def densities(self) -> tuple[float, float]:
        """Density of a report near the number, and far from it; 2 b near + far = 1."""
        far = 1 / (2 * self.half_width * math.exp(self.epsilon) + 1)
        return far * math.exp(self.epsilon), far

    def reports(self, numbers: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One report of each number, in [-b, 1 + b]."""
        b, (near, _) = self.half_width, self.densities
        close = numbers + rng.uniform(-b, b, len(numbers))
        elsewhere = rng.random(len(numbers)) - b
        elsewhere += 2 * b * (elsewhere >= numbers - b)
        return np.where(rng.random(len(numbers)) < 2 * b * near, close, elsewhere)

    def channel(self, cells: int) -> FloatArray:
        """P(report in cell y | number in cell x), float64 (cells, cells), of equal cells of both ranges."""
        b, (near, far) = self.half_width, self.densities
        edges = np.linspace(-b, 1 + b, cells + 1)[:, None]
        numbers = (np.arange(cells * POINTS) + 0.5) / (cells * POINTS)
        below = far * edges + (near - far) * np.clip(edges, numbers - b, numbers + b)
        averaged: FloatArray = np.diff(below, axis=0).reshape(cells, cells, POINTS).mean(axis=2)
        return averaged


def real_distances(epsilon: float, runs: int = RUNS) -> NDArray[np.float64]:
    """Distances W1 of the published method to the true histogram, float64 (runs,), fractions of the range."""
    mechanism, numbers = RealSquareWave(epsilon), numbers_of(SHAPE, REPORTS)
    channel, b = mechanism.channel(STEPS), mechanism.half_width
    truth, rng = np.histogram(numbers, STEPS, (0, 1))[0].cumsum() / REPORTS, np.random.default_rng(1)
    found = []
    for _ in range(runs):
        counts = np.histogram(mechanism.reports(numbers, rng), STEPS, (-b, 1 + b))[0]
        theta = smooth_until_slow(counts, channel.T.__matmul__, channel.__matmul__, STEPS)
        found.append(np.abs(theta.cumsum() - truth).mean())
    return np.array(found)


def our_distances(epsilon: float, runs: int = RUNS) -> NDArray[np.float64]:
    """The same of our mechanism and estimate."""
    mechanism = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon)
    truth = np.bincount(mechanism.cells(numbers_of(SHAPE, REPORTS)), minlength=STEPS)
    method, rng, below = weighted(1.0), np.random.default_rng(1), truth.cumsum() / REPORTS
    found = [method(channel_counts(truth, mechanism, rng), mechanism) for _ in range(runs)]
    distances: NDArray[np.float64] = np.abs(np.cumsum(found, axis=1) - below).mean(axis=1)
    return distances


def published_reports(runs: int = RUNS) -> Section:
    """Compare with what was published, at each epsilon."""
    rows: list[ResultRow] = [
        {
            "epsilon": epsilon,
            "stated, of three": f"{stated}",
            **_columns("published method", real_distances(epsilon, runs)),
            **_columns("ours", our_distances(epsilon, runs)),
        }
        for epsilon, stated in PUBLISHED.items()
    ]
    about = (
        f"Distance W1 to the true histogram, {SHAPE}, {REPORTS:,} reports, {STEPS} steps: means of "
        f"{runs} runs, "
        "their standard errors, and the least and largest mean of three of them."
    )
    return Section(about, rows)


def _columns(name: str, distances: NDArray[np.float64]) -> ResultRow:
    threes = distances[: len(distances) // 3 * 3].reshape(-1, 3).mean(axis=1)
    error = distances.std() / math.sqrt(len(distances))
    ends = f"{threes.min():.5f} to {threes.max():.5f}"
    return {name: f"{distances.mean():.5f} ± {error:.5f}", f"{name}, of three": ends}


CASES = {"the published method's own reports": published_reports}
