"""Our workers as child processes, timed by their own metrics."""

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

from bench.aggregator.throughput import COUNTED, LEAST_SECONDS, cpu_seconds, metrics_page, value_of
from bench.comparison.parts.streaming.full_log import FullLog
from bench.comparison.runners.peers.stretch import MEASURED_SHARE
from deploy.broker.child_processes import Child, last_lines, spawn, stop
from deploy.config.file import Configuration

LOOK_SECONDS = 0.1
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
    file = str(configuration.path)
    command = [sys.executable, "-m", "deploy", "aggregate", "--config", file, "--web-port", "0"]
    try:
        for each in range(number):
            log_file = folder / f"{configuration.kafka.topic_prefix}{time.monotonic_ns()}-{each}.log"
            workers.append(Worker(spawn(command, log_file), log_file))
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
    """Return the stretch from each worker's second commit to 9/10 of the share of the first to get there.

    The first commit includes packs counted while partitions were being assigned. Near the end, fetches wait
    for exhausted partitions, and the slower worker runs alone.

    Raises
    ------
    MeasurementError if the stretch is shorter than a second, or some worker counts nothing.
    """
    shares = [MEASURED_SHARE * packs for packs in moments[-1].counted]
    shared = [each for each in moments if all(each.counted)]
    if not shared:
        raise MeasurementError("not every worker had a share of the log")
    began = next((each for each in shared if _all_more(each.counted, shared[0].counted)), shared[-1])
    ended = next(
        each
        for each in shared
        if any(packs >= enough for packs, enough in zip(each.counted, shares, strict=True))
    )
    if (seconds := ended.seconds - began.seconds) < LEAST_SECONDS:
        raise MeasurementError(
            f"all workers together counted for {max(0.0, seconds):.1f} s: the log is too short"
        )
    return WorkerStretch(
        sum(ended.counted) - sum(began.counted),
        seconds,
        ended.worker_cpu - began.worker_cpu,
        ended.broker_cpu - began.broker_cpu,
    )


def _all_more(now: Sequence[float], then: Sequence[float]) -> bool:
    return all(packs > before for packs, before in zip(now, then, strict=True))
