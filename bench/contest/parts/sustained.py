"""How many reports a second are counted end to end, beside a consumer that only reads them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from kafka import KafkaAdminClient

from bench.aggregator_results import Row
from bench.contest.figure import Figure, absolute
from bench.contest.parts.full_log import FullLog, drop, fill, forget_counts
from bench.contest.parts.readers import ReaderError, read
from bench.contest.parts.workers import Stretch, WorkerError, count
from deploy.broker import Broker
from deploy.children import Child

READING = "aiokafka, reading alone"
BUSY_CORES = 0.9
WAITED = (
    " Otherwise it was idle: its client asks a broker for one thing at a time, and of its two threads, which "
    "fetch and count, one runs at a time."
)


class Size(NamedTuple):
    """A log of so many packs of so many reports, and who reads it.

    Parameters
    ----------
    reports, packs : of the log.
    runs : of each reader; the median counts.
    workers : of ours, numbers of them.
    peers : other libraries that count it too.
    goal : reports/s of one worker; None where none is stated.
    """

    reports: int
    packs: int
    runs: int
    workers: Sequence[int] = (1, 2)
    peers: Sequence[str] = ()
    goal: float | None = None


FULL = (
    Size(1, 80_000, 1),
    Size(100, 80_000, 1),
    Size(1000, 40_000, 3, peers=("bytewax", "quixstreams"), goal=6_000_000),
    Size(10_000, 6000, 3, goal=12_000_000),
)
QUICK = (
    Size(1000, 12_000, 1, workers=(1,), peers=("bytewax",), goal=6_000_000),
    Size(10_000, 2500, 1, workers=(1,), goal=12_000_000),
)
#: By distribution: program, name in the results, what it does otherwise.
RIVALS = {
    "bytewax": (
        "bytewax_count",
        "bytewax",
        "no checksum, no duplicates; snapshots each second, output again after a crash",
    ),
    "quixstreams": (
        "quix_count",
        "quixstreams",
        "no checksum, no duplicates; exactly once, committed each second, by a second topic",
    ),
}


@dataclass(frozen=True)
class Speed:
    """What some reader did with a log, all its runs.

    Parameters
    ----------
    reader : who.
    reports : of a pack.
    runs : reports/s of each run.
    a_cpu_second : reports for a second of the reader's processor time, median; 0 where nothing was measured.
    broker_cores : that the broker took meanwhile, median; None where it was not watched.
    says : what it does otherwise, or why there is nothing.
    """

    reader: str
    reports: int
    runs: Sequence[float]
    a_cpu_second: float = 0.0
    broker_cores: float | None = None
    says: str = ""

    @property
    def median(self) -> float:
        """Reports/s of the run in the middle; 0 where nothing was measured."""
        return median(self.runs) if self.runs else 0.0

    @property
    def cores(self) -> float:
        """That the reader took; 0 where nothing was measured."""
        return self.median / self.a_cpu_second if self.a_cpu_second else 0.0

    def row(self) -> Row:
        """As it stands in the table."""
        return {
            "reports a pack": self.reports,
            "reader": self.reader,
            "reports/s": self.median or "",
            "best run": max(self.runs, default=""),
            "reports a CPU second": self.a_cpu_second or "",
            "cores": f"{self.cores:.2f}" if self.runs else "",
            "broker's cores": "" if self.broker_cores is None else f"{self.broker_cores:.2f}",
            "what else": self.says,
        }


def child_of(broker: Broker) -> Child:
    """The process of a broker that runs."""
    if broker.child is None:
        raise RuntimeError("the broker does not run")
    return broker.child


def ours(log: FullLog, folder: Path, broker: Broker, workers: int, runs: int) -> Speed:
    """So many workers count the log so many times, each time as a new deployment."""
    name = name_of(workers)
    stretches: list[Stretch] = []
    says = ""
    for run in range(runs):
        try:
            stretches.append(count(log, folder, child_of(broker), workers))
        except WorkerError as error:
            says = f"run {run + 1} failed: {error}"
            break
        forget_counts(log)
    if not stretches:
        return Speed(name, log.reports, [], says=says)
    return Speed(
        name,
        log.reports,
        [each.packs * log.reports / each.seconds for each in stretches],
        median(each.packs * log.reports / max(each.worker_cpu, 0.01) for each in stretches),
        median(each.broker_cpu / each.seconds for each in stretches),
        says,
    )


def peer(log: FullLog, folder: Path, program: str, name: str, says: str = "", runs: int = 1) -> Speed:
    """A program of `runners` reads the log so many times."""
    try:
        readings = [read(program, log, folder) for _ in range(runs)]
    except ReaderError as error:
        return Speed(name, log.reports, [], says=f"failed: {error}")
    speeds = [reading.packs * log.reports / reading.seconds for reading in readings]
    cpu = [reading.packs * log.reports / max(reading.cpu_seconds, 0.01) for reading in readings]
    return Speed(name, log.reports, speeds, median(cpu), says=says)


def rivals(log: FullLog, folder: Path, size: Size) -> list[Speed]:
    """The same counting by other libraries."""
    name = f"{log.configuration.topics.reports}-bytewax"
    with KafkaAdminClient(bootstrap_servers=log.configuration.kafka.bootstrap_servers) as admin:
        admin.create_topics({name: {"num_partitions": 4, "replication_factor": 1}})
    return [peer(log, folder, *RIVALS[library], size.runs) for library in size.peers]


def sustained(size: Size, folder: Path, broker: Broker) -> list[Speed]:
    """All readers of a log of this size, one worker of ours first."""
    log = fill(folder, broker.bootstrap_servers, f"end-{size.reports}-", size.packs, size.reports)
    speeds = [ours(log, folder, broker, workers, size.runs) for workers in size.workers]
    speeds.append(peer(log, folder, "aiokafka_read", READING, "counts nothing, stores nothing", size.runs))
    if size.peers:
        speeds += rivals(log, folder, size)
    drop(log)
    return speeds


def figures(size: Size, speeds: Sequence[Speed]) -> list[Figure]:
    """One worker beside what is asked of it; ours beside reading alone; one worker beside its rivals."""
    done = {speed.reader: speed for speed in speeds if speed.runs}
    alone, one = done.get(READING), done.get(name_of(1))
    found: list[Figure] = []
    if one and size.goal is not None:
        found.append(absolute(_name(size, 1), "reports/s", one.median, size.goal))
    for workers in size.workers:
        mine = done.get(name_of(workers))
        if mine and alone:
            found.append(_beside(size, workers, mine, alone))
        if mine and one and mine is not one:
            found.append(_beside(size, workers, mine, one))
    rivals = [done[RIVALS[library][1]] for library in size.peers if RIVALS[library][1] in done]
    return found + [_beside(size, 1, one, rival) for rival in rivals if one]


def unjudged(speeds: Sequence[Speed]) -> list[str]:
    """Goals that could not be judged, since one worker counted nothing, and why."""
    goals = {size.reports for size in FULL if size.goal is not None}
    return [
        f"packs of {each.reports:,}, {each.reader}: {each.says}"
        for each in speeds
        if each.reader == name_of(1) and each.reports in goals and not each.runs
    ]


def limit(size: Size, speeds: Sequence[Speed]) -> str:
    """Where the goal is missed, what was used up meanwhile; nothing where it is met, or none is stated."""
    mine = speeds[0]
    if size.goal is None or not mine.runs or mine.median >= size.goal:
        return ""
    alone = next(
        (
            f", and reading alone {each.median:,.0f}"
            for each in speeds
            if each.reader == READING and each.runs
        ),
        "",
    )
    return (
        f"{_name(size, 1)}: {size.goal:,.0f} reports/s are not reached. The worker, a thread of Python, took "
        f"{mine.cores:.2f} cores, the broker {mine.broker_cores or 0:.2f} of {os.cpu_count()}; a core that "
        f"never waits would count {mine.a_cpu_second:,.0f} reports/s{alone}."
        f"{WAITED if mine.cores < BUSY_CORES else ''}"
    )


def name_of(workers: int) -> str:
    """How so many of our workers are called."""
    return f"ours, {workers} worker{'s' if workers > 1 else ''}"


def _name(size: Size, workers: int) -> str:
    return f"Packs of {size.reports:,}, {workers} worker{'s' if workers > 1 else ''}"


def _beside(size: Size, workers: int, mine: Speed, other: Speed) -> Figure:
    name = f"{_name(size, workers)}, beside {other.reader}"
    return Figure(name, "reports/s", mine.median, other.reader, other.median)
