"""The alert of changes: false alarms in simulated years, and the delay of changes, of shares and of a mean.

Windows are hourly, simulated from counts of k-RR or Square Wave reports. Shares are beside two rules that
compare each window with the mean of the first 100 by fixed-time intervals: of 95 %, and of the level at which
all values and looks of a year have the allowed number of false alarms.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import zipf_shares
from bench.sections import ResultRow, Section, percent
from deniable.aggregator.history.share_changes import ChangeMonitor
from deniable.aggregator.history.window_shares import WindowShares, shares_of_counts
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import CHANGE_ALARMS_A_YEAR, Collection
from deniable.estimators.frequency.estimate import QUANTILE_975
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.number import unbiased_mean
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.square_wave import SquareWave

HOUR_SECONDS, HOURS_A_YEAR = 3600, 8766
BEFORE, AFTER = 100, 300  # windows before a change, and those in which it may be found
YEARS, RUNS = 10.0, 100
REPORTS, VALUES = 10_000, 10
CHANGES = (0.5, 1.0, 2.0, 4.0)
MOVED = 3
#: Parts of a window after a change inside it, windows until it is stated anew, epsilons and sizes.
PARTS, SETTLED_AFTER, PART_RUNS = (0.1, 0.3, 0.5, 0.7, 0.9), 40, 20
SIZES = ((1.0, 2.0), (1.0, 4.0), (1.0, 10.0), (1.0, 20.0), (4.0, 4.0), (4.0, 20.0), (4.0, 40.0))
LEAST_HELD = 93.0

WAVE = SquareWave.from_epsilon(0.0, 1.0, 64, 1.0)
CELLS, LAST = np.arange(WAVE.steps), WAVE.steps - 1
EVEN = np.full(WAVE.steps, 1 / WAVE.steps)
#: All numbers in one of two cells at the ends: the largest spread that there is, with the mean of EVEN.
ENDS = np.where((CELLS == 0) | (CELLS == LAST), 0.5, 0.0)
#: All numbers in the middle two cells: nearly no spread, with the same mean.
MIDDLE = np.where((CELLS == LAST // 2) | (CELLS == LAST // 2 + 1), 0.5, 0.0)
#: Shares of rare large numbers: skewed.
RARE = np.where(CELLS == 0, 0.99, np.where(CELLS == LAST, 0.01, 0.0))


class Scene(NamedTuple):
    """A collection, reports of an hour, and the true shares of values or cells in each hour."""

    name: str
    collection: Collection
    reports: int
    shares: Callable[[int], FloatArray]


def watched(mechanism: KRR | SquareWave) -> Collection:
    """A collection with hourly windows."""
    values = tuple(map(str, range(mechanism.k))) if isinstance(mechanism, KRR) else ()
    return Collection(
        "watched", mechanism, values, window_seconds=3600, grace_seconds=60, retention_seconds=HOUR_SECONDS
    )


def of_shares(values: int, reports: int, epsilon: float) -> Scene:
    """Shares that fall as 1 / rank and stay."""
    shares = zipf_shares(values, 1.0)
    name = f"{values} values, {reports:,} reports"
    return Scene(name, watched(KRR.from_epsilon(values, epsilon)), reports, lambda _: shares)


def of_numbers(name: str, reports: int, shares: Callable[[int], FloatArray]) -> Scene:
    """Numbers whose mean stays."""
    return Scene(name, watched(WAVE), reports, shares)


#: Common values, and such with a report or two each.
SHARES = (of_shares(10, 10_000, 1.0), of_shares(200, 1000, 2.0))
NUMBERS = (
    of_numbers("spread evenly", REPORTS, lambda _: EVEN),
    of_numbers("1 % at the upper end, others at the lower, 100 reports", 100, lambda _: RARE),
    of_numbers("a spread that changes", REPORTS, lambda hour: ENDS if hour // 200 % 2 else MIDDLE),
)


def window(
    rng: np.random.Generator, scene: Scene, hour: int, shares: FloatArray | None = None
) -> WindowShares:
    """One window of clients who are drawn from a population, of the scene's shares or of these."""
    mechanism = scene.collection.mechanism
    assert isinstance(mechanism, KRR | SquareWave)  # noqa: S101 - for mypy
    rates = mechanism.channel @ (scene.shares(hour) if shares is None else shares)
    counts = rng.multinomial(scene.reports, rates / rates.sum())
    counted = WindowCounts(counts[None].astype(np.int64), np.array([scene.reports]), 1, 0)
    found = shares_of_counts(scene.collection, hour * HOUR_SECONDS, counted)
    assert found is not None  # noqa: S101 - for mypy
    return found


def fixed_level(values: int, rate: float) -> float:
    """Return the standard errors of a fixed-time interval with `rate` false alarms a year, hourly windows."""
    return NormalDist().inv_cdf(1 - rate / HOURS_A_YEAR / values / 2)


def outside_of_first(windows: Sequence[WindowShares], level: float) -> NDArray[np.bool_]:
    """Which shares of windows after the first 100 are outside of `level` standard errors, (windows, k)."""
    mean = np.mean([each.unbiased for each in windows[:BEFORE]], axis=0)
    return np.array([np.abs(each.unbiased - mean) > level * each.std_error for each in windows[BEFORE:]])


def false_alarms(rng: np.random.Generator, scene: Scene, rate: float, years: float) -> ResultRow:
    """Count alarms of windows without a change, and of shares windows outside of the first 100's."""
    values = len(scene.collection.values)
    monitor, levels = ChangeMonitor(scene.collection, rate), (QUANTILE_975, fixed_level(max(values, 1), rate))
    hours, seen, outside = int(years * HOURS_A_YEAR), set[tuple[str, int]](), np.zeros(2)
    first: list[WindowShares] = []
    for hour in range(hours):
        found = window(rng, scene, hour)
        if hour < BEFORE:
            first.append(found)
        elif values:
            outside += [outside_of_first([*first, found], level).any() for level in levels]
        monitor.add(found)
        seen |= {(str(each.value), each.found) for each in monitor.update()}
    row: dict[str, float | str] = {
        "windows": scene.name,
        "allowed a year": f"{rate:g}",
        "years": f"{years:g}",
        "allowed": f"{rate * years:g}",
        "alarms": len(seen),
    }
    if values:
        naive, strict = outside * HOURS_A_YEAR / (hours - BEFORE)
        row |= {"outside of 95 %": f"{naive:,.0f}", "outside of the allowed": f"{strict:.1f}"}
    return row


def of_years(about: str, scenes: Iterable[Scene], years: float) -> Section:
    """Judge alarms at the default rate, and at ten a year."""
    rng = np.random.default_rng(1)
    rates = ((CHANGE_ALARMS_A_YEAR, years), (10.0, years / 4))
    rows = [false_alarms(rng, scene, rate, length) for scene in scenes for rate, length in rates]
    missed = [str(row["windows"]) for row in rows if float(row["alarms"]) > float(row["allowed"]) + 1]
    return Section(about, rows, missed=[f"more false alarms than allowed: {name}" for name in missed])


def first_alarms(
    rng: np.random.Generator, scene: Scene, moved: FloatArray, label: str | None, runs: int
) -> Iterator[tuple[list[WindowShares], tuple[int, int, float, float] | None]]:
    """Yield the windows of each run, which move after 100, and delay, first hour and interval of an alarm."""
    for _ in range(runs):
        windows = [
            window(rng, scene, hour, moved if hour >= BEFORE else None) for hour in range(BEFORE + AFTER)
        ]
        monitor, alarm = ChangeMonitor(scene.collection), None
        for hour, each in enumerate(windows):
            monitor.add(each)
            hits = [one for one in monitor.update() if label is None or one.value == label]
            if hits:
                alarm = (hour - BEFORE + 1, hits[0].since // HOUR_SECONDS, hits[0].low, hits[0].high)
                break
        yield windows, alarm


def delays(runs: int = RUNS) -> Section:
    """Move a share, in standard errors of a window, from the first value to the fourth."""
    rng, scene, rows = np.random.default_rng(1), SHARES[0], list[ResultRow]()
    share = scene.shares(0)
    levels = {"95 %": QUANTILE_975, "allowed": fixed_level(VALUES, CHANGE_ALARMS_A_YEAR)}
    for change in CHANGES:
        size, moved = change * error_of(scene), share.copy()
        moved[[0, MOVED]] += [-size, size]
        found: list[tuple[int, int, bool]] = []
        outside: dict[str, list[int]] = {name: [] for name in levels}
        for windows, alarm in first_alarms(rng, scene, moved, str(MOVED), runs):
            if alarm:
                late, since, low, high = alarm
                found.append((late, abs(since - BEFORE), low <= size <= high))
            for name, level in levels.items():
                late_ones = np.flatnonzero(outside_of_first(windows, level)[:, MOVED])[:1] + 1
                outside[name] += late_ones.tolist()
        row = {"change, standard errors": f"{change:g}", **_found(found, runs)}
        for name, each in outside.items():
            row[f"{name}: found, %"] = f"{100 * len(each) / runs:.0f}"
            row[f"{name}: delay"] = f"{np.mean(each):.1f}" if each else ""
        rows.append(row)
    about = (
        f"A change of a share, in standard errors of a window, after {BEFORE} windows of {REPORTS:,} reports "
        f"of {VALUES} values at epsilon 1, with {CHANGE_ALARMS_A_YEAR:g} false alarms a year, and how far "
        f"`since` is off; {runs} runs. The last columns are of fixed-time intervals around the mean of "
        "the first "
        "windows, of 95 % and of the allowed false alarms, which alarm at the first window outside; those of "
        "95 % alarm every day without a change, too."
    )
    return Section(about, rows)


def delays_of_a_mean(runs: int = RUNS) -> Section:
    """Move the mean of evenly spread numbers up."""
    rng, scene, rows = np.random.default_rng(1), NUMBERS[0], list[ResultRow]()
    error = unbiased_mean(np.rint(WAVE.channel @ EVEN * REPORTS).astype(np.int64), WAVE)[1]
    tilt = CELLS - CELLS.mean()
    for change in CHANGES:
        size = change * error
        moved = EVEN + tilt * size / float(((CELLS + 0.5) / WAVE.steps) @ tilt)
        alarms = [alarm for _, alarm in first_alarms(rng, scene, moved, None, runs) if alarm]
        found = [(late, abs(since - BEFORE), low <= size <= high) for late, since, low, high in alarms]
        rows.append({"change, standard errors": f"{change:g}", **_found(found, runs)})
    about = f"The same of the mean of {REPORTS:,} evenly spread numbers at epsilon 1; {runs} runs."
    return Section(about, rows)


def _found(found: Sequence[tuple[int, int, bool]], runs: int) -> dict[str, float | str]:
    """Columns of runs whose change was found: delay, error of `since`, whether the interval holds it."""
    late, off, held = np.mean(found, axis=0) if found else (np.nan,) * 3
    return {
        f"found in {AFTER}, %": f"{100 * len(found) / runs:.0f}",
        "delay, windows": f"{late:.1f}",
        "error of `since`": f"{off:.1f}",
        "interval holds it, %": percent(held),
    }


def error_of(scene: Scene) -> float:
    """Standard error of the share that moves, in one window."""
    assert isinstance(scene.collection.mechanism, KRR)  # noqa: S101 - for mypy
    channel = Inversion.of_symmetric(scene.collection.mechanism)
    return float(channel.std_error(scene.shares(0), scene.reports)[MOVED])


def part_of_a_window(epsilon: float, change: float, runs: int, rng: np.random.Generator) -> ResultRow:
    """Change a share inside a window, `runs` times for each of PARTS."""
    scene = of_shares(VALUES, REPORTS, epsilon)
    share, size = scene.shares(0), change * error_of(scene)
    after = share * (1 - share[MOVED] - size) / (1 - share[MOVED])
    after[MOVED] = share[MOVED] + size
    held: list[tuple[bool, bool]] = []
    for part, _ in product(PARTS, range(runs)):
        mixed = part * after + (1 - part) * share
        monitor, first = ChangeMonitor(scene.collection), None
        for hour in range(BEFORE + SETTLED_AFTER):
            monitor.add(
                window(rng, scene, hour, share if hour < BEFORE else mixed if hour == BEFORE else after)
            )
            if hour < BEFORE or (first is not None and hour < BEFORE + SETTLED_AFTER - 1):
                continue
            stated = [each for each in monitor.update() if each.value == str(MOVED)]
            first = first or (stated[0] if stated else None)
        if first is not None:
            held.append((first.low <= size <= first.high, stated[0].low <= size <= stated[0].high))
    at_once, settled = np.mean(held, axis=0) if held else (np.nan, np.nan)
    return {
        "epsilon": epsilon,
        "change, standard errors": change,
        "runs": runs * len(PARTS),
        f"found in {SETTLED_AFTER} windows": f"{100 * len(held) / runs / len(PARTS):.0f}",
        "at once": percent(at_once),
        "settled": percent(settled),
    }


def parts_of_windows(runs: int = PART_RUNS) -> Section:
    """Judge the statements of changes that begin inside a window."""
    rng = np.random.default_rng(1)
    rows = [part_of_a_window(*each, runs, rng) for each in SIZES]
    about = (
        f"{VALUES} values, {REPORTS:,} reports a window, {BEFORE} windows without a change, then one of "
        "which "
        f"a part, {', '.join(percent(1 - part, 0) for part in PARTS)} %, has the old shares. Percent of the "
        "changes that were found, held by the statement in the window of the alarm, and by the one that "
        f"stands {SETTLED_AFTER} windows after the change."
    )
    missed = [
        f"settled intervals hold {row['settled']} % at epsilon {row['epsilon']}"
        for row in rows
        if float(row["settled"]) < LEAST_HELD
    ]
    return Section(about, rows, missed=missed)


ABOUT_YEARS = (
    "Hourly windows without a change; the last columns count windows a year in which a share is outside of "
    "fixed-time intervals around the mean of the first 100, of 95 % and of the allowed false alarms."
)

CASES = {
    "false alarms": lambda: of_years(ABOUT_YEARS, SHARES, YEARS),
    "delay of a change": delays,
    "a change inside a window": parts_of_windows,
    "false alarms of a mean": lambda: of_years(
        "Hourly windows of a number at epsilon 1 whose mean does not change.", NUMBERS, YEARS
    ),
    "delay of a change of the mean": delays_of_a_mean,
}
