"""Memory that the counts of collections add to a worker."""

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from kafka import KafkaProducer

from bench.aggregator.deployments import RAPPOR_128, configure, payload_of, send
from bench.aggregator.throughput import KRR
from bench.aggregator.worker import COUNTED, memory_mib, metrics_of, started, value_of
from bench.sections import ResultRow, Section
from deniable.deploy.broker.broker import Broker

ABOUT = "What collections add to a worker that owns all 4 partitions, one window each."
REPORTS = 100
REST_SECONDS = 10.0  # until everything is published, estimated and exported


class MemoryCase(NamedTuple):
    """Equal collections of this number, with this many cohorts and counters per cohort."""

    name: str
    entry: str
    collections: int
    cohorts: int
    width: int


COLLECTIONS = (
    MemoryCase("k-RR of 16 values", KRR.format(size=16), 400, 1, 16),
    MemoryCase("k-RR of 65,536 values", KRR.format(size=65536), 20, 1, 65536),
    MemoryCase("RAPPOR, 8 cohorts of 128 bits", RAPPOR_128.replace("cohorts: 64", "cohorts: 8"), 200, 8, 128),
    MemoryCase("RAPPOR, 64 cohorts of 128 bits", RAPPOR_128, 100, 64, 128),
)


def measure(case: MemoryCase, folder: Path, servers: str, prefix: str) -> ResultRow:
    """Resident memory of a worker before its first pack, and with every counter of every partition in use."""
    configuration = configure(folder, servers, prefix, case.collections, case.entry)
    partitions, log = configuration.kafka.partitions, folder / f"{prefix}worker.log"
    with started(configuration, log) as worker:
        next(text for _, text in metrics_of(log) if text.count("deniable_position_records{") == partitions)
        time.sleep(REST_SECONDS)
        before = memory_mib(worker, "VmRSS")
        with KafkaProducer(bootstrap_servers=servers, linger_ms=20) as kafka:
            for collection in configuration.collections:
                payload = payload_of(collection, REPORTS)
                for cohort in range(case.cohorts):
                    for home in range(partitions):
                        send(kafka, configuration, collection, payload, REPORTS, cohort=cohort, home=home)
        packs = case.collections * case.cohorts * partitions
        next(text for _, text in metrics_of(log) if value_of(text, COUNTED) >= packs)
        time.sleep(REST_SECONDS)
        added = memory_mib(worker, "VmRSS") - before
    counters = case.cohorts * case.width
    return {
        "collection": case.name,
        "counters": counters,
        "collections": case.collections,
        "worker before, MiB": round(before),
        "added, MiB": round(added),
        "KiB a collection and window": round(1024 * added / case.collections, 1),
        "bytes a counter and partition": round(2**20 * added / case.collections / counters / partitions, 1),
    }


def memory() -> Section:
    """Measure all kinds of collections."""
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        servers = broker.bootstrap_servers
        rows = [measure(case, Path(name), servers, f"bench-{n}-") for n, case in enumerate(COLLECTIONS)]
    return Section(ABOUT, rows)


CASES = {"memory": memory}
