"""How a worker bears the largest domain: k-RR of 1,400,000 values, estimated while it counts.

python -m bench.large_domain
"""

import sys
import tempfile
import threading
import time
from pathlib import Path

import click
from kafka import KafkaProducer

from bench.aggregation import COUNTED, longest_delay, memory_mib, metrics_of, value_of
from bench.deployments import configure, payload_of, send
from deploy.broker import Broker
from deploy.children import spawn, stop
from deploy.collection_file import Configuration

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
    """Let a worker count and estimate for a while, and print what it took."""
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        configuration = configure(Path(name), broker.bootstrap_servers, "bench-", 1, ENTRY)
        log, stopped = Path(name, "worker.log"), threading.Event()
        file = str(configuration.path)
        worker = spawn(
            [sys.executable, "-m", "deploy", "aggregate", "--config", file, "--web-port", "0"], log
        )
        feeder = threading.Thread(target=feed, args=(configuration, stopped), daemon=True)
        try:
            feeder.start()
            until = time.monotonic() + SECONDS
            text = next(text for moment, text in metrics_of(log) if moment > until)
            for metric in ("estimate", "checkpoint"):
                done = value_of(text, f"deniable_{metric}_seconds_count")
                seconds = value_of(text, f"deniable_{metric}_seconds_sum") / max(done, 1)
                click.echo(f"{done:.0f} {metric}s, {seconds:.2f} s each")
            click.echo(f"{value_of(text, COUNTED):,.0f} packs counted")
            click.echo(f"loop delay up to {longest_delay(text)} s, {memory_mib(worker, 'VmHWM'):.0f} MiB")
        finally:
            stopped.set()
            feeder.join()
            stop([worker])


if __name__ == "__main__":
    main()
