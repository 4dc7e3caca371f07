"""Our workers as child processes, timed by their own metrics."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from bench.aggregator.throughput import LEAST_SECONDS
from bench.aggregator.worker import COUNTED, cpu_seconds, metrics_page, start, value_of
from bench.comparison.runners.peers.readers.stretch import MEASURED_SHARE
from bench.comparison.streaming.full_log import FullLog
from deniable.config.file import Configuration
from deniable.deploy.broker.child_processes import Child, last_lines, stop

LOOK_SECONDS = 0.25  # ten looks a second took a worker 5 % of a core
WAIT_SECONDS = 180.0
POSITION = re.compile(r"^deniable_position_records\{[^}]*\} (\S+)$", re.MULTILINE)


class MeasurementError(RuntimeError):
    """A measurement on a real broker failed; the message says what was observed."""


class WorkerProgress(NamedTuple):
    """Packs whose counts a worker has stored, and the sum of its partitions' positions.

    `counted` misses packs whose transaction committed although a rebalance interrupted it.
    """

    counted: float = 0.0
    position: float = 0.0


class Worker(NamedTuple):
    """One `deniable aggregate`."""

    child: Child
    log_file: Path

    def counted(self) -> float:
        """Return the packs whose counts it stored, 0 while it starts; MeasurementError if it has ended."""
        return self.progress().counted

    def progress(self) -> WorkerProgress:
        """Read its metrics; MeasurementError if it has ended."""
        if self.child.poll() is not None:
            raise MeasurementError(f"a worker ended with status {self.child.returncode}: {self.last_line()}")
        try:
            text = metrics_page(self.log_file)
        except (OSError, HTTPException) as error:
            raise MeasurementError(
                f"a worker does not serve its metrics, {error}: {self.last_line()}"
            ) from error
        if text is None:
            return WorkerProgress()
        return WorkerProgress(value_of(text, COUNTED), sum(map(float, POSITION.findall(text))))

    def last_line(self) -> str:
        """Return the last line of its log."""
        return last_lines(self.log_file, count=1) or "nothing"


class Moment(NamedTuple):
    """A sample of all workers and the broker at one time.

    Parameters
    ----------
    seconds : monotonic clock.
    counted : packs stored, by worker.
    position : sum of the positions of all partitions.
    worker_cpu : processor time of all workers together, seconds.
    broker_cpu : processor time of the broker, seconds.
    """

    seconds: float
    counted: tuple[float, ...]
    position: float
    worker_cpu: float
    broker_cpu: float


class WorkerStretch(NamedTuple):
    """Packs, seconds, and processor time of workers and broker between two samples."""

    packs: float
    seconds: float
    worker_cpu: float
    broker_cpu: float


@contextmanager
def workers_of(
    configuration: Configuration, folder: Path, number: int, core: int | None = None
) -> Iterator[list[Worker]]:
    """Run some workers until the block or this process ends; pin them to a core if one is given."""
    workers: list[Worker] = []
    try:
        for each in range(number):
            log_file = folder / f"{configuration.kafka.topic_prefix}{time.monotonic_ns()}-{each}.log"
            workers.append(Worker(start(configuration, log_file), log_file))
            if core is not None:
                os.sched_setaffinity(workers[-1].child.pid, {core})  # before it has started any thread
        yield workers
    finally:
        stop(worker.child for worker in workers)


def count(log: FullLog, folder: Path, broker: Child, number: int, core: int | None = None) -> WorkerStretch:
    """Let some workers count a whole log; return the stretch in which all of them counted.

    Raises
    ------
    MeasurementError if the log is not counted completely, or some worker counts nothing.
    """
    moments: list[Moment] = []
    deadline = time.monotonic() + WAIT_SECONDS
    with workers_of(log.configuration, folder, number, core) as workers:
        while not moments or moments[-1].position < log.packs:
            if time.monotonic() > deadline:
                counted = moments[-1].position if moments else 0
                raise MeasurementError(
                    f"{counted:,.0f} of {log.packs:,} packs counted in {WAIT_SECONDS:.0f} s"
                )
            time.sleep(LOOK_SECONDS)
            moments.append(look(workers, broker))
    return stretch(moments)


def look(workers: Sequence[Worker], broker: Child) -> Moment:
    """Take a sample of workers and broker."""
    progress = [worker.progress() for worker in workers]
    counted, position = tuple(each.counted for each in progress), sum(each.position for each in progress)
    spent = sum(cpu_seconds(worker.child) for worker in workers)
    return Moment(time.monotonic(), counted, position, spent, cpu_seconds(broker))


def stretch(moments: Sequence[Moment]) -> WorkerStretch:
    """Return the stretch in which all workers count, at the sum of their speeds, each between its commits.

    A worker's first commit includes packs counted while partitions were being assigned, so it is timed from
    the second one on; until its last one before any worker has 9/10 of its share. Near the end, fetches wait
    for exhausted partitions, and the slower worker runs alone. Commits lie up to 2 s apart, so the workers'
    stretches differ.

    Raises
    ------
    MeasurementError if the stretch of one is shorter than a second, or some worker counts nothing.
    """
    shares = [MEASURED_SHARE * packs for packs in moments[-1].counted]
    shared = [each for each in moments if all(each.counted)]
    if not shared:
        raise MeasurementError("not every worker had a share of the log")
    last = next(n for n, each in enumerate(shared) if _any_enough(each.counted, shares))
    speed, bounds = 0.0, []
    for worker in range(len(shares)):
        commits = [
            now
            for before, now in pairwise(shared[: last + 1])
            if now.counted[worker] > before.counted[worker]
        ]
        seconds = commits[-1].seconds - commits[0].seconds if commits else 0.0
        if seconds < LEAST_SECONDS:
            raise MeasurementError(f"all workers together counted for {seconds:.1f} s: the log is too short")
        speed += (commits[-1].counted[worker] - commits[0].counted[worker]) / seconds
        bounds += [commits[0], commits[-1]]
    began, ended = min(bounds, key=_seconds), max(bounds, key=_seconds)
    seconds = ended.seconds - began.seconds
    return WorkerStretch(
        speed * seconds, seconds, ended.worker_cpu - began.worker_cpu, ended.broker_cpu - began.broker_cpu
    )


def _any_enough(counted: Sequence[float], shares: Sequence[float]) -> bool:
    return any(packs >= enough for packs, enough in zip(counted, shares, strict=True))


def _seconds(moment: Moment) -> float:
    return moment.seconds
