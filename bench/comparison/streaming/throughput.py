"""Reports counted per second end to end, compared with a consumer that only reads them."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from kafka import KafkaAdminClient

from bench.comparison.streaming.full_log import (
    BROKER_GONE,
    FullLog,
    GroupError,
    drop,
    fill,
    forget_counts,
)
from bench.comparison.streaming.peer_readers import ReaderError, read
from bench.comparison.streaming.speeds import HELD, READING, RIVALS, Size, Speed, name_of
from bench.comparison.streaming.workers import MeasurementError, count
from bench.comparison.timing.peer_environment import version_of
from bench.comparison.timing.rounds import in_turn
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import Child

LEAST_CPU_SECONDS = 0.01
RUNS = 3


def child_of(broker: Broker) -> Child:
    """The process of a running broker."""
    if broker.child is None:
        raise RuntimeError("the broker does not run")
    return broker.child


class ReaderRun(NamedTuple):
    """Figures of one reading of a whole log.

    Parameters
    ----------
    speed : reports/s.
    a_cpu_second : reports per second of the reader's processor time.
    seconds : timed seconds.
    broker_cores : cores used by the broker meanwhile; None if not measured.
    """

    speed: float
    a_cpu_second: float
    seconds: float
    broker_cores: float | None = None


@dataclass(frozen=True)
class Reader:
    """A reader of a log: name, function, differences from ours, and version if it is another library."""

    name: str
    read: Callable[[], ReaderRun]
    says: str = ""
    version: str = ""


def ours(log: FullLog, folder: Path, broker: Broker, workers: int, core: int | None = None) -> Reader:
    """Our workers, each run as a new deployment; pinned to a core if one is given."""

    def read_once() -> ReaderRun:
        forget_counts(log)
        found = count(log, folder, child_of(broker), workers, core)
        reports = found.packs * log.reports
        return ReaderRun(
            reports / found.seconds,
            reports / max(found.worker_cpu, LEAST_CPU_SECONDS),
            found.seconds,
            found.broker_cpu / found.seconds,
        )

    collections = len(log.configuration.collections)
    return Reader(name_of(workers, collections) if core is None else HELD, read_once)


def peer(log: FullLog, folder: Path, program: str, name: str, says: str, version: str) -> Reader:
    """A program of `runners`."""

    def read_once() -> ReaderRun:
        found = read(program, log, folder)
        reports = found.packs * log.reports
        a_cpu_second = reports / max(found.cpu_seconds, LEAST_CPU_SECONDS)
        return ReaderRun(reports / found.seconds, a_cpu_second, found.seconds)

    return Reader(name, read_once, says, version)


def rivals(log: FullLog, folder: Path, size: Size) -> list[Reader]:
    """The same counting, or reading alone, by other libraries."""
    if not size.peers:
        return []
    name = f"{log.configuration.topics.reports}-bytewax"
    with KafkaAdminClient(bootstrap_servers=log.configuration.kafka.bootstrap_servers) as admin:
        admin.create_topics({name: {"num_partitions": 4, "replication_factor": 1}})
    return [peer(log, folder, *RIVALS[each], version_of(each)) for each in size.peers]


def speeds_of(readers: Sequence[Reader], runs: int = RUNS) -> list[Speed]:
    """Run all readers this many times, interleaved; a reader that fails keeps its earlier runs."""
    tasks = {reader.name: reader.read for reader in readers}
    found, failed = in_turn(tasks, runs, (MeasurementError, GroupError, ReaderError, *BROKER_GONE))
    says = {name: f"run {len(found[name]) + 1} failed: {why}" for name, why in failed.items()}
    return [_speed(each, found[each.name], says.get(each.name, each.says)) for each in readers]


def _speed(reader: Reader, runs: Sequence[ReaderRun], says: str) -> Speed:
    if not runs:
        return Speed(reader.name, [], says=says, version=reader.version)
    watched = [each.broker_cores for each in runs if each.broker_cores is not None]
    return Speed(
        reader.name,
        [each.speed for each in runs],
        median(each.a_cpu_second for each in runs),
        median(watched) if watched else None,
        says,
        reader.version,
        min(each.seconds for each in runs),
    )


def sustained(size: Size, folder: Path, broker: Broker) -> list[Speed]:
    """Run all readers of a log of this size, one worker of ours first."""
    servers, name, logs = broker.bootstrap_servers, f"end-{size.reports}-", []
    try:
        logs.append(fill(folder, servers, name, size.packs, size.reports))
        readers = _readers(logs[0], folder, broker, size)
        if size.collections:
            half = size.packs // 2
            logs.append(fill(folder, servers, f"{name}spread-", half, size.reports, size.collections))
            readers.append(ours(logs[1], folder, broker, 1))
        return speeds_of(readers)
    finally:
        for log in logs:
            with suppress(*BROKER_GONE):
                drop(log)


def _readers(log: FullLog, folder: Path, broker: Broker, size: Size) -> list[Reader]:
    readers = [ours(log, folder, broker, workers) for workers in (1, 2)]
    if size.goal is not None and hasattr(os, "sched_setaffinity"):
        readers.append(ours(log, folder, broker, 1, min(os.sched_getaffinity(0))))
    says = "counts nothing, stores nothing"
    reading = ("peers.readers.aiokafka_read", READING, says, version_of("aiokafka"))
    return [*readers, peer(log, folder, *reading), *rivals(log, folder, size)]
