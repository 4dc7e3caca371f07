"""Interleaved rounds of jobs that may take microseconds or minutes."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench.comparison.timing.contestant import Timing
from bench.comparison.timing.rounds import Job, Scale

MOST_COUNT = 100_000
# Fraction of a scale's seconds per round, because these parts have more jobs.
_ROUND = 0.25
# All rounds of a job take at most about this many times a scale's seconds, unless a single one takes longer.
_ALL_ROUNDS = 10.0


@dataclass(frozen=True)
class Time:
    """Time of one job, medians over rounds.

    Parameters
    ----------
    job : the job.
    cpu_seconds, seconds : processor time and wall time.
    rounds : number of rounds.
    result : of the last round.
    """

    job: Job
    cpu_seconds: float
    seconds: float
    rounds: int
    result: object


def times(jobs: Sequence[Job], scale: Scale) -> list[Time]:
    """Measure the time of each job in interleaved rounds, with fewer rounds for long jobs.

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
    """Return the repetitions per round, and the first round; short jobs are warmed up before."""
    first = _done(job, 1)
    if _rounds(first.cpu_seconds, scale) == 1:
        return 1, [first]
    again = job.contestant.run().cpu_seconds
    count = int(min(MOST_COUNT, max(1.0, _ROUND * scale.seconds / max(again, 1e-6))))
    return count, [_done(job, count)]


def _rounds(cpu_seconds: float, scale: Scale) -> int:
    """Return the number of rounds for a job of this length."""
    return int(min(scale.rounds, max(1.0, _ALL_ROUNDS * scale.seconds / max(cpu_seconds, 1e-6))))


def _done(job: Job, count: int) -> Timing:
    """Run one round; times are per repetition."""
    job.contestant.prepare(job.name, count, **job.parameters)
    timing = job.contestant.run()
    return Timing(timing.cpu_seconds / count, timing.seconds / count, timing.result)
