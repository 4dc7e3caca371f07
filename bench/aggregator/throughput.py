"""Throughput and memory of one worker.

    python -m bench.aggregator.throughput

The log is prefilled; a worker starts, and its metrics are read until all counts are stored. Broker,
worker and this process share the machine.
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import click

from bench.aggregator.deployments import RAPPOR_128, bytes_on_disk, configure, fill
from bench.aggregator.results import ResultRow, keep
from deniable.config.file import Configuration
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import Child, spawn, stop

WAIT_SECONDS = 300.0
LEAST_SECONDS = 1.0  # a worker stores its counts twice a second
COUNTED = 'deniable_packs_total{result="counted"}'
PAGE = re.compile(r"metrics: http://([0-9.:]+)/metrics")
DELAY = re.compile(r'deniable_loop_delay_seconds_bucket\{le="([^"]+)"\} ([0-9.]+)')


KRR = (
    "  - {{{{name: c{{number}}, mechanism: k-rr, size: {size}, other: false, epsilon: 2.0,\n"
    "     window_seconds: 86400, grace_seconds: 86400, budget: none}}}}\n"
)
ONE_HOT = (
    "  - {{{{name: c{{number}}, mechanism: rappor-one-hot, values: [{values}], f: 0.25, p: 0.35, q: 0.65,\n"
    "     window_seconds: 86400, grace_seconds: 86400, budget: none}}}}\n"
)


class ThroughputCase(NamedTuple):
    """Numbers of packs, of reports in each, and of collections."""

    name: str
    entry: str
    packs: int
    reports: int
    collections: int = 1


KRR_16, KRR_1000 = KRR.format(size=16), KRR.format(size=1000)
ONE_HOT_1000 = ONE_HOT.format(values=", ".join(f"v{number}" for number in range(1000)))
CASES = (
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 6_000_000, 1),
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 4_000_000, 10),
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 1_200_000, 100),
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 200_000, 1000),
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 24_000, 10_000),
    ThroughputCase("RAPPOR, 128 bits", RAPPOR_128, 150_000, 1000, 100),
    ThroughputCase("one-hot, 1000 values", ONE_HOT_1000, 12_000, 1000),
    ThroughputCase("k-RR, 16 values", KRR_16, 1_000_000, 1000),
    ThroughputCase("k-RR, 16 values", KRR_16, 200_000, 10_000),
    ThroughputCase("k-RR, 1000 values", KRR_1000, 600_000, 1000),
)


class ThroughputRun(NamedTuple):
    """A worker's figures for a full log."""

    packs_per_second: float
    packs_per_cpu_second: float  # of the worker: other load on the machine changes it little
    memory_mib: float
    longest_delay: str  # of the event loop: at most this many seconds


def measure(configuration: Configuration, folder: Path, packs: int) -> ThroughputRun:
    """Start a worker and follow its stored counts to the end of the log."""
    log = folder / f"{configuration.kafka.topic_prefix}worker.log"
    file = str(configuration.path)
    worker = spawn([sys.executable, "-m", "deniable", "aggregate", "--config", file, "--web-port", "0"], log)
    try:
        stored: list[tuple[float, float, float]] = []
        text = ""
        for moment, text in metrics_of(log):
            counted = value_of(text, COUNTED)
            if counted and (not stored or counted > stored[-1][1]):
                stored.append((moment, counted, cpu_seconds(worker)))
            if counted >= packs:
                break
        (began, first, cpu_before), (ended, last, cpu_after) = stored[0], stored[-1]
        if (seconds := ended - began) < LEAST_SECONDS:
            raise click.ClickException(f"{packs:,} packs were stored in {seconds:.1f} s: too few to be timed")
        return ThroughputRun(
            (last - first) / seconds,
            (last - first) / (cpu_after - cpu_before),
            memory_mib(worker, "VmHWM"),
            longest_delay(text),
        )
    finally:
        stop([worker])


def metrics_of(log: Path) -> Iterator[tuple[float, str]]:
    """Time and text of a worker's metrics, four times a second; an error if no sample suffices in time."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.25)
        if (text := metrics_page(log)) is not None:
            yield time.monotonic(), text
    raise click.ClickException(
        f"the worker did not count all within {WAIT_SECONDS:.0f} s:\n{log.read_text()}"
    )


def metrics_page(log: Path) -> str | None:
    """A worker's metrics; None until its log contains their address.

    Raises
    ------
    OSError, HTTPException if it does not answer.
    """
    page = PAGE.search(log.read_text(encoding="utf-8"))
    if page is None:
        return None
    connection = HTTPConnection(page[1], timeout=10)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def value_of(metrics: str, name: str) -> float:
    """Value of a series, 0 if it is absent."""
    line = next((line for line in metrics.splitlines() if line.startswith(name + " ")), f"{name} 0")
    return float(line.rpartition(" ")[2])


def longest_delay(metrics: str) -> str:
    """The bound, in seconds, that no delay of the event loop has exceeded."""
    buckets = DELAY.findall(metrics)
    return str(next(bound for bound, count in buckets if count == buckets[-1][1]))


def memory_mib(worker: Child, field: str) -> float:
    """Resident memory of a worker by a field of its status: VmRSS now, VmHWM at its peak."""
    status = Path(f"/proc/{worker.pid}/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def cpu_seconds(worker: Child) -> float:
    """Processor time of a worker so far, all threads."""
    fields = Path(f"/proc/{worker.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@click.command()
def main() -> None:
    """Measure all cases and write the table."""
    rows: list[ResultRow] = []
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        for number, case in enumerate(CASES):
            prefix = f"bench-{number}-"
            servers = broker.bootstrap_servers
            configuration = configure(Path(name), servers, prefix, case.collections, case.entry)
            fill(configuration, case.packs, case.reports)
            run = measure(configuration, Path(name), case.packs)
            stored = bytes_on_disk(servers, configuration.topics.reports)
            rows.append(
                {
                    "mechanism": case.name,
                    "reports a pack": case.reports,
                    "collections": case.collections,
                    "packs/s": round(run.packs_per_second),
                    "reports/s": round(run.packs_per_second * case.reports),
                    "reports a CPU second": round(run.packs_per_cpu_second * case.reports),
                    "bytes a report in the log": round(stored / case.packs / case.reports, 2),
                    "worker at most, MiB": round(run.memory_mib),
                    "loop delay up to, s": run.longest_delay,
                }
            )
    keep("counting", rows)


if __name__ == "__main__":
    main()
