"""Reads one partition from its start, without a group."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from deniable.cluster.cluster import LEADERS_MILLISECONDS, Cluster
from deniable.cluster.reading.consumer import assigned_consumer

POLL_MILLISECONDS = 500
RECORDS_PER_POLL = 500
REQUEST_MILLISECONDS = 10_000
SILENCE_SECONDS = 60.0
# The broker holds a fetch without records this long, and a TLS connection closes only after its answer.
BRIEF_MILLISECONDS = 20
SELDOM_MILLISECONDS = 300_000


class KafkaRecord(Protocol):
    """One record of a topic, as aiokafka returns it; times in unix milliseconds."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class RowReader:
    """A consumer without a group on one partition, from its start.

    Parameters
    ----------
    cluster : which Kafka.
    topic, partition : to read.
    committed : True to read committed transactions only; right for all topics except `reports`.
    follows : True for a reader that stays at the end: it polls the broker less often, and stops slower. Its
        user sees what is missing, and then calls `ask_for_leaders`.
    """

    def __init__(
        self, cluster: Cluster, topic: str, partition: int, *, committed: bool = True, follows: bool = False
    ) -> None:
        self.cluster = cluster
        self.topic_partition = TopicPartition(topic, partition)
        self.committed = committed
        self._wait_milliseconds = POLL_MILLISECONDS if follows else BRIEF_MILLISECONDS
        self._leaders_milliseconds = SELDOM_MILLISECONDS if follows else LEADERS_MILLISECONDS
        self._started: AIOKafkaConsumer | None = None
        self._cleanup = AsyncExitStack()

    async def start(self) -> None:
        """Connect and seek to the partition's start."""
        self._started = await self._cleanup.enter_async_context(
            assigned_consumer(
                self.cluster,
                [self.topic_partition],
                committed=self.committed,
                request_milliseconds=REQUEST_MILLISECONDS,
                fetch_wait_milliseconds=self._wait_milliseconds,
                leaders_milliseconds=self._leaders_milliseconds,
            )
        )
        await self._consumer.seek_to_beginning(self.topic_partition)

    async def stop(self) -> None:
        """Disconnect, if connected."""
        self._started = None
        await self._cleanup.aclose()

    @property
    def _consumer(self) -> AIOKafkaConsumer:
        if self._started is None:
            raise KafkaError("the reader is not started")
        return self._started

    async def end_offset(self) -> int:
        """End of the log, or of its committed part."""
        ends: dict[TopicPartition, int] = await self._consumer.end_offsets([self.topic_partition])
        return ends[self.topic_partition]

    async def start_offset(self) -> int:
        """First offset in the log."""
        starts: dict[TopicPartition, int] = await self._consumer.beginning_offsets([self.topic_partition])
        return starts[self.topic_partition]

    def ask_for_leaders(self) -> None:
        """Have some broker asked who leads: one that was replaced may answer on, and shows an old end.

        It may be that very one. So nobody is asked without need, and again until what was missing is there.
        """
        self._consumer._client.force_metadata_update()

    def seek(self, offset: int) -> None:
        """Read from this offset on."""
        self._consumer.seek(self.topic_partition, offset)

    async def position(self) -> int:
        """Next offset to read; beyond transaction markers already passed."""
        return int(await self._consumer.position(self.topic_partition))

    async def poll(self, milliseconds: int = POLL_MILLISECONDS) -> list[KafkaRecord]:
        """New records, oldest first; empty if none arrives in this time."""
        await asyncio.sleep(0)  # getmany never yields while records are buffered
        batches = await self._consumer.getmany(
            self.topic_partition, timeout_ms=milliseconds, max_records=RECORDS_PER_POLL
        )
        return list(batches.get(self.topic_partition, ()))

    async def until(self, done: Callable[[KafkaRecord], bool]) -> AsyncIterator[KafkaRecord]:
        """Records up to and including the first one that is `done`."""
        while True:
            for record in await self.poll():
                yield record
                if done(record):
                    return

    async def until_end(self, silence_seconds: float = SILENCE_SECONDS) -> AsyncIterator[KafkaRecord]:
        """Records up to the end at the time of the call; TimeoutError if none arrives for so many seconds."""
        async for batch in self.batches_until_end(silence_seconds):
            for record in batch:
                yield record

    async def batches_until_end(
        self, silence_seconds: float = SILENCE_SECONDS
    ) -> AsyncIterator[list[KafkaRecord]]:
        """The same records, as they were fetched together: at most RECORDS_PER_POLL, at least one."""
        end = await self.end_offset()
        while True:
            async with asyncio.timeout(silence_seconds):  # aiokafka waits forever for a broker
                batch = await self._towards(end)
            if not batch:
                return
            yield batch

    async def _towards(self, end: int) -> list[KafkaRecord]:
        """The next records; empty at the end."""
        while await self.position() < end:
            if batch := await self.poll():
                return batch
        return []

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


def fold(rows: dict[bytes, bytes], record: KafkaRecord) -> None:
    """Apply one record of a compacted topic: the newest value of a key wins, no value deletes it."""
    key = record.key or b""
    if record.value is None:
        rows.pop(key, None)
    else:
        rows[key] = record.value


async def read_rows(cluster: Cluster, topic: str, partition: int) -> dict[bytes, bytes]:
    """Current rows of one partition of a compacted topic."""
    found: dict[bytes, bytes] = {}
    async with RowReader(cluster, topic, partition) as reader:
        async for record in reader.until_end():
            fold(found, record)
    return found
