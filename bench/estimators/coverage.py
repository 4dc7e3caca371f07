"""Coverage of the 95 % intervals of k-RR: exact, on a grid, as a table.

    python -m bench.estimators.coverage

Nothing is simulated. The count of a value that n of N clients hold is Binomial(n, p) + Binomial(N - n, q),
and whether the interval holds n / N depends on that count alone: the coverage is a sum over its distribution.
Intervals around a constrained point estimate are wider than these, never narrower.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import round_to_counts, zipf_shares
from estimators.frequency.inversion import Inversion
from estimators.mechanisms.krr import KRR

REPORTS = (10_000, 100_000, 1_000_000)
VALUES = (10, 100, 1000)
EPSILONS = (1.0, 2.0, 4.0)
EXPONENTS = (0.01, 1.3, 2.5)
RESULTS = Path(__file__).parents[1] / "results"
# Counts further than this many standard deviations from their mean (total probability 1e-14) are left out.
REACH = 8.0


@dataclass(frozen=True)
class CoverageCell:
    """One cell of the grid: mean coverage over the values, and coverage of the worst value."""

    reports: int
    values: int
    epsilon: float
    exponent: float
    mean: float
    worst: float


def log_factorials(most: int) -> NDArray[np.float64]:
    """Natural logarithms of n! for n = 0 to most, float64 (most + 1,)."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, most + 1)))])


def binomial(
    trials: int, probability: float, factorials: NDArray[np.float64]
) -> tuple[int, NDArray[np.float64]]:
    """Return the first count within reach of the mean, and the probabilities from there on."""
    reach = REACH * math.sqrt(trials * probability * (1 - probability)) + 20
    first = max(0, math.floor(trials * probability - reach))
    hits = np.arange(first, min(trials, math.ceil(trials * probability + reach)) + 1)
    ways = factorials[trials] - factorials[hits] - factorials[trials - hits]
    return first, np.exp(ways + hits * math.log(probability) + (trials - hits) * math.log1p(-probability))


def coverage(holders: int, reports: int, mechanism: KRR, factorials: NDArray[np.float64]) -> float:
    """Probability that the interval of a value with this many holders, clipped to [0, 1], has holders / N."""
    first_true, true = binomial(holders, mechanism.p, factorials)
    first_lie, lie = binomial(reports - holders, mechanism.q, factorials)
    probability = np.convolve(true, lie)
    counts = first_true + first_lie + np.arange(len(probability))
    inversion = Inversion.of_symmetric(mechanism)
    ends = inversion.score_interval(inversion.frequency(counts / reports), reports)
    low, high = (np.clip(end, 0, 1) for end in ends)
    frequency = holders / reports
    return float(probability[(low <= frequency) & (frequency <= high)].sum())


def cell(reports: int, values: int, epsilon: float, exponent: float) -> CoverageCell:
    """Coverage of all values of one population."""
    mechanism, factorials = KRR.from_epsilon(values, epsilon), log_factorials(reports)
    truth = round_to_counts(zipf_shares(values, exponent), reports)
    distinct, times = np.unique(truth, return_counts=True)
    covered = np.array([coverage(holders, reports, mechanism, factorials) for holders in distinct.tolist()])
    mean = float(covered @ times / values)
    return CoverageCell(reports, values, epsilon, exponent, mean, float(covered.min()))


def table(cells: list[CoverageCell]) -> str:
    """Markdown: mean and worst coverage in percent, a column for each exponent."""
    lines = ["| N | K | epsilon |" + "".join(f" Zipf {exponent} |" for exponent in EXPONENTS)]
    lines.append("|---:|---:|---:|" + ":---:|" * len(EXPONENTS))
    for start in range(0, len(cells), len(EXPONENTS)):
        row = cells[start : start + len(EXPONENTS)]
        figures = "".join(f" {100 * one.mean:.1f}, worst {100 * one.worst:.1f} |" for one in row)
        lines.append(f"| {row[0].reports:,} | {row[0].values} | {row[0].epsilon:g} |{figures}")
    worst = min(one.worst for one in cells)
    return "\n".join([*lines, "", f"Worst value of all: {100 * worst:.2f} %.", ""])


@click.command()
def main() -> None:
    """Print the table and write it to bench/results; exit status 1 if a value is covered below 93 %."""
    cells = [
        cell(reports, values, epsilon, exponent)
        for reports in REPORTS
        for values in VALUES
        for epsilon in EPSILONS
        for exponent in EXPONENTS
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "coverage.md").write_text(table(cells))
    (RESULTS / "coverage.json").write_text(json.dumps([asdict(one) for one in cells], indent=1) + "\n")
    click.echo(table(cells), nl=False)
    if min(one.worst for one in cells) < 0.93:
        raise click.ClickException("a value is covered below 93 %")


if __name__ == "__main__":
    main()
