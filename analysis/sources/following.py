"""Reads a topic from a point in time on, and beyond its end if asked."""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import NamedTuple

from aiokafka import TopicPartition

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage, answers
from deniable.cluster.reading.consumer import assigned_consumer
from deniable.cluster.reading.partition_reader import (
    POLL_MILLISECONDS,
    RECORDS_PER_POLL,
    SILENCE_SECONDS,
    KafkaRecord,
)


class Fetched(NamedTuple):
    """What one request brought.

    Parameters
    ----------
    records : with their partitions, in order within each.
    is_at_end : whether all records have come that were there when the end was asked for.
    """

    records: list[tuple[int, KafkaRecord]]
    is_at_end: bool


async def fetched_since(
    cluster: Cluster, topic: str, partitions: int, unix_ms: int, *, follows: bool
) -> AsyncGenerator[Fetched, None]:
    """Yield what was appended since a point in time and is committed; the last one is at the end.

    A caller that stops early must close the generator.

    Parameters
    ----------
    cluster, topic, partitions : to read.
    unix_ms : first append time, unix milliseconds.
    follows : True to go on at the end until cancelled, and when Kafka was away meanwhile.

    Raises
    ------
    KafkaError; TimeoutError if nothing arrives for 60 s before the end.
    """
    sources = [TopicPartition(topic, partition) for partition in range(partitions)]
    outage = Outage(cluster, "nothing new is read", (topic,))  # stopping for it would end a run that follows
    async with assigned_consumer(cluster, sources) as consumer:
        consumer.pause(*sources)  # else the next requests wait behind a fetch that waits for records
        firsts = await consumer.offsets_for_times(dict.fromkeys(sources, max(0, unix_ms)))
        newest: dict[TopicPartition, int] = await consumer.end_offsets(sources)
        ends: dict[TopicPartition, int] | None = newest
        for source in sources:
            first = firsts[source]
            consumer.seek(source, newest[source] if first is None else first.offset)
        consumer.resume(*sources)
        heard = asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(0)  # getmany never yields while records are buffered
            batches = await consumer.getmany(timeout_ms=POLL_MILLISECONDS, max_records=RECORDS_PER_POLL)
            now = asyncio.get_running_loop().time()
            found = [(source.partition, record) for source, records in batches.items() for record in records]
            is_at_end = ends is not None and all(
                [await consumer.position(each) >= ends[each] for each in sources]
            )
            yield Fetched(found, is_at_end)
            if is_at_end and not follows:
                return
            if ends is None or is_at_end:
                ends = await answers(outage, partial(consumer.end_offsets, sources))
                now = asyncio.get_running_loop().time()
            heard = now if found or is_at_end or ends is None else heard
            if now - heard > SILENCE_SECONDS:
                raise TimeoutError
