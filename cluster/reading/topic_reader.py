"""Reads partitions of a topic from a point in time, without a group."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

from aiokafka import AIOKafkaConsumer, TopicPartition

from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.consumer import assigned_consumer
from deniable.cluster.reading.partition_reader import (
    POLL_MILLISECONDS,
    RECORDS_PER_POLL,
    REQUEST_MILLISECONDS,
    SILENCE_SECONDS,
    KafkaRecord,
)

CLOCKS_MILLISECONDS = 3_600_000  # brokers' clocks may differ by this


async def records_since(
    cluster: Cluster, topic: str, partitions: Iterable[int], unix_ms: int
) -> AsyncGenerator[tuple[int, KafkaRecord], None]:
    """Yield partition and record of what was appended since a point in time and is committed now.

    The records of each partition come in order. A caller that stops early must close the generator.

    Parameters
    ----------
    cluster : which Kafka.
    topic, partitions : to read.
    unix_ms : first append time, unix milliseconds.

    Raises
    ------
    KafkaError; TimeoutError if nothing arrives for 60 s.
    """
    sources = [TopicPartition(topic, partition) for partition in partitions]
    async with assigned_consumer(cluster, sources, request_milliseconds=REQUEST_MILLISECONDS) as consumer:
        consumer.pause(*sources)  # else the next requests wait behind a fetch that waits for records
        firsts = await consumer.offsets_for_times(dict.fromkeys(sources, max(0, unix_ms)))
        ends = await consumer.end_offsets(sources)
        unread = [source for source in sources if firsts[source] and firsts[source].offset < ends[source]]
        for source in unread:
            consumer.seek(source, firsts[source].offset)
            consumer.resume(source)
        while unread:
            await asyncio.sleep(0)  # getmany never yields while records are buffered
            async with asyncio.timeout(SILENCE_SECONDS):  # aiokafka waits forever for a broker
                batches = await _next(consumer, unread, ends)
            for source, records in batches.items():
                for record in records:
                    yield source.partition, record
            done = [source for source in unread if await consumer.position(source) >= ends[source]]
            consumer.pause(*done)
            unread = [source for source in unread if source not in done]


async def kept_since(cluster: Cluster, topic: str, partitions: Iterable[int]) -> int | None:
    """Return from when on a topic has all its records, unix seconds; None if it has deleted none.

    A partition that is empty by now does not say when its records were deleted.

    Raises
    ------
    KafkaError, TimeoutError.
    """
    sources = [TopicPartition(topic, partition) for partition in partitions]
    async with assigned_consumer(cluster, sources, request_milliseconds=REQUEST_MILLISECONDS) as consumer:
        consumer.pause(*sources)
        async with asyncio.timeout(SILENCE_SECONDS):
            starts = await consumer.beginning_offsets(sources)
            firsts = await consumer.offsets_for_times(dict.fromkeys(sources, 0))
    found = [firsts[each].timestamp for each in sources if starts[each] and firsts[each]]
    return -(-max(found) // 1000) if found else None


async def _next(
    consumer: AIOKafkaConsumer, unread: Sequence[TopicPartition], ends: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, Sequence[KafkaRecord]]:
    """The next records; empty if a partition has reached its end without any."""
    while True:
        batches: Mapping[TopicPartition, Sequence[KafkaRecord]] = await consumer.getmany(
            *unread, timeout_ms=POLL_MILLISECONDS, max_records=RECORDS_PER_POLL
        )
        if batches or any([await consumer.position(source) >= ends[source] for source in unread]):
            return batches
