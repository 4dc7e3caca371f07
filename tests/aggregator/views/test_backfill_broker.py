"""Backfill from a real topic skips aborted records, and transaction markers do not end its search."""

import asyncio
import time

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.views.backfill import Backfill
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.cluster.cluster import Cluster
from tests.support.aggregator.builders import FRUIT, PLACE, T0, changed, estimate_of

pytestmark = pytest.mark.broker

SECONDS = 60
DAY = 86_400


async def make_topic(broker: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, num_partitions=2, replication_factor=1)])
    finally:
        await admin.close()


async def publish(
    producer: AIOKafkaProducer, topic: str, age_seconds: int, record: EstimateRecord, *, commit: bool = True
) -> None:
    """Write one record of this age in a transaction."""
    await producer.begin_transaction()
    await producer.send_and_wait(
        topic,
        encode_estimate(record),
        key=record.key,
        partition=record.window_start // 10 % 2,
        timestamp_ms=int((time.time() - age_seconds) * 1000),
    )
    await (producer.commit_transaction() if commit else producer.abort_transaction())


@pytest.mark.contract
def test_newest_committed_estimate_is_found(broker: str, topic_prefix: str) -> None:
    topic, latest = f"{topic_prefix}estimates", EstimateHistory([FRUIT, PLACE])
    newest, lost = changed(estimate_of(), window_start=T0 + 10), changed(estimate_of(), window_start=T0 + 20)
    stranger = changed(estimate_of(), collection="stranger", fingerprint="0" * 16)

    async def run() -> None:
        await make_topic(broker, topic)
        async with AIOKafkaProducer(bootstrap_servers=broker, transactional_id=topic) as producer:
            await publish(producer, topic, 3 * DAY, estimate_of())
            await publish(producer, topic, 2 * DAY, newest)
            await publish(producer, topic, DAY, lost, commit=False)
            for age in range(30, 0, -1):
                await publish(producer, topic, 100 * age, changed(stranger, window_start=T0 + 10 * age))
        async with asyncio.timeout(SECONDS):
            await Backfill(latest, ["fruit", "place"], lambda _: None).run(Cluster(broker), topic, 2)

    asyncio.run(run())
    assert latest.newest == {"fruit": newest}
    assert latest.sought == set()
