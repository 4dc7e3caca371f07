"""Contestants that do one job in turn, so that what the machine does meanwhile falls on all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.contest.contestant import Contestant, ContestantError

FIRST_COUNT = 256
MOST_COUNT = 4_000_000


@dataclass(frozen=True)
class Scale:
    """How thoroughly everything is measured.

    Parameters
    ----------
    quick : smaller sizes, for all goals within two minutes.
    rounds : of which the median counts.
    seconds : of processor time that a round should take.
    """

    quick: bool
    rounds: int
    seconds: float


QUICK = Scale(quick=True, rounds=3, seconds=0.08)
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


def rates(jobs: Sequence[Job], scale: Scale) -> list[Rate]:
    """Rate of each job, all measured round by round in turn."""
    counts: list[int] = []
    failed: dict[int, str] = {}
    for number, job in enumerate(jobs):
        try:
            counts.append(_calibrated(job, scale.seconds))
        except ContestantError as error:
            counts.append(0)
            failed[number] = str(error)
    found: list[list[float]] = [[] for _ in jobs]
    for _ in range(scale.rounds):
        for number, job in enumerate(jobs):
            if number not in failed:
                # A contestant may have several of the jobs: each is prepared anew.
                job.contestant.prepare(job.name, counts[number], **job.parameters)
                found[number].append(counts[number] / job.contestant.run().cpu_seconds)
    return [
        Rate(job, failed=failed[number])
        if number in failed
        else Rate(job, median(found[number]), min(found[number]), max(found[number]))
        for number, job in enumerate(jobs)
    ]


def _calibrated(job: Job, seconds: float) -> int:
    """How often it is done in about so many seconds. What is loaded or compiled first is not timed."""
    count = FIRST_COUNT
    while True:
        job.contestant.prepare(job.name, count, **job.parameters)
        job.contestant.run()
        took = job.contestant.run().cpu_seconds
        if took >= seconds / 2 or count >= MOST_COUNT:
            return count
        # At most 8 times as many: what takes no time at all tells nothing yet.
        count = min(MOST_COUNT, int(count * min(8.0, max(1.5, seconds / max(took, 1e-6)))))
