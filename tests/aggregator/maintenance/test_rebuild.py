"""Rebuilding counts on a real broker: the log's beginning is gone, or the rebuild is interrupted."""

import asyncio
import random
import signal
import time
from collections.abc import Iterable
from itertools import count
from pathlib import Path

import pytest
from aiokafka.errors import KafkaError
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from deniable.aggregator.ledger import row_keys
from deniable.aggregator.maintenance import rebuild
from deniable.aggregator.maintenance.ledger_changes import MaintenanceError
from deniable.aggregator.maintenance.ledger_reader import ledger_rows, progress_in
from deniable.aggregator.partition.ledger_store import LedgerStore
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.cluster.reading import partition_reader
from deniable.config.file import Configuration
from deniable.deploy.cluster.deployment import deployment_of
from tests.chaos.judging import stored
from tests.chaos.judging.judge import Judge
from tests.chaos.judging.recount import Recount, add_up, recount
from tests.chaos.judging.verdict import difference
from tests.chaos.load.packs import PackMaker
from tests.chaos.processes.collection_setup import configure
from tests.chaos.processes.workers import Workers
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

PACKS = 40  # per partition


@pytest.fixture
def configuration(broker: str, topic_prefix: str, tmp_path: Path) -> Configuration:
    return configure(tmp_path, broker, topic_prefix)


def send(configuration: Configuration, judges: list[Judge] | None = None) -> None:
    """Send packs of a long window to every partition; judges count them too."""
    fruit = next(collection for collection in configuration.collections if collection.name == "fruit")
    maker, sent = PackMaker(fruit, random.Random(1)), [0] * configuration.kafka.partitions
    with KafkaProducer(bootstrap_servers=configuration.kafka.bootstrap_servers) as kafka:
        while min(sent) < PACKS:
            draft = maker.draft()
            home = draft.home(len(sent))
            if sent[home] < PACKS:
                kafka.send(configuration.topics.reports, draft.encode(), partition=home)
                sent[home] += 1
                if judges:
                    judges[home].take(round(time.time() * 1000), draft.encode())


def apart(configuration: Configuration, expected: Recount) -> int:
    return difference(expected, stored.ledgers(configuration.kafka.bootstrap_servers, configuration.topics))


def test_truncated_log_is_counted_from_its_start(configuration: Configuration, broker: str) -> None:
    """Windows that may have had deleted records get no final estimate."""
    topics, deployment = configuration.topics, deployment_of(configuration)
    judges = [Judge(configuration.by_fingerprint(), source, topics.partitions) for source in range(4)]
    send(configuration)
    with KafkaAdminClient(bootstrap_servers=broker) as admin:
        admin.delete_records({TopicPartition(topics.reports, source): PACKS for source in range(4)})
    send(configuration, judges)
    rebuilt = asyncio.run(rebuild.rebuild(deployment))
    assert {source: each.records for source, each in rebuilt.items()} == dict.fromkeys(range(4), PACKS)
    assert apart(configuration, add_up(judges, configuration.by_fingerprint())) == 0
    for source in range(4):
        progress = progress_in(asyncio.run(ledger_rows(deployment, source)))
        assert progress.position == 2 * PACKS
        assert progress.whole_from > time.time()


def test_ledger_that_lost_rows_is_rebuilt_undeleted(configuration: Configuration, broker: str) -> None:
    """Its progress is behind what the group has committed."""
    topics, deployment = configuration.topics, deployment_of(configuration)
    send(configuration)
    asyncio.run(rebuild.rebuild(deployment))
    with KafkaProducer(bootstrap_servers=broker) as kafka:
        kafka.send(topics.state, key=row_keys.encode_key(row_keys.SingleKey.PROGRESS), partition=1)
    expected = recount(broker, topics.reports, topics.partitions, configuration.by_fingerprint())
    rebuilt = asyncio.run(rebuild.rebuild(deployment))
    assert {source: each.records for source, each in rebuilt.items()} == {1: PACKS}
    assert apart(configuration, expected) == 0
    with pytest.raises(MaintenanceError):
        asyncio.run(rebuild.rebuild(deployment))


def test_whole_ledger_is_not_rebuilt_for_a_broker_that_knows_of_none(
    configuration: Configuration, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is cut off from the others, and led `state` before its first row."""
    topics, deployment = configuration.topics, deployment_of(configuration)
    send(configuration)
    asyncio.run(rebuild.rebuild(deployment))
    expected = recount(broker, topics.reports, topics.partitions, configuration.by_fingerprint())

    async def no_rows(*_: object) -> dict[bytes, bytes]:
        return {}

    with KafkaAdminClient(bootstrap_servers=broker) as admin:
        admin.delete_records({TopicPartition(topics.reports, source): PACKS for source in range(4)})
    monkeypatch.setattr(rebuild, "read_rows", no_rows)
    with pytest.raises(MaintenanceError, match="no ledger"):
        asyncio.run(rebuild.rebuild(deployment))
    assert apart(configuration, expected) == 0


def test_worker_refuses_an_interrupted_rebuild_and_the_next_one_begins_again(
    configuration: Configuration, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics, commits, commit = configuration.topics, count(1), LedgerStore.commit

    async def fail_at_last(
        self: LedgerStore, records: Iterable[Outgoing], position: int | None = None
    ) -> int:
        if next(commits) > 4:  # a nonce, the beginning, two batches of ten records
            raise KafkaError("cut short")
        return await commit(self, records, position)

    send(configuration)
    monkeypatch.setattr(rebuild, "COMMIT_RECORDS", 10)
    monkeypatch.setattr(partition_reader, "RECORDS_PER_POLL", 10)
    monkeypatch.setattr(LedgerStore, "commit", fail_at_last)
    with pytest.raises(KafkaError, match="cut short"):
        asyncio.run(rebuild.rebuild(deployment_of(configuration)))
    monkeypatch.undo()
    assert stored.ledgers(broker, topics).positions == {0: 20}
    workers = Workers(configuration, tmp_path)
    try:
        refused = workers.start()
        assert refused.child.wait(60) == 3
        assert refused.says("replay --rebuild"), workers.describe()
        workers.end(refused, signal.SIGKILL)
        asyncio.run(rebuild.rebuild(deployment_of(configuration)))
        workers.start()
        expected = recount(broker, topics.reports, topics.partitions, configuration.by_fingerprint())
        assert len(expected.ids) == 4 * PACKS
        assert wait_until(lambda: apart(configuration, expected) == 0, 120), workers.describe()
    finally:
        workers.stop()
