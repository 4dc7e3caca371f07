"""A worker with the largest domain: k-RR of 1,400,000 values, estimated while it counts."""

import tempfile
import threading
import time
from pathlib import Path

from kafka import KafkaProducer

from bench.aggregator.deployments import configure, payload_of, send
from bench.aggregator.worker import (
    COUNTED,
    longest_delay,
    mean_seconds,
    memory_mib,
    metrics_of,
    started,
    value_of,
)
from bench.sections import Section
from deniable.config.file import Configuration
from deniable.deploy.broker.broker import Broker

ENTRY = (
    "  - {{name: c{number}, mechanism: k-rr, size: 1400000, other: false, epsilon: 4.0,\n"
    "     window_seconds: 86400, grace_seconds: 86400, minimum_reports: 1, budget: none}}\n"
)
SECONDS = 60
PACKS_PER_SECOND = 200
REPORTS = 1000


def feed(configuration: Configuration, stopped: threading.Event) -> None:
    """Send packs at a steady rate."""
    (collection,) = configuration.collections
    with KafkaProducer(bootstrap_servers=configuration.kafka.bootstrap_servers) as kafka:
        while not stopped.wait(1 / PACKS_PER_SECOND):
            send(kafka, configuration, collection, payload_of(collection, REPORTS), REPORTS)


def large_domain() -> Section:
    """Let a worker count and estimate for a while."""
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        configuration = configure(Path(name), broker.bootstrap_servers, "bench-", 1, ENTRY)
        log, stopped = Path(name, "worker.log"), threading.Event()
        feeder = threading.Thread(target=feed, args=(configuration, stopped), daemon=True)
        with started(configuration, log) as worker:
            try:
                feeder.start()
                until = time.monotonic() + SECONDS
                text = next(text for moment, text in metrics_of(log) if moment > until)
                memory = memory_mib(worker, "VmHWM")
            finally:
                stopped.set()
                feeder.join()
    return Section(
        "k-RR of 1,400,000 values, estimated while it is counted.",
        [
            {
                "packs counted": value_of(text, COUNTED),
                "an estimate, s": round(mean_seconds(text, "estimate"), 3),
                "a checkpoint, s": round(mean_seconds(text, "checkpoint"), 3),
                "loop delay up to, s": longest_delay(text),
                "worker at most, MiB": round(memory),
            }
        ],
    )


CASES = {"large domain": large_domain}
