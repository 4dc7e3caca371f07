"""The alert of a number's mean: false alarms in simulated years, and the delay of changes.

    python -m bench.estimators.numbers.mean_changes

Simulated from counts of Square Wave reports, 10,000 an hour at epsilon 1, of clients drawn from a population.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from deniable.aggregator.history.share_changes import ChangeMonitor
from deniable.aggregator.history.window_shares import shares_of_counts
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import CHANGE_ALARMS_A_YEAR, Collection
from deniable.estimators.frequency.number import unbiased_mean
from deniable.estimators.mechanisms.square_wave import SquareWave

RESULTS = Path(__file__).parents[2] / "results"
HOUR_SECONDS = 3600
HOURS_A_YEAR = 8766
REPORTS = 10_000
BEFORE, AFTER = 100, 300  # windows before a change, and those in which it may be found
CHANGES = (0.5, 1.0, 2.0, 4.0)
MECHANISM = SquareWave.from_epsilon(0.0, 1.0, 64, 1.0)
WATCHED = Collection(
    name="number", mechanism=MECHANISM, window_seconds=HOUR_SECONDS, grace_seconds=60, retention_seconds=60
)
CELLS = np.arange(MECHANISM.steps)
LAST = MECHANISM.steps - 1
EVEN = np.full(MECHANISM.steps, 1 / MECHANISM.steps)
#: All numbers in one of two cells at the ends: the largest spread that there is, with the mean of EVEN.
ENDS = np.where((CELLS == 0) | (CELLS == LAST), 0.5, 0.0)
#: All numbers in the middle two cells: nearly no spread, with the same mean.
MIDDLE = np.where((CELLS == LAST // 2) | (CELLS == LAST // 2 + 1), 0.5, 0.0)
#: Shares of rare large numbers: skewed.
RARE = np.where(CELLS == 0, 0.99, np.where(CELLS == LAST, 0.01, 0.0))


def spread_that_changes(hour: int) -> FloatArray:
    """Shares of cells: all at the ends, or all in the middle, for 200 windows each; the mean is the same."""
    return ENDS if hour // 200 % 2 else MIDDLE


SCENES: dict[str, tuple[int, Callable[[int], FloatArray]]] = {
    "spread evenly": (REPORTS, lambda _: EVEN),
    "1 % at the upper end, others at the lower, 100 reports": (100, lambda _: RARE),
    "a spread that changes": (REPORTS, spread_that_changes),
}


@dataclass(frozen=True)
class MeanAlarmCell:
    """False alarms in simulated years in which the mean does not change."""

    numbers: str
    rate: float
    years: float
    alarms: int


@dataclass(frozen=True)
class MeanDelayCell:
    """Runs with a change of the mean, in standard errors of a window: of those found, the mean delay."""

    change: float
    found: float
    delay: float
    covered: float


def counts_of(rng: np.random.Generator, shares: FloatArray, reports: int) -> WindowCounts:
    """Count the reports of clients drawn from a population with these shares of the cells."""
    rates = MECHANISM.channel @ shares
    counts = rng.multinomial(reports, rates / rates.sum())
    return WindowCounts(counts[None].astype(np.int64), np.array([reports]), 1, 0)


def add_hour(
    monitor: ChangeMonitor, rng: np.random.Generator, shares: FloatArray, reports: int, hour: int
) -> None:
    """Add one window."""
    found = shares_of_counts(WATCHED, hour * HOUR_SECONDS, counts_of(rng, shares, reports))
    assert found is not None  # noqa: S101 - for mypy
    monitor.add(found)


def alarms(rng: np.random.Generator, numbers: str, rate: float, years: float) -> MeanAlarmCell:
    """Count the alarms of one scene."""
    reports, shares_at = SCENES[numbers]
    monitor, seen = ChangeMonitor(WATCHED, rate), set[int]()
    for hour in range(int(years * HOURS_A_YEAR)):
        add_hour(monitor, rng, shares_at(hour), reports, hour)
        seen |= {each.found for each in monitor.update()}
    return MeanAlarmCell(numbers, rate, years, len(seen))


def delay(rng: np.random.Generator, change: float, runs: int) -> MeanDelayCell:
    """Move the mean of evenly spread numbers up, by `change` standard errors of a window."""
    rates = MECHANISM.channel @ EVEN
    error = unbiased_mean(np.rint(rates * REPORTS).astype(np.int64), MECHANISM)[1]
    tilt = CELLS - CELLS.mean()
    size = change * error
    moved = EVEN + tilt * size / float(((CELLS + 0.5) / MECHANISM.steps) @ tilt)
    found: list[tuple[int, bool]] = []
    for _ in range(runs):
        monitor = ChangeMonitor(WATCHED)
        for hour in range(BEFORE + AFTER):
            add_hour(monitor, rng, moved if hour >= BEFORE else EVEN, REPORTS, hour)
            if changes := monitor.update():
                found.append((hour - BEFORE + 1, changes[0].low <= size <= changes[0].high))
                break
    late, covered = np.mean(found, axis=0) if found else (np.nan, np.nan)
    return MeanDelayCell(change, len(found) / runs, float(late), float(covered))


def text_of(of_alarms: list[MeanAlarmCell], delays: list[MeanDelayCell]) -> str:
    """Markdown of both tables."""
    lines = [
        "Hourly windows of a number at epsilon 1 whose mean does not change:",
        "",
        "| numbers | allowed a year | years | allowed | alarms |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {each.numbers} | {each.rate:g} | {each.years:g} | {each.rate * each.years:g} | {each.alarms} |"
        for each in of_alarms
    ]
    lines += [
        "",
        f"The mean of {REPORTS:,} evenly spread numbers changes after {BEFORE} windows, at "
        f"{CHANGE_ALARMS_A_YEAR:g} false alarms a year:",
        "",
        f"| change, standard errors of a window | found in {AFTER}, % | delay, windows | interval holds the "
        "change, % |",
        "|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {each.change:g} | {100 * each.found:.0f} | {each.delay:.1f} | {100 * each.covered:.1f} |"
        for each in delays
    ]
    return "\n".join([*lines, ""])


@click.command()
@click.option("--years", type=click.IntRange(1), default=10, show_default=True, help="Without a change.")
@click.option("--runs", type=click.IntRange(10), default=100, show_default=True, help="Of each change.")
def main(years: int, runs: int) -> None:
    """Print the tables and write them to bench/results; exit status 1 if there are too many alarms."""
    rng = np.random.default_rng(1)
    rates = ((CHANGE_ALARMS_A_YEAR, years), (10.0, years / 4))
    of_alarms = [alarms(rng, each, rate, length) for each in SCENES for rate, length in rates]
    delays = [delay(rng, change, runs) for change in CHANGES]
    text = text_of(of_alarms, delays)
    figures = {"alarms": [asdict(each) for each in of_alarms], "delays": [asdict(each) for each in delays]}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "mean_changes.md").write_text(text)
    (RESULTS / "mean_changes.json").write_text(json.dumps(figures, indent=1) + "\n")
    click.echo(text, nl=False)
    if any(each.alarms > each.rate * each.years + 1 for each in of_alarms):
        raise click.ClickException("there are more false alarms than allowed")


if __name__ == "__main__":
    main()
