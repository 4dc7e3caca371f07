"""Read a topic from any offset, to its end or continuously."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from functools import partial

from aiokafka import AIOKafkaConsumer, TopicPartition

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage, noted
from deniable.cluster.reading.consumer import assigned_consumer
from deniable.cluster.reading.partition_reader import SILENCE_SECONDS, KafkaRecord

POLL_MILLISECONDS = 500
RECORDS_PER_POLL = 500

Show = Callable[[int, KafkaRecord], None]


@dataclass(frozen=True)
class OffsetRange:
    """The records to read in each partition.

    Parameters
    ----------
    offset : where to begin; None for the first record.
    tail : begin this many records before the end instead; None for all.
    follow : whether to wait for more at the end.
    """

    offset: int | None = None
    tail: int | None = None
    follow: bool = False


async def read_topic(
    cluster: Cluster, topic: str, partitions: Iterable[int], span: OffsetRange, *, committed: bool, show: Show
) -> int:
    """Pass records to `show`: existing ones by partition, then new ones.

    Parameters
    ----------
    cluster, topic, partitions : to read.
    span : offsets to read.
    committed : False to see records of open and aborted transactions, too.
    show : called with partition and record.

    Returns
    -------
    Number of records; does not return when following.

    Raises
    ------
    KafkaError; TimeoutError if nothing arrives for 60 s before the end is reached.
    """
    reached, found = {}, 0
    for source in [TopicPartition(topic, partition) for partition in partitions]:
        async with assigned_consumer(cluster, [source], committed=committed) as consumer:
            async for record in _present(consumer, source, span):
                show(source.partition, record)
                found += 1
            reached[source] = await consumer.position(source)
    if not span.follow:
        return found
    outage = Outage(cluster, "nothing new is shown", (topic,))
    async with (
        assigned_consumer(cluster, list(reached), committed=committed) as consumer,
        noted(outage, partial(consumer.end_offsets, list(reached))),
    ):
        for source, offset in reached.items():
            consumer.seek(source, offset)
        while True:
            for source, batch in (await _poll(consumer)).items():
                for record in batch:
                    show(source.partition, record)


async def _present(
    consumer: AIOKafkaConsumer, source: TopicPartition, span: OffsetRange
) -> AsyncIterator[KafkaRecord]:
    """Read the partition's present records from the span's begin."""
    start = (await consumer.beginning_offsets([source]))[source]
    end = (await consumer.end_offsets([source]))[source]
    first = max(span.offset or 0, start)
    if span.tail is not None:
        first = await _tail_offset(consumer, source, span.tail, start, end)
    consumer.seek(source, min(first, end))
    async for record in _towards(consumer, source, end):
        yield record


async def _tail_offset(
    consumer: AIOKafkaConsumer, source: TopicPartition, records: int, start: int, end: int
) -> int:
    """Return the offset of the N-th record from the end; offsets may be markers or compacted away."""
    back = records
    while True:
        first = max(start, end - back)
        consumer.seek(source, first)
        found = deque([record.offset async for record in _towards(consumer, source, end)], maxlen=records)
        if len(found) == records or first == start:
            return found[0] if found else end
        back *= 4


async def _towards(
    consumer: AIOKafkaConsumer, source: TopicPartition, end: int
) -> AsyncIterator[KafkaRecord]:
    while await consumer.position(source) < end:
        async with asyncio.timeout(SILENCE_SECONDS):  # aiokafka waits for a broker forever
            batch: list[KafkaRecord] = []
            while not batch and await consumer.position(source) < end:
                batch = (await _poll(consumer)).get(source, [])
        for record in batch:
            yield record


async def _poll(consumer: AIOKafkaConsumer) -> dict[TopicPartition, list[KafkaRecord]]:
    await asyncio.sleep(0)  # getmany returns buffered records without yielding to other tasks
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # a stopping consumer swallows the cancellation
        raise asyncio.CancelledError
    found: dict[TopicPartition, list[KafkaRecord]] = await consumer.getmany(
        timeout_ms=POLL_MILLISECONDS, max_records=RECORDS_PER_POLL
    )
    return found
