"""Coverage of the 95 % intervals of single values: exact, on a grid of populations and near a share of 0.

    python -m bench.estimators.coverage

Nothing is simulated. The count of a value that n of N clients hold is Binomial(n, p) + Binomial(N - n, q),
and whether the interval holds n / N depends on that count alone: the coverage is a sum over its distribution.
That is so for k-RR, longitudinal or not, and for each bit of one-hot and k-hot RAPPOR.
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
from deniable.estimators.frequency.intervals.acceptance import LEVEL
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor

REPORTS = (100, 1000, 10_000, 1_000_000)
VALUES = (10, 100, 1000)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
EXPONENTS = (0.01, 1.3, 2.5)
#: True shares near 0, in standard errors of a value that nobody holds.
DISTANCES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
#: k-RR with few to many false reports of each value: N, k and epsilon.
SETTINGS = (
    (1000, 10_000, 4.0), (10_000, 10_000, 4.0), (1000, 1000, 1.0), (10_000, 1000, 7.0), (10_000, 1000, 1.0),
    (100_000, 1000, 2.0), (1_000_000, 1000, 1.0), (1_000_000, 10, 1.0),
)  # fmt: skip
#: Values of other mechanisms, values that one client of k-hot RAPPOR has, and epsilon of a report.
OTHER_VALUES = (10, 100, 1000)
HOT = 3
OTHER_EPSILONS = (1.0, 2.0)
OTHERS = ("k-rr-longitudinal", "rappor-one-hot", "rappor-k-hot")
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
    mechanism: str = "k-rr"


@dataclass(frozen=True)
class EdgeCoverage:
    """Coverage of shares at these distances from 0 (see DISTANCES), and of a value that everybody holds."""

    reports: int
    values: int
    epsilon: float
    near_0: tuple[float, ...]
    at_1: float


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


def coverage(
    holders: int,
    reports: int,
    channel: Inversion,
    factorials: NDArray[np.float64],
    level: float = LEVEL,
) -> float:
    """Probability that the interval of a value with this many holders has holders / N."""
    first_true, true = binomial(holders, channel.hit, factorials)
    first_lie, lie = binomial(reports - holders, channel.miss, factorials)
    probability = np.convolve(true, lie)
    counts = first_true + first_lie + np.arange(len(probability))
    low, high = channel.score_interval(channel.frequency(counts / reports), reports, level)
    frequency = holders / reports
    return float(probability[(low <= frequency) & (frequency <= high)].sum())


def _channel(values: int, epsilon: float) -> Inversion:
    return Inversion.of_symmetric(KRR.from_epsilon(values, epsilon))


def cell(reports: int, values: int, epsilon: float, exponent: float) -> CoverageCell:
    """Coverage of all values of one population."""
    truth = round_to_counts(zipf_shares(values, exponent), reports)
    mean, worst = _covered(truth, reports, _channel(values, epsilon))
    return CoverageCell(reports, values, epsilon, exponent, mean, worst)


def _covered(truth: NDArray[np.int64], reports: int, channel: Inversion) -> tuple[float, float]:
    """Coverage on average over the values, and of the worst one, when truth[v] clients hold v."""
    factorials = log_factorials(reports)
    distinct, times = np.unique(truth, return_counts=True)
    covered = np.array([coverage(holders, reports, channel, factorials) for holders in distinct.tolist()])
    return float(covered @ times / len(truth)), float(covered.min())


def other_channel(mechanism: str, values: int, epsilon: float) -> Inversion:
    """The channel of one value, where a report costs epsilon: RAPPOR's without a permanent step.

    That step changes p* and q* alone. All reports of a client of longitudinal k-RR cost twice epsilon.
    """
    if mechanism == "k-rr-longitudinal":
        return Inversion.of_symmetric(LongitudinalKRR.from_epsilons(values, 2 * epsilon, epsilon))
    hot = 1 if mechanism == "rappor-one-hot" else HOT
    q = 1 / (1 + math.exp(-epsilon / (2 * hot)))
    return Inversion.of_bit(HotRappor.from_probabilities(values, hot, 0.0, 1 - q, q))


def other_cell(mechanism: str, reports: int, values: int, epsilon: float, exponent: float) -> CoverageCell:
    """As `cell`, of another mechanism; a client of k-hot RAPPOR holds up to HOT values."""
    held = HOT if mechanism == "rappor-k-hot" else 1
    truth = np.minimum(round_to_counts(zipf_shares(values, exponent), held * reports), reports)
    mean, worst = _covered(truth, reports, other_channel(mechanism, values, epsilon))
    return CoverageCell(reports, values, epsilon, exponent, mean, worst, mechanism)


def other_table(cells: list[CoverageCell]) -> str:
    """Markdown: as `table`, with a column of mechanisms, and a line for each at the end."""
    lines = ["| mechanism | N | K | epsilon |" + "".join(f" Zipf {exponent} |" for exponent in EXPONENTS)]
    lines.append("|---|---:|---:|---:|" + ":---:|" * len(EXPONENTS))
    for start in range(0, len(cells), len(EXPONENTS)):
        row = cells[start : start + len(EXPONENTS)]
        first = row[0]
        figures = "".join(f" {100 * one.mean:.1f}, worst {100 * one.worst:.1f} |" for one in row)
        lines.append(
            f"| {first.mechanism} | {first.reports:,} | {first.values} | {first.epsilon:g} |{figures}"
        )
    lines.append("")
    for name in dict.fromkeys(one.mechanism for one in cells):
        of = [one for one in cells if one.mechanism == name]
        means = [100 * one.mean for one in of]
        worst = 100 * min(one.worst for one in of)
        lines.append(f"All of {name}: {min(means):.1f} to {max(means):.1f} %, worst value {worst:.2f} %.  ")
    return "\n".join([*lines, ""])


def edge_coverage(reports: int, values: int, epsilon: float) -> EdgeCoverage:
    """Coverage near the boundaries; shares are rounded to whole holders."""
    channel, factorials = _channel(values, epsilon), log_factorials(reports)
    (error,) = channel.std_error(np.zeros(1), reports)
    holders = [min(reports, round(distance * error * reports)) for distance in DISTANCES]
    *near_0, at_1 = (coverage(held, reports, channel, factorials) for held in [*holders, reports])
    return EdgeCoverage(reports, values, epsilon, tuple(near_0), at_1)


def edge_table(cells: list[EdgeCoverage]) -> str:
    """Markdown: coverage in percent, a column for each true share."""
    heads = [*(f"{distance:g}" for distance in DISTANCES), "all"]
    lines = ["| N | K | epsilon | false reports of a value | " + " | ".join(heads) + " |"]
    lines.append("|---:|---:|---:|---:|" + ":---:|" * len(heads))
    for one in cells:
        false = one.reports * _channel(one.values, one.epsilon).miss
        figures = "".join(f" {100 * covered:.1f} |" for covered in (*one.near_0, one.at_1))
        lines.append(f"| {one.reports:,} | {one.values} | {one.epsilon:g} | {false:.3g} |{figures}")
    return "\n".join(["True share in standard errors, and all reports:", "", *lines, ""])


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
    """Print the tables and write them to bench/results.

    Exit status 1 if a value is covered below 94.9 %.
    """
    cells = [
        cell(reports, values, epsilon, exponent)
        for reports in REPORTS
        for values in VALUES
        for epsilon in EPSILONS
        for exponent in EXPONENTS
    ]
    edges = [edge_coverage(*setting) for setting in SETTINGS]
    others = [
        other_cell(mechanism, reports, values, epsilon, exponent)
        for mechanism in OTHERS
        for reports in REPORTS
        for values in OTHER_VALUES
        for epsilon in OTHER_EPSILONS
        for exponent in EXPONENTS
    ]
    text = f"{table(cells)}\n{edge_table(edges)}\n{other_table(others)}"
    figures = {
        "populations": [asdict(one) for one in cells],
        "edges": [asdict(one) for one in edges],
        "others": [asdict(one) for one in others],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "coverage.md").write_text(text)
    (RESULTS / "coverage.json").write_text(json.dumps(figures, indent=1) + "\n")
    click.echo(text, nl=False)
    edge = min(min(*one.near_0, one.at_1) for one in edges)
    if min(edge, *(one.worst for one in [*cells, *others])) < 0.949:
        raise click.ClickException("a value is covered below 94.9 %")


if __name__ == "__main__":
    main()
