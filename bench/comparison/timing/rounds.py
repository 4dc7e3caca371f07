"""Interleaved rounds of jobs, so that noise of the machine affects all contestants alike."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

import click

from bench.comparison.timing.contestant import Contestant, ContestantError, Timing

ROUNDS = 5
#: Processor time of a round, and of all rounds of a job that takes longer than one.
ROUND_SECONDS, ALL_SECONDS = 0.3, 5.0
MOST_COUNT = 4_000_000
Name = TypeVar("Name", bound=Hashable)
Done = TypeVar("Done")


@dataclass(frozen=True)
class Job:
    """A job of a contestant; `says` is how it differs from ours."""

    contestant: Contestant
    name: str
    parameters: Mapping[str, object]
    says: str = ""


@dataclass(frozen=True)
class Timed:
    """Times of a job, of one repetition, round by round; none if it failed, with the reason."""

    job: Job
    rounds: Sequence[Timing]
    failed: str = ""

    @property
    def cpu_seconds(self) -> float:
        """Processor time, median of the rounds."""
        return median(each.cpu_seconds for each in self.rounds)

    @property
    def rates(self) -> tuple[float, float, float]:
        """Repetitions per second of processor time: median, least and most of the rounds."""
        found = [1 / each.cpu_seconds for each in self.rounds]
        return median(found), min(found), max(found)

    @property
    def result(self) -> object:
        """What the last round returned."""
        return self.rounds[-1].result


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


def timed(jobs: Sequence[Job]) -> list[Timed]:
    """Measure each job in interleaved rounds; one that takes seconds has fewer of them."""
    found = [_first(job) for job in jobs]
    for done in range(1, ROUNDS):
        for place, (each, count) in enumerate(found):
            if each.rounds and done * each.rounds[0].cpu_seconds * count < ALL_SECONDS:
                found[place] = (_with_round(each, count), count)
        click.echo(".", err=True, nl=False)
    return [each for each, _ in found]


def _with_round(before: Timed, count: int) -> Timed:
    try:
        return Timed(before.job, [*before.rounds, _run(before.job, count)])
    except ContestantError as error:
        return Timed(before.job, [], str(error))


def _first(job: Job) -> tuple[Timed, int]:
    """Return the first round, after a warm-up that loads and compiles, and the repetitions that fill one."""
    count = 1
    try:
        found = _run(job, count)
        if found.cpu_seconds < ALL_SECONDS:
            found = _again(job, count)
        while count * found.cpu_seconds < ROUND_SECONDS / 2 and count < MOST_COUNT:
            # By a factor of 8 at most, because very short times are unreliable.
            growth = min(8.0, max(1.5, ROUND_SECONDS / max(count * found.cpu_seconds, 1e-6)))
            count = min(MOST_COUNT, int(count * growth) + 1)
            _run(job, count)
            found = _again(job, count)
    except ContestantError as error:
        return Timed(job, [], str(error)), count
    return Timed(job, [found]), count


def _run(job: Job, count: int) -> Timing:
    """Run one round, prepared before, because a contestant may have several jobs."""
    job.contestant.prepare(job.name, count, **job.parameters)
    return _again(job, count)


def _again(job: Job, count: int) -> Timing:
    found = job.contestant.run()
    return Timing(found.cpu_seconds / count, found.seconds / count, found.result)
