"""Our workers as children, followed by their metrics."""

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
WAIT_SECONDS = 90.0
POSITION = re.compile(r"^deniable_position_records\{[^}]*\} (\S+)$", re.MULTILINE)


class MeasurementError(RuntimeError):
    """Workers did not count all; the message says what was seen."""


class WorkerProgress(NamedTuple):
    """Of one worker: packs whose counts it has stored, and the positions of its partitions added up.

    A pack is not among `counted` where a rebalance has interrupted its transaction, though that was done.
    """

    counted: float = 0.0
    position: float = 0.0


class Worker(NamedTuple):
    """One `deniable aggregate`."""

    child: Child
    log_file: Path

    def counted(self) -> float:
        """Packs whose counts it has stored; 0 while it starts. MeasurementError if it has ended."""
        return self.progress().counted

    def progress(self) -> WorkerProgress:
        """What it tells. MeasurementError if it has ended."""
        if self.child.poll() is not None:
            raise MeasurementError(f"a worker ended with status {self.child.returncode}: {self.last_line()}")
        try:
            text = metrics_page(self.log_file)
        except (OSError, HTTPException) as error:
            raise MeasurementError(
                f"a worker does not tell its metrics, {error}: {self.last_line()}"
            ) from error
        if text is None:
            return WorkerProgress()
        return WorkerProgress(value_of(text, COUNTED), sum(map(float, POSITION.findall(text))))

    def last_line(self) -> str:
        """What it said last."""
        return last_lines(self.log_file, count=1) or "nothing"


class Moment(NamedTuple):
    """What was seen at one time.

    Parameters
    ----------
    seconds : of a monotonic clock.
    counted : packs that are stored, by worker.
    position : the positions of all partitions added up.
    worker_cpu : seconds of processor time, all workers together.
    broker_cpu : seconds of processor time.
    """

    seconds: float
    counted: tuple[float, ...]
    position: float
    worker_cpu: float
    broker_cpu: float


class WorkerStretch(NamedTuple):
    """From a first moment to a last one: packs, seconds, and processor time of workers and broker."""

    packs: float
    seconds: float
    worker_cpu: float
    broker_cpu: float


@contextmanager
def workers_of(
    configuration: Configuration, folder: Path, number: int, core: int | None = None
) -> Iterator[list[Worker]]:
    """So many workers, which end with the block, or with this process; held on a core if one is given."""
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
    """Let so many workers count a whole log; the stretch in which all of them did.

    Raises
    ------
    MeasurementError if they do not count all, or not all of them count.
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
    """What they have done by now."""
    told = [worker.progress() for worker in workers]
    counted, position = tuple(each.counted for each in told), sum(each.position for each in told)
    spent = sum(cpu_seconds(worker.child) for worker in workers)
    return Moment(time.monotonic(), counted, position, spent, cpu_seconds(broker))


def stretch(moments: Sequence[Moment]) -> WorkerStretch:
    """From where each worker has stored something twice to where one has stored nine tenths of its share.

    With the first come packs that were counted while the workers shared the partitions out. Behind the last a
    fetch may wait for partitions that have no more, and the slower worker is alone.

    Raises
    ------
    MeasurementError if there is less than a second in between.
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
