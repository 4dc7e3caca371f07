"""Interleaved rounds of jobs, so that noise of the machine affects all contestants alike."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TypeVar

import click

from bench.comparison.timing.contestant import Contestant, ContestantError

FIRST_COUNT = 256
Name = TypeVar("Name", bound=Hashable)
Done = TypeVar("Done")


@dataclass(frozen=True)
class Scale:
    """How thoroughly everything is measured.

    Parameters
    ----------
    quick : True for smaller sizes, to measure all goals within three minutes.
    rounds : number of rounds; the median counts.
    seconds : target processor time of a round.
    most_count : largest number of repetitions of a job in a round.
    """

    quick: bool
    rounds: int
    seconds: float
    most_count: int = 4_000_000


QUICK = Scale(quick=True, rounds=3, seconds=0.04, most_count=1_000_000)
FULL = Scale(quick=False, rounds=9, seconds=0.5)


@dataclass(frozen=True)
class Job:
    """A job of a contestant; `says` is how it differs from ours, `called` its name in the results."""

    contestant: Contestant
    name: str
    parameters: Mapping[str, object]
    says: str = ""
    called: str = ""


@dataclass(frozen=True)
class Rate:
    """Repetitions of a job per second of processor time: median, least and most of the rounds.

    `failed` is the reason of a failure; the rates are 0 then.
    """

    job: Job
    median: float = 0.0
    least: float = 0.0
    most: float = 0.0
    failed: str = ""


def in_turn(
    tasks: Mapping[Name, Callable[[], Done]], rounds: int, errors: tuple[type[Exception], ...]
) -> tuple[dict[Name, list[Done]], dict[Name, str]]:
    """Run all tasks in turn, round by round, printing a dot per round; drop a task that raises `errors`.

    Returns
    -------
    The results of each task, round by round, and the reasons of those that failed.
    """
    found: dict[Name, list[Done]] = {name: [] for name in tasks}
    failed: dict[Name, str] = {}
    for _ in range(rounds):
        for name in [each for each in tasks if each not in failed]:
            try:
                found[name].append(tasks[name]())
            except errors as error:
                failed[name] = str(error)
        click.echo(".", err=True, nl=False)
    return found, failed


def rates(jobs: Sequence[Job], scale: Scale) -> list[Rate]:
    """Measure the rate of each job, in interleaved rounds."""
    tasks: dict[int, Callable[[], float]] = {}
    failed: dict[int, str] = {}
    for number, job in enumerate(jobs):
        try:
            tasks[number] = partial(_rate, job, _calibrated(job, scale))
        except ContestantError as error:
            failed[number] = str(error)
    found, failed_later = in_turn(tasks, scale.rounds, (ContestantError,))
    failed |= failed_later
    return [
        Rate(job, failed=failed[number])
        if number in failed
        else Rate(job, median(found[number]), min(found[number]), max(found[number]))
        for number, job in enumerate(jobs)
    ]


def _rate(job: Job, count: int) -> float:
    """Return the rate in one round; prepares first, because a contestant may have several jobs."""
    job.contestant.prepare(job.name, count, **job.parameters)
    return count / job.contestant.run().cpu_seconds


def _calibrated(job: Job, scale: Scale) -> int:
    """Return the number of repetitions that fills a round, after a warm-up that loads and compiles."""
    count = FIRST_COUNT
    while True:
        job.contestant.prepare(job.name, count, **job.parameters)
        job.contestant.run()
        took = job.contestant.run().cpu_seconds
        if took >= scale.seconds / 2 or count >= scale.most_count:
            return count
        # Grow by at most a factor of 8, because very short times are unreliable.
        count = min(scale.most_count, int(count * min(8.0, max(1.5, scale.seconds / max(took, 1e-6)))))
