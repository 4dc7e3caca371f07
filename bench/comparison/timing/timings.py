"""Contestants that do one job in turn, where what one takes may be microseconds or minutes."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.comparison.timing.contestant import Timing
from bench.comparison.timing.rounds import Job, Scale

MOST_COUNT = 100_000
# Of a scale's seconds for a round: there are more jobs here than where reports are counted by the second.
_ROUND = 0.25
# All rounds of a job together take at most about so many times these seconds, unless one alone takes longer.
_ALL_ROUNDS = 10.0


@dataclass(frozen=True)
class Time:
    """What it takes to do a job once: seconds, medians of the rounds.

    Parameters
    ----------
    job : what was done.
    cpu_seconds, seconds : of processor time, and as they passed.
    rounds : of how many the median is.
    result : what came out of the last one.
    """

    job: Job
    cpu_seconds: float
    seconds: float
    rounds: int
    result: object


def times(jobs: Sequence[Job], scale: Scale) -> list[Time]:
    """Time of each job, all measured round by round in turn, as often as their lengths allow.

    Raises
    ------
    ContestantError if a library fails.
    """
    plans = [_planned(job, scale) for job in jobs]
    for done in range(1, scale.rounds):
        for job, (count, found) in zip(jobs, plans, strict=True):
            if done < _rounds(found[0].cpu_seconds, scale):
                found.append(_done(job, count))
    return [_time(job, found) for job, (_, found) in zip(jobs, plans, strict=True)]


def _time(job: Job, found: Sequence[Timing]) -> Time:
    cpu_seconds = median(timing.cpu_seconds for timing in found)
    seconds = median(timing.seconds for timing in found)
    return Time(job, cpu_seconds, seconds, len(found), found[-1].result)


def _planned(job: Job, scale: Scale) -> tuple[int, list[Timing]]:
    """How often it is done in a round, and the first round. What a short job loads first is not timed."""
    first = _done(job, 1)
    if _rounds(first.cpu_seconds, scale) == 1:
        return 1, [first]
    again = job.contestant.run().cpu_seconds
    count = int(min(MOST_COUNT, max(1.0, _ROUND * scale.seconds / max(again, 1e-6))))
    return count, [_done(job, count)]


def _rounds(cpu_seconds: float, scale: Scale) -> int:
    """How many rounds of what takes so long once."""
    return int(min(scale.rounds, max(1.0, _ALL_ROUNDS * scale.seconds / max(cpu_seconds, 1e-6))))


def _done(job: Job, count: int) -> Timing:
    """Do it in one round; times are of one."""
    job.contestant.prepare(job.name, count, **job.parameters)
    timing = job.contestant.run()
    return Timing(timing.cpu_seconds / count, timing.seconds / count, timing.result)
