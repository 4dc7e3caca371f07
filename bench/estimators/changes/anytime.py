"""Intervals for all values and for every look, and the change alert: coverage, false alarms and delay.

    python -m bench.estimators.changes.anytime

Simulated from counts of k-RR reports. Coverage for all values at once and at every look is beside that of the
95 % intervals of single values and single looks. Alarms and delays are beside two rules that compare each
window's share with the mean of the first 100 windows by fixed-time intervals: of 95 %, and of the level at
which all values and looks of a year have the allowed number of false alarms.
"""

import json
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import report_counts, round_to_counts, zipf_shares
from deniable.aggregator.history.share_changes import ChangeMonitor
from deniable.aggregator.history.window_shares import WindowShares
from deniable.estimators.collection import CHANGE_ALARMS_A_YEAR, Collection
from deniable.estimators.frequency.estimate import QUANTILE_975, Estimate
from deniable.estimators.frequency.intervals.confidence_sequence import (
    ReportSteps,
    mean_over_windows,
    sequence_of_any,
    sequence_of_independent,
)
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.krr import estimate
from deniable.estimators.mechanisms.krr import KRR

FloatColumns = NDArray[np.float64]

RESULTS = Path(__file__).parents[2] / "results"
HOUR_SECONDS = 3600
HOURS_A_YEAR = 8766
ALPHA = 0.05
LOOKS = (1, 20, 100, 500)
#: Values, reports and epsilon of the alarms' collections: common values, and such with a report or two each.
WATCHED = ((10, 10_000, 1.0), (200, 1000, 2.0))
CHANGES = (0.5, 1.0, 2.0, 4.0)
BEFORE, AFTER = 100, 300  # windows before a change, and those in which it may be found


@dataclass(frozen=True)
class TogetherCell:
    """Share of runs in which all values are covered, by single intervals and by those for all values."""

    values: int
    reports: int
    epsilon: float
    exponent: float
    single: float
    for_all: float


@dataclass(frozen=True)
class LooksCell:
    """Share of runs in which a value is covered at every look of 500, and widths over the fixed-time one's.

    `all_values` and `fixed_all_values` are the shares of runs in which all values are covered at every look.
    """

    windows: str
    fixed: float
    fixed_all_values: float
    sequence: float
    all_values: float
    widths: tuple[float, ...]


@dataclass(frozen=True)
class AlarmCell:
    """False alarms in simulated years without a change.

    `naive_a_year` and `strict_a_year` count windows outside of fixed-time intervals, of 95 % and of the
    allowed number of false alarms.
    """

    values: int
    reports: int
    rate: float
    years: float
    alarms: int
    naive_a_year: float
    strict_a_year: float


@dataclass(frozen=True)
class DelayCell:
    """Runs with a change: of those found, mean delay in windows, and how often intervals hold the change.

    `fixed` and `strict` are of the rules by fixed-time intervals, of 95 % and of the allowed false alarms:
    share of runs in which the value is outside after the change, and mean delay of these in windows.
    """

    change: float
    found: float
    delay: float
    since_error: float
    covered: float
    fixed: tuple[float, float]
    strict: tuple[float, float]


def together(rng: np.random.Generator, cell: tuple[int, int, float, float], runs: int) -> TogetherCell:
    """Coverage of all values at once, for values, reports, epsilon and exponent of a population."""
    values, reports, epsilon, exponent = cell
    mechanism = KRR.from_epsilon(values, epsilon)
    truth = round_to_counts(zipf_shares(values, exponent), reports)
    share = truth / reports
    hits = np.zeros(2)
    for _ in range(runs):
        found: Estimate = estimate(report_counts(rng, truth, mechanism), mechanism)
        assert found.for_all is not None  # noqa: S101 - for mypy
        hits[0] += bool(((found.low <= share) & (share <= found.high)).all())
        hits[1] += bool(((found.for_all.low <= share) & (share <= found.for_all.high)).all())
    return TogetherCell(*cell, *(hits / runs))


def sequences(rng: np.random.Generator, runs: int, *, returning: bool) -> LooksCell:
    """Coverage at every look of 500 windows of 10,000 reports, 10 values, epsilon 1.

    Shares go up and down by a half over the windows if clients are new in each. Otherwise the same clients
    return with the same permanent responses of epsilon 2, reported with epsilon 2 again.
    """
    windows, reports = LOOKS[-1], 10_000
    mechanism = KRR.from_epsilon(10, 2.0 if returning else 1.0)
    channel, base = Inversion.of_symmetric(mechanism), zipf_shares(10, 1.0)
    wave = np.sin(np.arange(windows) / 25) * (0 if returning else base[-1] / 2)
    truth = np.array([round_to_counts(base + each * np.array([1] * 5 + [-1] * 5), reports) for each in wave])
    share, weights = truth / reports, np.full(windows, float(reports))
    true_mean = mean_over_windows(share, weights)
    covered, widths = np.zeros(4), np.zeros((2, len(LOOKS)))
    looks = np.array(LOOKS) - 1
    steps = ReportSteps(1 / channel.contrast ** (2 if returning else 1), 0 if returning else channel.slope)
    for _ in range(runs):
        counts = _returning(rng, truth[0], mechanism, windows) if returning else _fresh(rng, truth, mechanism)
        x = channel.frequency(counts / reports)
        error = channel.std_error(x, reports)
        if returning:
            x = channel.frequency(x)
            error = np.broadcast_to(error.mean() * np.hypot(1, 1 / mechanism.contrast), x.shape)
        of = sequence_of_any if returning else sequence_of_independent
        mean = mean_over_windows(x, weights)
        noise = np.sqrt(np.cumsum((error * reports) ** 2, axis=0)) / np.cumsum(weights)[:, None]
        fixed = QUANTILE_975 * (mean_over_windows(error, weights) if returning else noise)
        single, every = (of(x, error, weights, level, steps) for level in (ALPHA, ALPHA / 10))
        within = (np.abs(mean - true_mean) <= fixed).all(axis=0)
        covered[:2] += within.mean(), within.all()
        covered[2] += ((single.low <= true_mean) & (true_mean <= single.high)).all(axis=0).mean()
        covered[3] += bool(((every.low <= true_mean) & (true_mean <= every.high)).all())
        widths += [fixed[looks, 0] * 2, (single.high - single.low)[looks, 0]]
    name = "the same clients" if returning else "new clients, shares that vary"
    fixed_each, fixed_all, each, together_all = (covered / runs).tolist()
    ratios = tuple((widths[1] / widths[0]).tolist())
    return LooksCell(name, fixed_each, fixed_all, each, together_all, ratios)


def alarms(rng: np.random.Generator, watched: tuple[int, int, float], rate: float, years: float) -> AlarmCell:
    """Count false alarms of hourly windows without a change, and windows outside of the first 100's."""
    values, reports, epsilon = watched
    made, share = collection_of(values, epsilon), zipf_shares(values, 1.0)
    monitor, levels = ChangeMonitor(made, rate, epochs=3), (QUANTILE_975, fixed_level(values, rate))
    outside = np.zeros(2)
    hours, seen = int(years * HOURS_A_YEAR), set[tuple[str, int]]()
    first: list[WindowShares] = []
    for hour in range(hours):
        window = window_of(rng, made, share, reports, hour)
        if hour < BEFORE:
            first.append(window)
        else:
            outside += [outside_of_first([*first, window], level).any() for level in levels]
        monitor.add(window)
        seen |= {(each.value, each.found) for each in monitor.update()}
    of_year = (outside * HOURS_A_YEAR / (hours - BEFORE)).tolist()
    return AlarmCell(values, reports, rate, years, len(seen), *of_year)


def delay(rng: np.random.Generator, change: float, runs: int) -> DelayCell:
    """Move a share of `change` standard errors of a window from the first value to the fourth, of 10."""
    values, reports, epsilon = WATCHED[0]
    made, share = collection_of(values, epsilon), zipf_shares(values, 1.0)
    size = change * float(channel_of(made).std_error(share, reports)[3])
    moved = share.copy()
    moved[[0, 3]] += [-size, size]
    found: list[tuple[int, int, bool]] = []
    naive: list[list[int]] = [[], []]
    levels = (QUANTILE_975, fixed_level(values, CHANGE_ALARMS_A_YEAR))
    for _ in range(runs):
        windows = [
            window_of(rng, made, moved if hour >= BEFORE else share, reports, hour)
            for hour in range(BEFORE + AFTER)
        ]
        monitor = ChangeMonitor(made)
        for hour, window in enumerate(windows):
            monitor.add(window)
            hits = [each for each in monitor.update() if each.value == "3"]
            if hits:
                off = abs(hits[0].since // HOUR_SECONDS - BEFORE)
                found.append((hour - BEFORE + 1, off, hits[0].low <= size <= hits[0].high))
                break
        for delays, level in zip(naive, levels, strict=True):
            outside = outside_of_first(windows, level)[:, 3]
            delays += (np.flatnonzero(outside)[:1] + 1).tolist()
    late, since, covered = np.mean(found, axis=0) if found else (np.nan,) * 3
    fixed, strict = ((len(each) / runs, float(np.mean(each)) if each else np.nan) for each in naive)
    return DelayCell(change, len(found) / runs, float(late), float(since), float(covered), fixed, strict)


def fixed_level(values: int, rate: float) -> float:
    """Return the standard errors of a fixed-time interval with `rate` false alarms a year, hourly windows."""
    return NormalDist().inv_cdf(1 - rate / HOURS_A_YEAR / values / 2)


def outside_of_first(windows: list[WindowShares], level: float) -> NDArray[np.bool_]:
    """Which shares of windows after the first 100 are outside of `level` standard errors, (windows, k)."""
    mean = np.mean([each.unbiased for each in windows[:BEFORE]], axis=0)
    return np.array([np.abs(each.unbiased - mean) > level * each.std_error for each in windows[BEFORE:]])


def collection_of(values: int, epsilon: float) -> Collection:
    """Hourly windows of k-RR."""
    return Collection(
        name="watched",
        mechanism=KRR.from_epsilon(values, epsilon),
        values=tuple(map(str, range(values))),
        window_seconds=HOUR_SECONDS,
        grace_seconds=60,
        retention_seconds=HOUR_SECONDS,
    )


def channel_of(made: Collection) -> Inversion:
    """Channel of one value of k-RR."""
    assert isinstance(made.mechanism, KRR)  # noqa: S101 - for mypy
    return Inversion.of_symmetric(made.mechanism)


def window_of(
    rng: np.random.Generator, made: Collection, share: FloatColumns, reports: int, hour: int
) -> WindowShares:
    """One window of clients who are drawn from a population with these shares."""
    channel = channel_of(made)
    counts = rng.multinomial(reports, channel.miss + channel.contrast * share)
    unbiased = channel.frequency(counts / reports)
    return WindowShares(hour * HOUR_SECONDS, reports, unbiased, channel.std_error(unbiased, reports))


def _fresh(rng: np.random.Generator, truth: NDArray[np.int64], mechanism: KRR) -> NDArray[np.int64]:
    """Reports of each window, int64 (windows, k)."""
    kept = rng.binomial(truth, mechanism.contrast)
    rest = (truth - kept).sum(axis=1)
    return kept + rng.multinomial(rest, np.full(mechanism.k, 1 / mechanism.k))


def _returning(
    rng: np.random.Generator, truth: NDArray[np.int64], mechanism: KRR, windows: int
) -> NDArray[np.int64]:
    """Reports of clients who keep their permanent response in all windows."""
    permanent = report_counts(rng, truth, mechanism)
    return _fresh(rng, np.repeat(permanent[None], windows, axis=0), mechanism)


def text_of(
    of_all: list[TogetherCell], looks: list[LooksCell], of_alarms: list[AlarmCell], delays: list[DelayCell]
) -> str:
    """Markdown of all four tables."""
    lines = ["All values at once, percent of runs:", ""]
    lines += [
        "| K | N | epsilon | Zipf | 95 % of each | for all values |",
        "|---:|---:|---:|---:|:---:|:---:|",
    ]
    lines += [
        f"| {each.values} | {each.reports:,} | {each.epsilon:g} | {each.exponent:g} | "
        f"{100 * each.single:.1f} | {100 * each.for_all:.1f} |"
        for each in of_all
    ]
    lines += ["", f"At every look of {LOOKS[-1]}, percent; widths over those of fixed-time intervals:", ""]
    lines += [
        "| windows | fixed-time, a value | fixed-time, all values | sequence, a value "
        "| sequences, all values | " + " | ".join(f"width at {look}" for look in LOOKS) + " |",
        "|---|:---:|:---:|:---:|:---:|" + "---:|" * len(LOOKS),
    ]
    lines += [
        f"| {each.windows} | {100 * each.fixed:.1f} | {100 * each.fixed_all_values:.1f} | "
        f"{100 * each.sequence:.1f} | {100 * each.all_values:.1f} | "
        + " | ".join(f"{width:.2f}" for width in each.widths)
        + " |"
        for each in looks
    ]
    lines += [
        "",
        "Hourly windows without a change; the last columns count windows a year in which a share is outside",
        "of fixed-time intervals around the mean of the first 100, of 95 % and of the allowed false alarms:",
        "",
        "| K | N | allowed a year | years | allowed | alarms | outside of 95 % | outside of the allowed |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {each.values} | {each.reports:,} | {each.rate:g} | {each.years:g} | {each.rate * each.years:g} | "
        f"{each.alarms} | {each.naive_a_year:,.0f} | {each.strict_a_year:.1f} |"
        for each in of_alarms
    ]
    lines += [
        "",
        f"A change after {BEFORE} windows, at {CHANGE_ALARMS_A_YEAR:g} false alarms a year; the last columns",
        "are of the fixed-time intervals above, which alarm at the first window outside; those of 95 % alarm",
        "every day without a change, too:",
        "",
        f"| change, standard errors of a window | found in {AFTER}, % | delay, windows | error of `since` | "
        "interval holds the change, % | 95 %: found, % | delay | allowed: found, % | delay |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {each.change:g} | {100 * each.found:.0f} | {each.delay:.1f} | {each.since_error:.1f} | "
        f"{100 * each.covered:.1f} | {_fixed_text(*each.fixed)} | {_fixed_text(*each.strict)} |"
        for each in delays
    ]
    return "\n".join([*lines, ""])


def _fixed_text(found: float, delay_windows: float) -> str:
    return f"{100 * found:.0f} | {'' if np.isnan(delay_windows) else f'{delay_windows:.1f}'}"


@click.command()
@click.option("--runs", type=click.IntRange(10), default=1000, show_default=True, help="Of each coverage.")
@click.option("--years", type=click.IntRange(1), default=10, show_default=True, help="Without a change.")
def main(runs: int, years: int) -> None:
    """Print the tables and write them to bench/results.

    Exit status 1 if all values or looks are covered below 93 %, or there are more false alarms than allowed.
    """
    rng = np.random.default_rng(1)
    grid = product((2, 10, 100), (10_000, 1_000_000), (1.0, 4.0), (0.01, 1.3))
    of_all = [together(rng, cell, runs) for cell in grid]
    looks = [sequences(rng, runs, returning=returning) for returning in (False, True)]
    rates = ((CHANGE_ALARMS_A_YEAR, years), (10.0, years / 4))
    of_alarms = [alarms(rng, each, rate, length) for each in WATCHED for rate, length in rates]
    delays = [delay(rng, change, max(10, runs // 10)) for change in CHANGES]
    text = text_of(of_all, looks, of_alarms, delays)
    tables: dict[str, list[Any]] = {"all": of_all, "looks": looks, "alarms": of_alarms, "delays": delays}
    figures = {name: [asdict(each) for each in cells] for name, cells in tables.items()}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "anytime.md").write_text(text)
    (RESULTS / "anytime.json").write_text(json.dumps(figures, indent=1) + "\n")
    click.echo(text, nl=False)
    if min(*(each.for_all for each in of_all), *(each.sequence for each in looks)) < 0.93:
        raise click.ClickException("all values or looks are covered below 93 %")
    if any(each.alarms > each.rate * each.years + 1 for each in of_alarms):
        raise click.ClickException("there are more false alarms than allowed")


if __name__ == "__main__":
    main()
