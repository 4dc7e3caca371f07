"""A producer is stopped without a task left, whatever brokers do."""

import asyncio
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, KafkaError
from kafka import KafkaAdminClient

from deniable.cluster.connection.closing import stop_producer

pytestmark = pytest.mark.broker
STOP_SECONDS = 0.3


def left_over(broker: str, topic: str, settings: dict[str, str]) -> list[str]:
    """Return the tasks that are left of a producer to which the broker stops to answer."""

    async def run() -> list[str]:
        producer: AIOKafkaProducer[bytes, bytes] = AIOKafkaProducer(bootstrap_servers=broker, **settings)
        await producer.start()
        if settings:
            await producer.begin_transaction()

        closed, close = asyncio.Event(), producer.client.close

        async def no_answer(*_: object, **__: object) -> None:
            await closed.wait()
            raise KafkaConnectionError

        async def close_both() -> None:
            closed.set()
            await close()

        await producer.partitions_for(topic)
        producer.client.send, producer.client.close = no_answer, close_both
        waiting = await producer.send(topic, b"", partition=0)
        await asyncio.sleep(0.1)
        await stop_producer(producer, STOP_SECONDS)
        with suppress(KafkaError):
            await asyncio.wait_for(waiting, 1)
        return [str(each) for each in asyncio.all_tasks() - {asyncio.current_task()}]

    return asyncio.run(run())


@pytest.mark.parametrize("settings", [{}, {"transactional_id": "closing"}], ids=["plain", "transactional"])
def test_no_task_is_left_of_a_producer_that_waits(
    broker: str, topic_prefix: str, settings: dict[str, str]
) -> None:
    topic = f"{topic_prefix}closing"
    with KafkaAdminClient(bootstrap_servers=broker) as admin:
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}})
    assert left_over(broker, topic, settings) == []
