"""How soon an event is in an estimate, and what a worker takes for that while idle."""

import tempfile
import time
from pathlib import Path

from bench.aggregator.deployments import configure
from bench.comparison.streaming.latency import WINDOW_SECONDS, measure
from bench.comparison.streaming.throughput import child_of
from bench.comparison.streaming.visibility import quantile
from bench.comparison.streaming.workers import look, workers_of
from bench.sections import ResultRow, Section
from deniable.deploy.broker.broker import Broker

ABOUT = """\
One worker; from an event to the first estimate with it that a reader of committed records sees,
`pack_seconds` included."""
PARTITIONS = (4, 8)
EVENTS_A_SECOND = (1, 4)  # of each producer: with windows of 2 s, 4 and 16 collections in all
LOAD_REPORTS_PER_SECOND = 100_000.0
START_SECONDS, SECONDS = 15.0, 60.0
IDLE_SECONDS = 30.0


def idle_cores(folder: Path, broker: Broker, partitions: int) -> float:
    """Return what a worker takes to which nothing is sent."""
    configuration = configure(folder, broker.bootstrap_servers, "idle-", 1, partitions=partitions)
    with workers_of(configuration, folder, 1) as workers:
        time.sleep(START_SECONDS)
        before = look(workers, child_of(broker))
        time.sleep(IDLE_SECONDS)
        after = look(workers, child_of(broker))
    return (after.worker_cpu - before.worker_cpu) / (after.seconds - before.seconds)


def rows(partitions: int, events_a_second: int, idle: float) -> list[ResultRow]:
    """Measure beside a load of packs; a row for each `pack_seconds`."""
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        at = (Path(name), broker.bootstrap_servers, child_of(broker))
        seen = measure(*at, LOAD_REPORTS_PER_SECOND, SECONDS, partitions, events_a_second)
    return [
        {
            "partitions": partitions,
            "collections": 1 + 2 * WINDOW_SECONDS * events_a_second,
            "pack_seconds": f"{pack_seconds:g}",
            "events": len(events.shown()),
            "p50, s": round(quantile(events.shown(), 0.5), 2),
            "p99, s": round(quantile(events.shown(), 0.99), 2),
            "cores": round(seen.worker_cores, 2),
            "cores, idle": round(idle, 3),
        }
        for pack_seconds, events in seen.events.items()
    ]


def delays() -> Section:
    """Measure each number of partitions."""
    found: list[ResultRow] = []
    for partitions in PARTITIONS:
        with tempfile.TemporaryDirectory() as name, Broker() as broker:
            idle = idle_cores(Path(name), broker, partitions)
        for events_a_second in EVENTS_A_SECOND:
            found += rows(partitions, events_a_second, idle)
    return Section(ABOUT, found)


CASES = {"delays": delays}
