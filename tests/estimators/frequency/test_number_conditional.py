"""Conditional coverage: the true numbers of a case stay the same, only the noise is drawn anew.

Each share of 100 runs of 95 % is below .88 in 4e-3 of the seeds, which are fixed; of 93 % in .05. The sample
has 40 runs: below .88 in .05 of the seeds; .62 is not in 4e-4, .75 in .03.
"""

import numpy as np
import pytest
from scipy.special import ndtri

from deniable.estimators.frequency.number import LEVELS, estimate_number, row_sums
from deniable.estimators.mechanisms.square_wave import SquareWave

STEPS = 64
RUNS, FEW_RUNS, MANY_RUNS = 100, 40, 600
LEAST = 0.88
SHAPES = {
    "log-normal": lambda rng, size: rng.lognormal(np.log(0.05), 1.0, size),
    "Zipf": lambda rng, size: (np.minimum(rng.zipf(1.5, size), STEPS) - 0.5) / STEPS,
    "normal": lambda rng, size: rng.normal(0.5, 0.15, size),
    "beta": lambda rng, size: rng.beta(5, 2, size),
    "uniform": lambda rng, size: rng.random(size),
    "three atoms": lambda rng, size: rng.choice([0.1, 0.5, 0.77], size, p=[0.3, 0.6, 0.1]),
    "nearly a tie": lambda _, size: np.repeat([0.3, 0.7], [size // 2 - 1, size - size // 2 + 1]),
    "one end": lambda _, size: np.full(size, 0.001),
}


def coverage(shape, epsilon, reports, runs=RUNS, seed=31):
    """Coverage of each quantile, of the mean, of each row and of all; and false discoveries."""
    rng = np.random.default_rng(seed)
    numbers = np.clip(SHAPES[shape](rng, reports), 0, 1)
    mechanism = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon)
    truth = np.bincount(mechanism.cells(numbers), minlength=STEPS)
    held, columns = np.flatnonzero(truth), mechanism.channel.T / mechanism.channel.sum(axis=0)[:, None]
    quantiles, true = np.quantile(numbers, LEVELS), row_sums(truth, mechanism) / reports
    parts = [[], [], [], [], []]
    for _ in range(runs):
        found = estimate_number(rng.multinomial(truth[held], columns[held]).sum(axis=0), mechanism)
        false = found.significant & (true == 0)
        for part, figure in zip(
            parts,
            (
                [each.low <= q <= each.high for each, q in zip(found.quantiles, quantiles, strict=True)],
                found.mean.low <= numbers.mean() <= found.mean.high,
                (found.low <= true) & (true <= found.high),
                ((found.for_all.low <= true) & (true <= found.for_all.high)).all(),
                false.sum() / max(1, found.significant.sum()),
            ),
            strict=True,
        ):
            part.append(figure)
    return [np.mean(part, axis=0) for part in parts]


def assert_covered(shape, epsilon, reports, runs=RUNS):
    quantiles, mean, steps, together, false = coverage(shape, epsilon, reports, runs)
    assert quantiles.min() >= LEAST
    assert quantiles.mean() >= 0.95
    assert mean >= LEAST
    assert steps.mean() >= 0.94
    if steps.min() < 0.84 or false > 0.05:  # of 32 rows, each .95: in 6e-4 of the seeds
        _, _, steps, together, false = coverage(shape, epsilon, reports, MANY_RUNS, seed=32)
        assert steps.min() >= 0.91  # again in 1e-3; of .88 not seen again in 1e-2
    assert together >= LEAST
    assert false <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "epsilon", "reports"),
    [
        ("log-normal", 8.0, 1000),
        pytest.param("nearly a tie", 1.0, 100_000, marks=pytest.mark.nightly),
    ],
)
def test_hard_cases_are_covered(shape, epsilon, reports):
    """A chi-square of all cells holds .62 of .99 quantiles of the first, normal tails .8 of one step and
    .7 of all together, and limits of 1.96 .75 of the median of the last.
    """
    assert_covered(shape, epsilon, reports, FEW_RUNS)


@pytest.mark.nightly
@pytest.mark.parametrize("reports", [100, 1000, 10_000, 100_000, 1_000_000])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_all_cases_are_covered(shape, epsilon, reports, request):
    if (shape, epsilon, reports) == ("Zipf", 0.5, 100):
        request.applymarker(
            pytest.mark.xfail(strict=True, reason="an end step with a sixth of all: docs/limits.md")
        )
    assert_covered(shape, epsilon, reports)


SKEWED = {
    "exponential": lambda u: -0.05 * np.log1p(-u),
    "log-normal": lambda u: 0.04 * np.exp(ndtri(u)),
    "Pareto": lambda u: 0.02 * (1 - u) ** (-1 / 1.2),
    "atom at an edge": lambda u: np.where(u < 0.5, 0.2500001, 0.999 * u),
    "atom at 0": lambda u: np.where(u < 0.6, 0.0, 0.999 * u),
}


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, pytest.param(40, marks=pytest.mark.nightly)])
def test_a_row_is_held_of_skewed_numbers(runs):
    """Of 30,000 numbers, at epsilons 1, 2 and 4: the share of each row is in the interval of that row.

    280 intervals a run. If each holds .95, and two are as one, a run holds less than .88 in 7e-4 of other
    seeds, and 40 runs less than .94 in 5e-4. Intervals half as wide would hold .67.
    """
    rng = np.random.default_rng(41)
    u = (np.arange(30_000) + 0.5) / 30_000
    held = []
    for epsilon in (1.0, 2.0, 4.0):
        mechanism = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon)
        columns = mechanism.channel.T / mechanism.channel.sum(axis=0)[:, None]
        for numbers in SKEWED.values():
            truth = np.bincount(mechanism.cells(np.clip(numbers(u), 0, 1)), minlength=STEPS)
            true = row_sums(truth, mechanism) / len(u)
            for _ in range(runs):
                found = estimate_number(rng.multinomial(truth, columns).sum(axis=0), mechanism)
                held.append((found.low <= true) & (true <= found.high))
    assert len(np.concatenate(held)) == 280 * runs
    assert np.concatenate(held).mean() > (0.88 if runs == 1 else 0.94)
