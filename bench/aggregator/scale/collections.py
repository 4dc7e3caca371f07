"""One worker and many collections: start, and what counting and estimating all of them costs."""

import tempfile
import time
from pathlib import Path

from kafka import KafkaProducer

from bench.aggregator.deployments import configure, payload_of, send
from bench.aggregator.scale.partitions import OWNED
from bench.aggregator.worker import (
    cpu_seconds,
    longest_delay,
    mean_seconds,
    memory_mib,
    metrics_of,
    started,
    value_of,
)
from bench.sections import ResultRow, Section
from deniable.config.file import Configuration
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import Child

COLLECTIONS = (10, 100, 1000)
ENTRY = (
    "  - {{name: c{number}, mechanism: rappor, bits: 128, hashes: 2, cohorts: 8, f: 0.25, p: 0.35, q: 0.65,\n"
    "     candidates: [A, B], window_seconds: 10, grace_seconds: 10, minimum_reports: 1, budget: none}}\n"
)
LOAD_SECONDS = 40
REPORTS = 100


def load(configuration: Configuration, worker: Child) -> float:
    """Send a pack a second to each collection; return the cores that the worker needs."""
    payload = payload_of(configuration.collections[0], REPORTS)
    cpu, began = cpu_seconds(worker), time.monotonic()
    with KafkaProducer(bootstrap_servers=configuration.kafka.bootstrap_servers, linger_ms=50) as kafka:
        for second in range(LOAD_SECONDS):
            for number, collection in enumerate(configuration.collections):
                cohort = (number + second) % collection.cohorts
                send(kafka, configuration, collection, payload, REPORTS, cohort=cohort)
            time.sleep(max(0.0, began + second + 1 - time.monotonic()))
    return (cpu_seconds(worker) - cpu) / (time.monotonic() - began)


def measure(folder: Path, servers: str, collections: int) -> ResultRow:
    """Start a worker and load it."""
    configuration = configure(folder, servers, f"bench-{collections}-", collections, ENTRY)
    log, partitions, began = folder / f"{collections}.log", configuration.kafka.partitions, time.monotonic()
    with started(configuration, log) as worker:
        start = next(moment for moment, page in metrics_of(log) if len(OWNED.findall(page)) == partitions)
        cores = load(configuration, worker)
        _, page = next(metrics_of(log))
        memory = memory_mib(worker, "VmHWM")
    return {
        "collections": collections,
        "until all is counted, s": round(start - began, 1),
        "packs/s": collections,
        "cores": round(cores, 2),
        "estimates/s": round(value_of(page, "deniable_estimate_seconds_count") / LOAD_SECONDS, 1),
        "an estimate, ms": round(1000 * mean_seconds(page, "estimate"), 2),
        "worker at most, MiB": round(memory),
        "loop delay up to, s": longest_delay(page),
    }


def collections() -> Section:
    """Measure each number of collections on a broker of its own."""
    found: list[ResultRow] = []
    for number in COLLECTIONS:
        with tempfile.TemporaryDirectory() as name, Broker() as broker:
            found.append(measure(Path(name), broker.bootstrap_servers, number))
    return Section("One worker, windows of 10 s, a pack a second to each collection.", found)


CASES = {"collections": collections}
