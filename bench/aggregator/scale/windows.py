"""Whether memory stays flat as windows open and expire, and by what `state` grows."""

import asyncio
import tempfile
import threading
import time
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from bench.aggregator.deployments import bytes_on_disk, configure, payload_of, send
from bench.aggregator.worker import memory_mib, started
from bench.sections import ResultRow, Section
from deniable.cluster.reading.partition_reader import read_rows
from deniable.config.file import Configuration
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import Child

ABOUT = """\
100 collections, windows of a second that are kept for a minute, with one pack each. `state` is compacted
continuously, and keeps deletions for a day, as `topics check` requires."""
COLLECTIONS = 100
ENTRY = (
    "  - {{name: c{number}, mechanism: k-rr, size: 100, other: false, epsilon: 2.0, window_seconds: 1,\n"
    "     grace_seconds: 1, retention_seconds: 60, minimum_reports: 1, budget: none}}\n"
)
COMPACTED = {
    "segment.ms": "2000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "2000",
}
SECONDS = 480
SAMPLE_SECONDS = 30
REPORTS = 20


class Sender(threading.Thread):
    """Sends a pack to every collection each second until `stopped`; `windows` counts the started windows."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(daemon=True)
        self.configuration = configuration
        self.stopped = threading.Event()
        self.windows = 0

    def run(self) -> None:
        """Send until stopped."""
        kafka = self.configuration.kafka
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            last = int(time.time())
            while not self.stopped.wait(0.05):
                if int(time.time()) > last:
                    last += 1
                    self._send(producer, last)

    def _send(self, producer: KafkaProducer, window_start: int) -> None:
        for collection in self.configuration.collections:
            payload = payload_of(collection, REPORTS)
            send(producer, self.configuration, collection, payload, REPORTS, window_start=window_start)
            self.windows += 1


def sample(configuration: Configuration, sender: Sender, worker: Child) -> ResultRow:
    """Measure the worker and `state`."""
    servers, topics = configuration.kafka.bootstrap_servers, configuration.topics
    rows = sum(
        len(asyncio.run(read_rows(configuration.cluster, topics.state, p))) for p in range(topics.partitions)
    )
    return {
        "windows begun": sender.windows,
        "worker, MiB": round(memory_mib(worker, "VmRSS")),
        "live rows of state": rows,
        "state on disk, MiB": round(bytes_on_disk(servers, topics.state) / 2**20, 1),
    }


def windows() -> Section:
    """Follow a worker through about 48,000 windows."""
    found: list[ResultRow] = []
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        configuration = configure(Path(name), broker.bootstrap_servers, "bench-", COLLECTIONS, ENTRY)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            for topic in (configuration.topics.state, configuration.topics.counts):
                admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=COMPACTED)])
        sender = Sender(configuration)
        with started(configuration, Path(name, "worker.log")) as worker:
            try:
                sender.start()
                for _ in range(SECONDS // SAMPLE_SECONDS):
                    time.sleep(SAMPLE_SECONDS)
                    found.append(sample(configuration, sender, worker))
            finally:
                sender.stopped.set()
                sender.join()
    return Section(ABOUT, found)


CASES = {"windows": windows}
