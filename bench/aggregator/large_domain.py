"""A worker with the largest domain: k-RR of 1,400,000 values, estimated while it counts.

python -m bench.aggregator.large_domain
"""

import sys
import tempfile
import threading
import time
from pathlib import Path

import click
from kafka import KafkaProducer

from bench.aggregator.deployments import configure, payload_of, send
from bench.aggregator.results import ResultRow, keep
from bench.aggregator.throughput import COUNTED, longest_delay, memory_mib, metrics_of, value_of
from deniable.config.file import Configuration
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import spawn, stop

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


@click.command()
def main() -> None:
    """Let a worker count and estimate for a while, and write its figures."""
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        configuration = configure(Path(name), broker.bootstrap_servers, "bench-", 1, ENTRY)
        log, stopped = Path(name, "worker.log"), threading.Event()
        file = str(configuration.path)
        worker = spawn(
            [sys.executable, "-m", "deniable", "aggregate", "--config", file, "--web-port", "0"], log
        )
        feeder = threading.Thread(target=feed, args=(configuration, stopped), daemon=True)
        try:
            feeder.start()
            until = time.monotonic() + SECONDS
            text = next(text for moment, text in metrics_of(log) if moment > until)
            took: ResultRow = {
                "packs counted": value_of(text, COUNTED),
                "an estimate, s": seconds_each(text, "estimate"),
                "a checkpoint, s": seconds_each(text, "checkpoint"),
                "loop delay up to, s": longest_delay(text),
                "worker at most, MiB": round(memory_mib(worker, "VmHWM")),
            }
        finally:
            stopped.set()
            feeder.join()
            stop([worker])
    keep("large domain", [took])


def seconds_each(metrics: str, name: str) -> float:
    """Mean of a histogram of seconds."""
    done = value_of(metrics, f"deniable_{name}_seconds_count")
    return round(value_of(metrics, f"deniable_{name}_seconds_sum") / max(done, 1), 3)


if __name__ == "__main__":
    main()
