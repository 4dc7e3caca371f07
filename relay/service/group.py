"""The consumer group of the relays: which partitions are ours, what comes next, what is committed.

Rule: records count only if they were fetched while no rebalance was under way, after this relay chose the
position. aiokafka continues at the committed position by itself, which is not where a fold begins.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, OffsetAndMetadata, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)

from deniable.cluster.cluster import LEADERS_MILLISECONDS, Cluster
from deniable.cluster.connection.groups import RELAYS
from deniable.protocol.uploads.relay_position import Position
from deniable.relay.service.partition import UploadRecord

FETCH_BYTES = 4 << 20  # of a partition; what one poll may bring into memory
POLL_INTERVAL_MILLISECONDS = 600_000
ASK_SECONDS = 10.0
RETRY_SECONDS = 0.2
VALUE_SECONDS = 10.0


class Turns(ConsumerRebalanceListener):  # type: ignore[misc] # aiokafka has no types
    """Counts rebalances; `is_open` unless one is under way."""

    def __init__(self) -> None:
        self.number = 0
        self.is_open = False

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Begin a rebalance."""
        self.number += 1
        self.is_open = False

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """End it."""
        self.number += 1
        self.is_open = True


class RelayGroup:
    """One member of the group, on one topic.

    Parameters
    ----------
    cluster : which Kafka.
    topic : `uploads`.
    group : its name.
    """

    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        self._cluster, self._topic, self._name = cluster, topic, group
        self.turns = Turns()
        settings = cluster.client_settings()
        self._consumer = AIOKafkaConsumer(
            **settings,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="none",
            max_partition_fetch_bytes=FETCH_BYTES,
            session_timeout_ms=round(RELAYS.session_seconds * 1000),
            heartbeat_interval_ms=round(RELAYS.heartbeat_seconds * 1000),
            max_poll_interval_ms=POLL_INTERVAL_MILLISECONDS,
            metadata_max_age_ms=LEADERS_MILLISECONDS,
            partition_assignment_strategy=(StickyPartitionAssignor,),
        )
        self._admin = AIOKafkaAdminClient(**settings, request_timeout_ms=int(ASK_SECONDS * 1000))

    async def start(self) -> None:
        """Connect and join; KafkaError if no broker answers."""
        await self._admin.start()
        await self._consumer.start()
        self._consumer.subscribe([self._topic], listener=self.turns)

    async def stop(self) -> None:
        """Leave and disconnect."""
        with suppress(KafkaError):
            await self._consumer.stop()
        with suppress(KafkaError):
            await self._admin.close()

    def assigned(self) -> set[int]:
        """Return our partitions; none while a rebalance is under way."""
        return {each.partition for each in self._consumer.assignment()} if self.turns.is_open else set()

    def seek(self, partition: int, offset: int) -> None:
        """Read from this offset on; IllegalStateError if the partition is not ours."""
        self._consumer.seek(self._of(partition), offset)

    async def poll(self, milliseconds: int) -> dict[int, list[UploadRecord]]:
        """Return what has come, by partition; empty if nothing comes in this time, or a rebalance does.

        Raises
        ------
        OffsetOutOfRangeError if the log no longer has the position; KafkaError.
        """
        turn = self.turns.number
        try:
            found = await asyncio.wait_for(
                self._consumer.getmany(timeout_ms=milliseconds), milliseconds / 1000 + ASK_SECONDS
            )
        except (NoOffsetForPartitionError, TimeoutError):  # not positioned yet; a rebalance takes long
            return {}
        if turn != self.turns.number or not self.turns.is_open:
            return {}
        return {source.partition: records for source, records in found.items()}

    async def is_at_end(self, partition: int) -> bool:
        """Whether all records that the broker is known to have were returned by `poll`."""
        source = self._of(partition)
        high = self._consumer.highwater(source)
        with suppress(IllegalStateError, TimeoutError):
            async with asyncio.timeout(ASK_SECONDS):
                return high is not None and await self._consumer.position(source) >= high
        return False

    async def commit(self, partition: int, position: Position) -> None:
        """Commit a position.

        Raises
        ------
        IllegalStateError or KafkaError, if the partition is no longer ours as well; TimeoutError.
        """
        held = OffsetAndMetadata(position.position, position.metadata())
        async with asyncio.timeout(ASK_SECONDS):
            await self._consumer.commit({self._of(partition): held})

    async def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset of a partition, and the one after its last; KafkaError."""
        source = self._of(partition)
        first = await self._consumer.beginning_offsets([source])
        return int(first[source]), (await self.ends([partition]))[partition]

    async def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the ends of partitions; KafkaError."""
        found = await self._consumer.end_offsets([self._of(each) for each in partitions])
        return {source.partition: int(end) for source, end in found.items()}

    async def committed(self, partition: int) -> tuple[int, str] | None:
        """Return the committed position and its metadata; KafkaError, TimeoutError."""
        source = self._of(partition)
        async with asyncio.timeout(ASK_SECONDS):
            while True:
                found: dict[TopicPartition, Any] = {}
                with suppress(GroupCoordinatorNotAvailableError):  # a new broker creates its offsets topic
                    found = await self._admin.list_consumer_group_offsets(self._name, partitions=[source])
                if source in found:
                    held = found[source]
                    return None if held.offset < 0 else (int(held.offset), held.metadata or "")
                # aiokafka reports a coordinator that is loading, or has moved, as an empty answer.
                await asyncio.sleep(RETRY_SECONDS)

    async def value_at(self, partition: int, offset: int) -> bytes | None:
        """Return the value of one record; None if the log no longer has it; KafkaError, TimeoutError."""
        source = self._of(partition)
        reader = AIOKafkaConsumer(
            **self._cluster.client_settings(), enable_auto_commit=False, auto_offset_reset="none"
        )
        try:
            await reader.start()
            reader.assign([source])
            reader.seek(source, offset)
            async with asyncio.timeout(VALUE_SECONDS):
                record = await reader.getone()
        except OffsetOutOfRangeError:
            return None
        finally:
            await reader.stop()
        return record.value if record.offset == offset else None

    def _of(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)
