"""How fast one worker counts, and how much memory it takes.

    python -m bench.aggregation

Packs of RAPPOR reports of 128 bits lie in the log; a worker starts, and its metrics are read until all is
stored. Broker, worker and this process share the machine.
"""

import re
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import click

from bench.deployments import configure, fill
from deploy.broker import Broker
from deploy.children import Child, spawn, stop
from deploy.collection_file import Configuration

WAIT_SECONDS = 300.0
COUNTED = 'deniable_packs_total{result="counted"}'
DELAY = re.compile(r'deniable_loop_delay_seconds_bucket\{le="([^"]+)"\} ([0-9.]+)')


class Case(NamedTuple):
    """So many packs of so many reports of so many collections."""

    packs: int
    reports: int
    collections: int


CASES = (Case(60_000, 1000, 1), Case(8000, 10_000, 1), Case(100_000, 1, 1), Case(12_800, 1000, 100))


class Run(NamedTuple):
    """What a worker did with a full log."""

    packs_per_second: float
    memory_mib: float
    longest_delay: str  # of the event loop: at most so many seconds


def measure(configuration: Configuration, folder: Path, packs: int) -> Run:
    """Start a worker and follow what it has stored, to the end of the log."""
    log = folder / f"{configuration.kafka.topic_prefix}worker.log"
    file = str(configuration.path)
    worker = spawn([sys.executable, "-m", "deploy", "aggregate", "--config", file, "--web-port", "0"], log)
    try:
        stored: list[tuple[float, float]] = []
        text = ""
        for moment, text in metrics_of(log):
            counted = value_of(text, COUNTED)
            if counted and (not stored or counted > stored[-1][1]):
                stored.append((moment, counted))
            if counted >= packs:
                break
        (began, first), (ended, last) = stored[0], stored[-1]
        return Run((last - first) / max(ended - began, 0.5), memory_mib(worker, "VmHWM"), longest_delay(text))
    finally:
        stop([worker])


def metrics_of(log: Path) -> Iterator[tuple[float, str]]:
    """Moment and text of a worker's metrics, four times a second; an error when nobody has enough in time."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.25)
        page = re.search(r"metrics: http://([0-9.:]+)/metrics", log.read_text())
        if page is None:
            continue
        connection = HTTPConnection(page[1], timeout=10)
        try:
            connection.request("GET", "/metrics")
            yield time.monotonic(), connection.getresponse().read().decode()
        finally:
            connection.close()
    raise click.ClickException(
        f"the worker did not count all within {WAIT_SECONDS:.0f} s:\n{log.read_text()}"
    )


def value_of(metrics: str, name: str) -> float:
    """Value of a series, 0 when it is not there."""
    line = next((line for line in metrics.splitlines() if line.startswith(name + " ")), f"{name} 0")
    return float(line.rpartition(" ")[2])


def longest_delay(metrics: str) -> str:
    """The bound, in seconds, that no delay of the event loop has passed."""
    buckets = DELAY.findall(metrics)
    return str(next(bound for bound, count in buckets if count == buckets[-1][1]))


def memory_mib(worker: Child, field: str) -> float:
    """Resident memory of a worker by a field of its status: VmRSS now, VmHWM at its highest."""
    status = Path(f"/proc/{worker.pid}/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


@click.command()
def main() -> None:
    """Measure all cases and print a table."""
    click.echo("packs | reports a pack | collections | packs/s | reports/s | memory MiB | loop delay up to s")
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        for number, case in enumerate(CASES):
            prefix = f"bench-{number}-"
            configuration = configure(Path(name), broker.bootstrap_servers, prefix, case.collections)
            fill(configuration, case.packs, case.reports)
            run = measure(configuration, Path(name), case.packs)
            rate = run.packs_per_second
            click.echo(
                f"{case.packs} | {case.reports} | {case.collections} | {rate:,.0f}"
                f" | {rate * case.reports:,.0f} | {run.memory_mib:.0f} | {run.longest_delay}"
            )


if __name__ == "__main__":
    main()
