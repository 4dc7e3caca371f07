"""Four workers and many partitions: start, checkpoints, and the partitions of a worker that dies."""

import re
import tempfile
import time
from pathlib import Path

import click
from kafka import KafkaProducer

from bench.aggregator.deployments import configure, payload_of, send
from bench.aggregator.throughput import KRR
from bench.aggregator.worker import WAIT_SECONDS, cpu_seconds, memory_mib, metrics_page, start, value_of
from bench.sections import ResultRow, Section
from deniable.config.file import Configuration
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import Child, stop

PARTITIONS = (4, 100, 400, 1000)
WORKERS = 4
#: Each partition gets a pack a second.
LOAD_SECONDS = 30
REPORTS = 100
OWNED = re.compile(r'^deniable_position_records\{partition="(\d+)"\}', re.MULTILINE)
COUNT, SUM = "deniable_checkpoint_seconds_count", "deniable_checkpoint_seconds_sum"


class WorkerGroup:
    """Workers of one deployment.

    Parameters
    ----------
    configuration : of the deployment.
    folder : of their logs.
    """

    def __init__(self, configuration: Configuration, folder: Path) -> None:
        self._partitions = configuration.kafka.partitions
        self._logs = [folder / f"{self._partitions}-{number}.log" for number in range(WORKERS)]
        self.workers: list[Child] = [start(configuration, log) for log in self._logs]

    def pages(self) -> list[str]:
        """Return the metrics of all workers that serve them."""
        return [page for log in self._logs if (page := _page(log))]

    def seconds_until_all_are_owned(self) -> float:
        """Return how long it takes until each partition is open in one of the workers.

        Raises
        ------
        ClickException if that takes longer than WAIT_SECONDS.
        """
        began = time.monotonic()
        while (seconds := time.monotonic() - began) < WAIT_SECONDS:
            owned = [number for page in self.pages() for number in OWNED.findall(page)]
            if len(owned) == len(set(owned)) == self._partitions:
                return seconds
            time.sleep(0.25)
        raise click.ClickException(
            f"{len(set(owned))} of {self._partitions} partitions are open after {seconds:.0f} s"
        )

    def total(self, name: str) -> float:
        """Return the sum of a series over the workers."""
        return sum(value_of(page, name) for page in self.pages())

    def cpu_seconds(self) -> float:
        """Return the processor time of all workers so far."""
        return sum(map(cpu_seconds, self.workers))

    def kill_one(self) -> None:
        """Kill the first worker."""
        self.workers.pop(0).kill()
        self._logs.pop(0)

    def stop(self) -> None:
        """End all."""
        stop(self.workers)


def _page(log: Path) -> str | None:
    try:
        return metrics_page(log)
    except OSError:
        return None


def load(configuration: Configuration, group: WorkerGroup) -> dict[str, float | str]:
    """Send a pack a second to each partition; return what that costs the workers."""
    (collection,) = configuration.collections
    payload = payload_of(collection, REPORTS)
    cpu, count, spent, began = group.cpu_seconds(), group.total(COUNT), group.total(SUM), time.monotonic()
    with KafkaProducer(bootstrap_servers=configuration.kafka.bootstrap_servers, linger_ms=50) as kafka:
        for second in range(LOAD_SECONDS):
            for home in range(configuration.kafka.partitions):
                send(kafka, configuration, collection, payload, REPORTS, home=home)
            time.sleep(max(0.0, began + second + 1 - time.monotonic()))
    seconds = time.monotonic() - began
    checkpoints = group.total(COUNT) - count
    return {
        "packs/s": round(LOAD_SECONDS * configuration.kafka.partitions / seconds),
        "cores": round((group.cpu_seconds() - cpu) / seconds, 2),
        "checkpoints/s": round(checkpoints / seconds, 1),
        "a checkpoint, ms": round(1000 * (group.total(SUM) - spent) / checkpoints, 1),
    }


def measure(folder: Path, servers: str, partitions: int) -> ResultRow:
    """Start the workers, load them, and kill one."""
    prefix = f"bench-{partitions}-"
    configuration = configure(folder, servers, prefix, 1, KRR.format(size=16), partitions)
    group = WorkerGroup(configuration, folder)
    try:
        start = group.seconds_until_all_are_owned()
        time.sleep(5)
        idle, began = group.cpu_seconds(), time.monotonic()
        time.sleep(10)
        idle = (group.cpu_seconds() - idle) / (time.monotonic() - began)
        cost = load(configuration, group)
        memory = max(memory_mib(each, "VmHWM") for each in group.workers)
        group.kill_one()
        rebalance = group.seconds_until_all_are_owned()
    finally:
        group.stop()
    return {
        "partitions": partitions,
        "until all are counted, s": round(start, 1),
        "cores, idle": round(idle, 2),
        **cost,
        "a worker at most, MiB": round(memory),
        "after kill -9 of one, s": round(rebalance, 1),
    }


def partitions() -> Section:
    """Measure each number of partitions on a broker of its own."""
    found: list[ResultRow] = []
    for number in PARTITIONS:
        with tempfile.TemporaryDirectory() as name, Broker() as broker:
            found.append(measure(Path(name), broker.bootstrap_servers, number))
    return Section("Four workers, a pack a second to each partition.", found)


CASES = {"partitions": partitions}
