"""Our rate at a job beside the rates of peers: figures, and a table of all libraries."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.aggregator.results import ResultRow
from bench.comparison.report.figure import Figure, ResultsPart, Table, absolute
from bench.comparison.timing.contestant import ContestantError
from bench.comparison.timing.rounds import Job, Rate, Scale, rates


@dataclass(frozen=True)
class PeerComparison:
    """Figures, a row per library, and the reasons why a goal could not be judged."""

    figures: Sequence[Figure]
    rows: Sequence[ResultRow]
    unjudged: Sequence[str] = ()


def compare_with_peers(
    name: str, ours: Job, peers: Sequence[Job], scale: Scale, goal: float | None, aside: Sequence[Job] = ()
) -> PeerComparison:
    """Compare our rate, reports per second of one core, with the fastest peer's.

    Jobs `aside` do something else than the goal asks: each gets its own figure without a goal. A library that
    failed has a row but no figure. With a peer missing the goal is not judged, because it might be the
    fastest.

    Raises
    ------
    ContestantError if our own job failed.
    """
    mine, *others = rates([ours, *peers, *aside], scale)
    if mine.failed:
        raise ContestantError(mine.failed)
    rivals = others[: len(peers)]
    fastest = max(rivals, key=lambda rate: rate.median)
    missing = [rate.failed for rate in rivals if rate.failed]
    compared = [(name, fastest, goal)]
    compared += [(f"{name}, beside {rate.job.called}", rate, None) for rate in others[len(peers) :]]
    figures = [
        Figure(each, "reports/s", mine.median, rate.job.contestant.library, rate.median, wanted, not missing)
        for each, rate, wanted in compared
        if rate.median
    ]
    ranked = [mine, *sorted(others, key=lambda rate: -rate.median)]
    unjudged = [f"{name}: {', '.join(missing)}"] if missing and goal is not None else []
    return PeerComparison(figures, [_row(name, rate) for rate in ranked], unjudged)


def compare_with_goal(name: str, ours: Job, scale: Scale, wanted: float) -> PeerComparison:
    """Compare our rate, reports per second of one core, with a goal.

    Raises
    ------
    ContestantError if our job failed.
    """
    (mine,) = rates([ours], scale)
    if mine.failed:
        raise ContestantError(mine.failed)
    return PeerComparison([absolute(name, "reports/s", mine.median, wanted)], [_row(name, mine)])


def part_of(
    title: str, about: str, table: str, comparisons: Sequence[PeerComparison], notes: Sequence[str]
) -> ResultsPart:
    """Combine several comparisons into a part of the results, with one table of all libraries."""
    return ResultsPart(
        title,
        about,
        [figure for each in comparisons for figure in each.figures],
        [Table(table, [row for each in comparisons for row in each.rows])],
        notes,
        unjudged=[why for each in comparisons for why in each.unjudged],
    )


def _row(name: str, rate: Rate) -> ResultRow:
    contestant = rate.job.contestant
    return {
        "job": name,
        "library": f"{contestant.library} {contestant.version}".strip(),
        "reports/s": rate.median or "",
        "least": rate.least or "",
        "most": rate.most or "",
        "does otherwise": rate.failed or rate.job.says,
    }
