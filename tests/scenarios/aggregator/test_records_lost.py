"""The log loses records, on a real broker: the position stays until the loss is accepted."""

import asyncio
import signal
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.partition.fetching.last_record import LastRecord
from deniable.aggregator.partition.ledger_store import LedgerStore
from deniable.config.file import Configuration
from deniable.deploy.cluster.deployment import deployment_of
from tests.chaos.processes.collection_setup import configure
from tests.chaos.processes.workers import Workers
from tests.scenarios.aggregator.test_exact_counts import stored_positions
from tests.support.deployments import run_command
from tests.support.processes import wait_until

pytestmark = pytest.mark.all

LOST = "offsets were deleted uncounted"
REPLACED = "ledger lost"


def send(configuration: Configuration, records: int) -> None:
    with KafkaProducer(bootstrap_servers=configuration.kafka.bootstrap_servers) as kafka:
        for partition in range(configuration.kafka.partitions):
            for _ in range(records):
                kafka.send(configuration.topics.reports, b"no pack", partition=partition)


def accept_loss(configuration: Configuration) -> str:
    """Output of the command, which must succeed."""
    command = ("replay", "--accept-loss", "--config", str(configuration.path))
    ended = run_command(command, configuration.path.parent)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.broker
def test_worker_overtaken_by_retention_reports_it(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """Its fetcher continues at the log's new start; the ledger must not follow without permission."""
    configuration = configure(tmp_path, broker, topic_prefix)
    deployment = deployment_of(configuration)
    partitions = range(configuration.kafka.partitions)
    workers = Workers(configuration, tmp_path)
    try:
        worker = workers.start()
        send(configuration, 10)
        counted = [10] * len(partitions)
        assert wait_until(lambda: stored_positions(deployment) == counted, 120), workers.describe()
        worker.signal(signal.SIGSTOP)
        send(configuration, 1)  # may answer a fetch that the worker has already sent
        send(configuration, 10)
        with KafkaAdminClient(bootstrap_servers=broker) as admin:
            topic = configuration.topics.reports
            admin.delete_records({TopicPartition(topic, partition): -1 for partition in partitions})
        worker.signal(signal.SIGCONT)
        assert wait_until(lambda: worker.says(LOST) >= len(partitions), 120), workers.describe()
        send(configuration, 1)
        before = stored_positions(deployment)
        assert all(position <= 11 for position in before)
        assert accept_loss(configuration) == "".join(
            f"partition {partition}: {21 - position} offsets were deleted uncounted; counting continues "
            f"behind them\n"
            for partition, position in enumerate(before)
        )
        counted = [22] * len(partitions)
        assert wait_until(lambda: stored_positions(deployment) == counted, 120), workers.describe()
        assert accept_loss(configuration) == "nothing is lost: every ledger's position is within the log\n"
    finally:
        workers.stop()


async def last_counted(deployment: Deployment, partition: int) -> LastRecord | None:
    store = LedgerStore(deployment.cluster, deployment.topics, partition)
    await store.committed()
    return store.last


@pytest.mark.broker
def test_log_that_lost_its_end_and_grew_again_is_not_counted(
    broker: str, topic_prefix: str, tmp_path: Path
) -> None:
    """A worker cannot tell another log from another note of its last record: the note is changed."""
    configuration = configure(tmp_path, broker, topic_prefix)
    deployment = deployment_of(configuration)
    partitions, topics = configuration.kafka.partitions, configuration.topics
    workers = Workers(configuration, tmp_path)
    try:
        for counted in (10, 11):  # the second worker finds the first one's last records again
            worker = workers.start()
            send(configuration, 10 if counted == 10 else 1)
            at = [counted] * partitions
            assert wait_until(lambda at=at: stored_positions(deployment) == at, 120), workers.describe()
            workers.drain(worker, 60)
        last = asyncio.run(last_counted(deployment, 0))
        assert last is not None
        assert (last.offset, last.epoch) == (10, 0)
        other = OffsetAndMetadata(11, last._replace(append_ms=last.append_ms - 1).encode(), -1)
        with KafkaAdminClient(bootstrap_servers=broker) as admin:
            admin.alter_group_offsets(topics.group, {TopicPartition(topics.reports, 0): other})
        worker = workers.start()
        send(configuration, 1)
        after = [11, *[12] * (partitions - 1)]
        assert wait_until(lambda: stored_positions(deployment) == after, 120), workers.describe()
        assert wait_until(lambda: worker.says(REPLACED) == 1, 30), workers.describe()
        assert (worker.ready, worker.running) == (False, True)
        assert accept_loss(configuration).startswith("partition 0: records that were counted are no longer")
        assert wait_until(lambda: stored_positions(deployment) == [12] * partitions, 120)
        assert wait_until(lambda: worker.ready, 60), workers.describe()
        assert worker.says(REPLACED) == 1
    finally:
        workers.stop()
