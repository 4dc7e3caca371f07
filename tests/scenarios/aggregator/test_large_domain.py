"""The largest domain through a worker on a real broker: counts in pages, before and after a kill -9."""

import asyncio
import random
import signal
from pathlib import Path

import pytest
from kafka import KafkaProducer

from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.partition_reader import RowReader
from deniable.config.file import Configuration
from deniable.deploy.cluster.topics.setup import create
from tests.chaos.judging import stored
from tests.chaos.judging.recount import recount
from tests.chaos.judging.verdict import difference
from tests.chaos.load.packs import PackMaker
from tests.chaos.processes.collection_setup import write
from tests.chaos.processes.workers import Workers
from tests.chaos.run import replayed
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all]

VALUES = 1_400_000
COLLECTION = f"""\
revision: {{revision}}
kafka: {{{{bootstrap_servers: "{{servers}}", topic_prefix: "{{prefix}}"}}}}
collections:
  - {{{{name: large, mechanism: k-rr, size: {VALUES}, other: false, epsilon: 4.0, window_seconds: 3600,
     grace_seconds: 3600, minimum_reports: 1, budget: none}}}}
"""
PACKS = 60
RECORD_BYTES = 1_048_588  # limit of the broker


def send(configuration: Configuration, seed: int) -> None:
    (collection,) = configuration.collections
    maker = PackMaker(collection, random.Random(seed))
    with KafkaProducer(bootstrap_servers=configuration.kafka.bootstrap_servers) as kafka:
        for _ in range(PACKS):
            draft = maker.draft()
            home = draft.home(configuration.kafka.partitions)
            kafka.send(configuration.topics.reports, draft.encode(), partition=home)


def apart(configuration: Configuration) -> int:
    """Difference between the stored counts and the recount."""
    servers, topics = configuration.kafka.bootstrap_servers, configuration.topics
    expected = recount(servers, topics.reports, topics.partitions, configuration.by_fingerprint())
    return difference(expected, stored.ledgers(servers, topics))


def largest(configuration: Configuration, topic: str) -> int:
    """Size of the largest record in a topic, bytes."""

    async def read() -> int:
        sizes = [0]
        for partition in range(configuration.kafka.partitions):
            async with RowReader(configuration.cluster, topic, partition) as reader:
                sizes += [len(record.value or b"") async for record in reader.until_end()]
        return max(sizes)

    return asyncio.run(read())


@pytest.mark.nightly
def test_large_domain_is_counted_in_pages(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    configuration = write(tmp_path / "deniable.yaml", broker, topic_prefix, 1, COLLECTION)
    create(Cluster(broker), configuration.topics, 1)
    workers = Workers(configuration, tmp_path)
    try:
        for seed in (1, 2):
            worker = workers.start()
            send(configuration, seed)
            assert wait_until(lambda: apart(configuration) == 0, 90), workers.describe()
            worker.signal(signal.SIGKILL)
        workers.start()
        assert replayed(configuration) == 0
    finally:
        workers.stop()
    for topic in (configuration.topics.state, configuration.topics.counts):
        assert VALUES / 100 < largest(configuration, topic) < RECORD_BYTES
