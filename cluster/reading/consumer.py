"""The one place that creates consumers without a group."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition

from deniable.cluster.cluster import LEADERS_MILLISECONDS, Cluster
from deniable.cluster.existing_topics.of_aiokafka import create_no_topics

#: After which a connection that only asked for leaders, say, is closed: with many partitions they are many.
IDLE_MILLISECONDS = 20_000


@asynccontextmanager
async def assigned_consumer(
    cluster: Cluster,
    sources: Sequence[TopicPartition],
    *,
    committed: bool = True,
    request_milliseconds: int = 40_000,
    fetch_wait_milliseconds: int = 500,
    leaders_milliseconds: int = LEADERS_MILLISECONDS,
) -> AsyncIterator[AIOKafkaConsumer]:
    """Start a consumer of these partitions; stop it on exit. The caller seeks.

    Do not assign it other partitions: aiokafka may then wait forever when it stops.

    Parameters
    ----------
    cluster : which Kafka.
    sources : partitions to assign.
    committed : False to read records of open and aborted transactions too.
    request_milliseconds : timeout of one request, > 0.
    fetch_wait_milliseconds : how long the broker may hold a fetch that finds no record, >= 0.
    leaders_milliseconds : how often brokers are asked who leads, > 0.

    Raises
    ------
    KafkaError.
    """
    consumer = AIOKafkaConsumer(
        **cluster.client_settings(),
        isolation_level="read_committed" if committed else "read_uncommitted",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        request_timeout_ms=request_milliseconds,
        fetch_max_wait_ms=fetch_wait_milliseconds,
        connections_max_idle_ms=IDLE_MILLISECONDS,
        metadata_max_age_ms=leaders_milliseconds,
    )
    create_no_topics(consumer._client)
    try:
        await consumer.start()
        consumer.assign(sources)
        yield consumer
    finally:
        await consumer.stop()
