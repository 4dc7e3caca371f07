"""A worker as a child process: its start, its metrics, its processor time and its memory."""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import click

from deniable.config.file import Configuration
from deniable.deploy.broker.child_processes import Child, spawn, stop

WAIT_SECONDS = 300.0
COUNTED = 'deniable_packs_total{result="counted"}'
PAGE = re.compile(r"metrics: http://([0-9.:]+)/metrics")
DELAY = re.compile(r'deniable_loop_delay_seconds_bucket\{le="([^"]+)"\} ([0-9.]+)')


def start(configuration: Configuration, log: Path) -> Child:
    """Start `deniable aggregate`; its page is on any port."""
    file = str(configuration.path)
    return spawn([sys.executable, "-m", "deniable", "aggregate", "--config", file, "--web-port", "0"], log)


@contextmanager
def started(configuration: Configuration, log: Path) -> Iterator[Child]:
    """Run a worker until the block ends."""
    worker = start(configuration, log)
    try:
        yield worker
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


def mean_seconds(metrics: str, name: str) -> float:
    """Mean of a histogram of seconds."""
    done = value_of(metrics, f"deniable_{name}_seconds_count")
    return value_of(metrics, f"deniable_{name}_seconds_sum") / max(done, 1)
