"""Our rate at a job beside the rates of peers, as rows of a table."""

from collections.abc import Sequence
from typing import NamedTuple

from bench.comparison.timing.contestant import ContestantError
from bench.comparison.timing.rounds import Job, Timed, timed
from bench.sections import ResultRow, Section, shown


class Comparison(NamedTuple):
    """Rows of one job, ours first, and goals that were missed."""

    rows: list[ResultRow]
    missed: list[str]


def beside_peers(
    name: str, ours: Job, peers: Sequence[Job], goal: float | None = None, aside: Sequence[Job] = ()
) -> Comparison:
    """Compare our rate, reports per second of one core, with each peer's.

    The goal is how many times the rate of the fastest of `peers` ours must be. Jobs `aside` do something else
    than it asks. With a peer missing it is not judged, because that might be the fastest.

    Raises
    ------
    ContestantError if our own job failed.
    """
    mine, *others = timed([ours, *peers, *aside])
    if mine.failed:
        raise ContestantError(mine.failed)
    rivals, rate = others[: len(peers)], mine.rates[0]
    missing = any(each.failed for each in rivals)
    fastest = max((each.rates[0] for each in rivals if each.rounds), default=0.0)
    times = rate / fastest if fastest else 0.0
    asked = "" if goal is None or not rivals else f"{goal:g}{', not judged' if missing else ''}"
    ranked = sorted(others, key=lambda each: -each.rates[0] if each.rounds else 0.0)
    rows = [_row(name, mine, rate, asked), *(_row(name, each, rate) for each in ranked)]
    if goal is None or not rivals or missing or times >= goal:
        return Comparison(rows, [])
    return Comparison(rows, [f"{name}: {shown(times)} times the fastest peer's rate, of {goal:g} asked"])


def with_goal(name: str, ours: Job, wanted: float) -> Comparison:
    """Compare our rate, reports per second of one core, with a goal; ContestantError if our job failed."""
    found = beside_peers(name, ours, [])
    rate = float(found.rows[0]["reports/s"])
    missed = [] if rate >= wanted else [f"{name}: {shown(rate)} reports/s, of {shown(wanted)} asked"]
    return Comparison([{**found.rows[0], "goal": f"{shown(wanted)} reports/s"}], missed)


def section_of(about: str, compared: Sequence[Comparison]) -> Section:
    """Put all rows into one table."""
    rows = [row for each in compared for row in each.rows]
    return Section(about, rows, missed=[why for each in compared for why in each.missed])


def _row(name: str, found: Timed, ours: float, goal: str = "") -> ResultRow:
    contestant = found.job.contestant
    rate, least, most = found.rates if found.rounds else ("", "", "")
    return {
        "job": name,
        "library": f"{contestant.library} {contestant.version}".strip(),
        "reports/s": rate,
        "least": least,
        "most": most,
        "ours is, times": ours / rate if isinstance(rate, float) else "",
        "goal": goal,
        "does otherwise": found.failed or found.job.says,
    }
