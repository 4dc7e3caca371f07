"""The estimate of numbers beside the published EM with smoothing, on the same reports, and other weights.

The published method smooths by 1/4 at each step, whatever the reports, and stops when a step gains less than
.001 of log-likelihood or changes less than one report. So part of its smoothing is that it stops early.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bench.estimators.numbers.number_coverage import numbers_of
from bench.estimators.populations import channel_counts
from bench.estimators.simulation import means
from bench.sections import ResultRow, Section
from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.numbers.smoothed_em import (
    onto_truth,
    report_rates,
    smoothed_em,
    smoothing_weight,
)
from deniable.estimators.mechanisms.square_wave import SquareWave

STEPS = 256
REPORTS = (100_000, 1_000_000)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SHAPES = ("Beta(5, 2)", "two peaks", "exponential", "air time", "rounded")
FACTORS = (0.5, 2.0)
MOST_STEPS, LEAST_GAIN = 10_000, 1e-3
RUNS = 50

Method = Callable[[NDArray[np.int64], SquareWave], FloatArray]
Channel = Callable[[FloatArray], FloatArray]


def published(counts: NDArray[np.int64], mechanism: SquareWave) -> FloatArray:
    """EM with smoothing as its authors stop it: a histogram, float64 (d,)."""
    return smooth_until_slow(
        counts,
        lambda weights: onto_truth(weights, mechanism),
        lambda theta: report_rates(theta, mechanism),
        mechanism.steps,
    )


def smooth_until_slow(counts: NDArray[np.int64], onto: Channel, rates: Channel, steps: int) -> FloatArray:
    """Iterate EM and smoothing by 1/4 until a step gains less than .001, or changes less than one report.

    Parameters
    ----------
    counts : int64 array (m,), reports per reported cell.
    onto, rates : the channel, from weights of reported cells to those of true ones, and the other way.
    steps : d, true cells.

    Source: Li et al. (SIGMOD 2020), section 5.5, and sw.py of github.com/vvv214/LDP_Protocols.
    """
    theta, likelihood = np.full(steps, 1 / steps), 0.0
    for step in range(MOST_STEPS):
        risen = theta * onto(counts / rates(theta))
        around = np.pad(risen / risen.sum(), 1)
        smoothed = around[:-2] + 2 * around[1:-1] + around[2:]
        smoothed[[0, -1]] *= 4 / 3  # at the ends weights 2 and 1, over 3
        before, theta = theta, smoothed / smoothed.sum()
        reached = float(counts @ np.log(rates(theta)))
        if step > 1 and abs(reached - likelihood) < LEAST_GAIN:
            break
        if np.abs(theta - before).sum() <= 1 / counts.sum():
            break
        likelihood = reached
    return theta


def weighted(factor: float) -> Method:
    """Return our method with this multiple of its smoothing weight, at most 1/2."""

    def method(counts: NDArray[np.int64], mechanism: SquareWave) -> FloatArray:
        reports = int(counts.sum())
        weight = min(0.5, factor * smoothing_weight(reports, mechanism))
        return smoothed_em(counts / reports, mechanism, weight).frequency

    return method


METHODS: dict[str, Method] = {
    "ours": weighted(1.0),
    "published": published,
    **{f"weight x {factor:g}": weighted(factor) for factor in FACTORS},
}


def distances(reports: int, epsilon: float, shape: str, runs: int = RUNS) -> dict[str, float]:
    """Mean distance W1 to the true histogram by method, fractions of the range, all on the same reports."""
    mechanism = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon)
    truth = np.bincount(mechanism.cells(numbers_of(shape, reports)), minlength=STEPS)
    below = truth.cumsum() / reports

    def run(rng: np.random.Generator) -> dict[str, float]:
        counts = channel_counts(truth, mechanism, rng)
        return {
            name: float(np.abs(method(counts, mechanism).cumsum() - below).mean())
            for name, method in METHODS.items()
        }

    return {name: float(each) for name, each in means(run, runs).items()}


def methods(runs: int = RUNS) -> Section:
    """Compare all methods."""
    rows: list[ResultRow] = []
    for reports, epsilon, shape in product(REPORTS, EPSILONS, SHAPES):
        found = distances(reports, epsilon, shape, runs)
        columns = {name: f"{each:.5f}" for name, each in found.items()}
        rows.append({"N": reports, "epsilon": epsilon, "shape": shape, **columns})
    about = f"Distance W1 of the estimated to the true histogram, means of {runs} runs on the same reports."
    return Section(about, rows)


CASES = {"methods": methods}
