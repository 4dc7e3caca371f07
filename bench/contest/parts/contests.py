"""A contest of one of our jobs with those of peers: its figure, and a table of all who took part."""

from collections.abc import Sequence

from bench.aggregator_results import Row
from bench.contest.contestant import ContestantError
from bench.contest.figure import Figure
from bench.contest.rounds import Job, Rate, Scale, rates


def contest(
    name: str, ours: Job, peers: Sequence[Job], scale: Scale, goal: float | None, aside: Sequence[Job] = ()
) -> tuple[list[Figure], list[Row]]:
    """Our rate beside the fastest peer's, reports a second of one core; rows of all, the fastest first.

    There is no figure where no peer could do it; ContestantError if we could not.

    Jobs `aside` are another thing than what is compared: they are in the rows alone.
    """
    mine, *others = rates([ours, *peers, *aside], scale)
    if mine.failed:
        raise ContestantError(mine.failed)
    fastest = max(others[: len(peers)], key=lambda rate: rate.median)
    library = fastest.job.contestant.library
    figures = [Figure(name, "reports/s", mine.median, library, fastest.median, goal)]
    ranked = sorted(others, key=lambda rate: -rate.median)
    return figures if fastest.median else [], [_row(name, rate) for rate in (mine, *ranked)]


def _row(name: str, rate: Rate) -> Row:
    contestant = rate.job.contestant
    return {
        "job": name,
        "library": f"{contestant.library} {contestant.version}".strip(),
        "reports/s": rate.median,
        "least": rate.least,
        "most": rate.most,
        "does otherwise": rate.failed or rate.job.says,
    }
