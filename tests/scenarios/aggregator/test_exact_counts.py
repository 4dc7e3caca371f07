"""Holes that transactions leave in the log, on a real broker. For faults see tests/chaos."""

import asyncio
import signal
import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.maintenance.ledger_reader import ledger_rows, progress_in
from deniable.deploy.cluster.deployment import deployment_of
from tests.chaos.processes.collection_setup import configure
from tests.chaos.processes.workers import Workers
from tests.support.processes import wait_until


@pytest.mark.all
@pytest.mark.broker
def test_hole_that_retention_deletes_is_not_a_loss(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """The log ends in a transaction marker, all records are counted, and retention deletes everything.

    The stored position has passed the marker, so the next owner does not mistake it for lost records.
    """
    configuration = configure(tmp_path, broker, topic_prefix)
    deployment = deployment_of(configuration)
    topic, partitions = configuration.topics.reports, range(configuration.kafka.partitions)
    ends = [2] * len(partitions)  # a record and a marker each
    workers = Workers(configuration, tmp_path)
    try:
        workers.start()
        stranger = KafkaProducer(bootstrap_servers=broker, transactional_id=f"{topic}-stranger")
        stranger.init_transactions()
        stranger.begin_transaction()
        for partition in partitions:
            stranger.send(topic, b"no pack", partition=partition)
        stranger.commit_transaction()
        stranger.close()
        assert wait_until(lambda: stored_positions(deployment) == ends, 120), workers.describe()
        workers.end(workers.alive[0], signal.SIGTERM)
        with KafkaAdminClient(bootstrap_servers=broker) as admin:
            admin.delete_records({TopicPartition(topic, partition): -1 for partition in partitions})
        workers.start()
        assert wait_until(lambda: "ledger open" in workers.all[-1].log.read_text(), 120), workers.describe()
        time.sleep(3)
        assert "ledger lost" not in workers.all[-1].log.read_text()
    finally:
        workers.stop()


def stored_positions(deployment: Deployment) -> list[int]:
    """Stored position of every ledger."""

    async def read() -> list[int]:
        sources = range(deployment.topics.partitions)
        return [progress_in(await ledger_rows(deployment, source)).position for source in sources]

    return asyncio.run(read())
