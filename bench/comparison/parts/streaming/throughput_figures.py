"""End-to-end speeds compared with goals and with each other, and what limited them."""

import os
from collections.abc import Sequence

from bench.aggregator.results import shown
from bench.comparison.parts.streaming.speeds import (
    FULL,
    HELD,
    READING,
    RIVAL_GOALS,
    RIVALS,
    SPREAD_SHARE,
    TWO_WORKERS,
    Size,
    Speed,
    name_of,
)
from bench.comparison.report.figure import Figure, absolute

BUSY_CORES = 0.8  # from this usage on, a worker had little to wait for
OURS_AND_READING = (name_of(1), HELD, name_of(2), READING)


def figures(size: Size, speeds: Sequence[Speed]) -> list[Figure]:
    """One worker with its goal, ours with reading alone and with each other, and one worker with rivals."""
    done = {speed.reader: speed for speed in speeds if speed.runs}
    alone, one = _reading(speeds), done.get(name_of(1))
    found: list[Figure] = []
    if one and size.goal is not None:
        found.append(absolute(_name(size, 1), "reports/s", one.median, size.goal))
    for workers in size.workers:
        mine = done.get(name_of(workers))
        if mine and alone:
            found.append(_beside(size, workers, mine, alone, size.share if workers == 1 else None))
        if mine and one and mine is not one:
            found.append(_beside(size, workers, mine, one, TWO_WORKERS))
    if one and (spread := done.get(name_of(1, size.collections))) and size.collections:
        name = f"Packs of {size.reports:,}, {size.collections} collections of 64 cohorts, beside one"
        found.append(Figure(name, "reports/s", spread.median, one.reader, one.median, SPREAD_SHARE))
    rivals = [(library, done.get(RIVALS[library][1])) for library in size.peers]
    return found + [
        _beside(size, 1, one, rival, RIVAL_GOALS.get(library)) for library, rival in rivals if one and rival
    ]


def unjudged(speeds: Sequence[Speed]) -> list[str]:
    """Goals that could not be judged because one worker counted nothing, with the reason."""
    goals = {size.reports for size in FULL if size.goal is not None}
    return [
        f"packs of {each.reports:,}, {each.reader}: {each.says}"
        for each in speeds
        if each.reader == name_of(1) and each.reports in goals and not each.runs
    ]


def limit(size: Size, speeds: Sequence[Speed]) -> str:
    """What limited the speed if the goal is missed; "" if it is met, or without a goal."""
    mine = speeds[0]
    if size.goal is None or not mine.runs or mine.median >= size.goal:
        return ""
    held = any(each.reader == HELD and each.runs for each in speeds)
    changing = " It uses less when held on one core, without the cost of changing cores." if held else ""
    took = f"it took {mine.cores:.2f} cores, the broker {mine.broker_cores or 0:.2f} of {os.cpu_count()}"
    why = (
        f"Of a worker's two threads, which fetch and count, one runs Python at a time: {took}.{changing}"
        if mine.cores >= BUSY_CORES
        else f"The worker waited, for the broker or for a core: {took}."
    )
    return (
        f"{_name(size, 1)}: {size.goal:,.0f} reports/s are not reached. They leave {shown(1e9 / size.goal)} "
        f"ns of a core for a report. {why}"
    )


def spent(size: Size, speeds: Sequence[Speed]) -> str:
    """Cost of a report for each of ours and for reading alone; "" if unknown for one worker."""
    done = [each for each in speeds if each.runs and each.reader in OURS_AND_READING]
    if not done or done[0] is not speeds[0]:
        return ""
    reported = ", ".join(f"{each.reader} {shown(1e9 / each.a_cpu_second)}" for each in done)
    return f"Packs of {size.reports:,}: nanoseconds of processor time that a report takes: {reported}."


def _reading(speeds: Sequence[Speed]) -> Speed | None:
    return next((each for each in speeds if each.reader == READING and each.runs), None)


def _name(size: Size, workers: int) -> str:
    return f"Packs of {size.reports:,}, {workers} worker{'s' if workers > 1 else ''}"


def _beside(size: Size, workers: int, mine: Speed, other: Speed, goal: float | None) -> Figure:
    name = f"{_name(size, workers)}, beside {other.reader}"
    return Figure(name, "reports/s", mine.median, other.reader, other.median, goal)
