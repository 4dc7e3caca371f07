"""Contestants that do one job in turn, so that what the machine does meanwhile falls on all of them."""

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
    quick : smaller sizes, for all goals within two minutes.
    rounds : of which the median counts.
    seconds : of processor time that a round should take.
    most_count : how often a job is done at most in a round, however fast it is.
    """

    quick: bool
    rounds: int
    seconds: float
    most_count: int = 4_000_000


QUICK = Scale(quick=True, rounds=3, seconds=0.04, most_count=1_000_000)
FULL = Scale(quick=False, rounds=9, seconds=0.5)


@dataclass(frozen=True)
class Job:
    """What a contestant is told to do; `says` is what it does less, or otherwise, `called` what it is."""

    contestant: Contestant
    name: str
    parameters: Mapping[str, object]
    says: str = ""
    called: str = ""


@dataclass(frozen=True)
class Rate:
    """How often a contestant did a job: per second of processor time, median, least and most of the rounds.

    `failed` says why it could not; the rates are 0 then.
    """

    job: Job
    median: float = 0.0
    least: float = 0.0
    most: float = 0.0
    failed: str = ""


def in_turn(
    tasks: Mapping[Name, Callable[[], Done]], rounds: int, errors: tuple[type[Exception], ...]
) -> tuple[dict[Name, list[Done]], dict[Name, str]]:
    """Do all tasks so many times, in turn, with a dot for each time; one that raises one of `errors` ends.

    Returns
    -------
    What each task gave, round by round; and why, of those that failed.
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
    """Rate of each job, all measured round by round in turn."""
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
    """Of one round. A contestant may have several jobs: each is prepared anew."""
    job.contestant.prepare(job.name, count, **job.parameters)
    return count / job.contestant.run().cpu_seconds


def _calibrated(job: Job, scale: Scale) -> int:
    """How often it is done in about the seconds of a round. What is loaded or compiled first is not timed."""
    count = FIRST_COUNT
    while True:
        job.contestant.prepare(job.name, count, **job.parameters)
        job.contestant.run()
        took = job.contestant.run().cpu_seconds
        if took >= scale.seconds / 2 or count >= scale.most_count:
            return count
        # At most 8 times as many: what takes no time at all tells nothing yet.
        count = min(scale.most_count, int(count * min(8.0, max(1.5, scale.seconds / max(took, 1e-6)))))
