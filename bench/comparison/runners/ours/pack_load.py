"""Load for a worker: packs of random reports at a steady rate, sent as by our producers.

python -m bench.comparison.runners.ours.pack_load FILE REPORTS PACKS_PER_SECOND SECONDS

For the first collection of the file. Runs in our environment.
"""

import sys
import time
from pathlib import Path

from kafka import KafkaProducer

from bench.aggregator.deployments import payload_of, send
from deniable.config.file import load
from deniable.producers.transport.connection import BATCH_BYTES

STEP_SECONDS = 0.01


def main(file: str, reports: str, packs_a_second: str, seconds: str) -> None:
    """Send due packs, a hundred times a second."""
    configuration = load(Path(file), environment={})
    collection = configuration.collections[0]
    payload = payload_of(collection, int(reports))
    rate, whole = float(packs_a_second), float(seconds)
    sent = 0
    servers = configuration.kafka.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers, acks="all", batch_size=BATCH_BYTES) as kafka:
        began = time.monotonic()
        while (passed := time.monotonic() - began) < whole:
            due = int(rate * passed)
            for number in range(sent, due):
                cohort = number % collection.cohorts
                send(kafka, configuration, collection, payload, int(reports), cohort=cohort)
            sent = due
            time.sleep(STEP_SECONDS)


if __name__ == "__main__":
    main(*sys.argv[1:])
