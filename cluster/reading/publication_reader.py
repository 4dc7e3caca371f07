"""Read the topic `collections` over an existing connection, with two small requests.

No consumer: it would need a second connection with a login, and log in the name of the application.
"""

import threading
from collections.abc import Sequence
from typing import Any

from kafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.record import MemoryRecords

from deniable.cluster.connection.requests import Manager
from deniable.protocol.publication import PARTITION, Publication, readable

READ_SECONDS = 3.0
FETCH_BYTES = 2**20
MOST_FETCHES = 64  # of one reading; the next one continues
FIRST_VERSION_WITH_IDS = 13  # of the request; earlier ones name topics


class UnreadableError(Exception):
    """The topic cannot be read now; the message says why."""


class LacksError(UnreadableError):
    """The topic is absent, or we may not read it."""


class PublicationReader:
    """Reads the topic, and keeps what it has read. Not thread-safe.

    Parameters
    ----------
    topic : name of the topic `collections`, prefix included.
    seconds : limit of one call.
    """

    def __init__(self, topic: str, seconds: float = READ_SECONDS) -> None:
        self._topic = topic
        self._seconds = seconds
        self._known = TopicContent(topic)

    def read(self, manager: Manager) -> dict[str, Publication]:
        """Return the newest record of each collection, by name; records that cannot be decoded are skipped.

        Parameters
        ----------
        manager : of a client that is connected.

        Raises
        ------
        UnreadableError if the topic is absent, may not be read, or is not read in time.
        """
        content = self._known.copy()  # a late answer must not change what the next call begins with

        async def ask() -> None:
            await content.read_on(manager)

        answered = threading.Event()
        try:
            future = manager.call_soon(ask)
            future.add_both(lambda _: answered.set())
            if not answered.wait(self._seconds):
                raise UnreadableError(f"topic {self._topic}: no answer within {self._seconds:g} s")
            if future.exception is not None:
                raise future.exception
        except TopicAuthorizationFailedError:
            raise LacksError(f"no permission: Read topic {self._topic}") from None
        except UnknownTopicOrPartitionError:
            raise LacksError(f"topic {self._topic} is absent") from None
        except KafkaError as error:
            raise UnreadableError(f"topic {self._topic}: {type(error).__name__}") from None
        self._known = content
        return readable(content.rows)


class TopicContent:
    """What was read of the topic so far.

    Parameters
    ----------
    topic : its name.

    Attributes
    ----------
    rows : newest value by key.
    """

    def __init__(self, topic: str) -> None:
        self.rows: dict[bytes, bytes] = {}
        self._topic = topic
        self._offset = 0
        self._topic_id: object = None

    def copy(self) -> "TopicContent":
        """Return a copy that can be changed independently."""
        copied = TopicContent(self._topic)
        copied.rows, copied._offset, copied._topic_id = dict(self.rows), self._offset, self._topic_id
        return copied

    async def read_on(self, manager: Manager) -> None:
        """Read to the end, from the start if the topic is a new one; KafkaError."""
        leader = await self._leader(manager)
        for _ in range(MOST_FETCHES):
            try:
                if not await self._fetch(manager, leader):
                    return
            except OffsetOutOfRangeError:
                if not self._offset:
                    raise
                self._start_again()

    async def _leader(self, manager: Manager) -> int:
        """Ask for the partition's leader; of a new topic, forget what the former one held."""
        asked = MetadataRequest.MetadataRequestTopic(name=self._topic)
        answer = await manager.send(MetadataRequest(topics=[asked], allow_auto_topic_creation=False))
        topic = self._only(answer.topics)
        if topic.error_code:
            raise for_code(topic.error_code)(self._topic)
        if self._topic_id != (topic_id := getattr(topic, "topic_id", None)):
            self._start_again()
            self._topic_id = topic_id
        for partition in topic.partitions:
            if partition.partition_index == PARTITION and partition.leader_id >= 0:
                return int(partition.leader_id)
        raise LeaderNotAvailableError(self._topic)

    async def _fetch(self, manager: Manager, leader: int) -> bool:
        """Read the next records; False at the end."""
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=PARTITION, fetch_offset=self._offset, partition_max_bytes=FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=FETCH_BYTES,
            topics=[FetchRequest.FetchTopic(topic=self._topic, partitions=[partition])],
            max_version=FIRST_VERSION_WITH_IDS - 1,
        )
        answer = await manager.send(request, node_id=leader)
        found = self._only([each for topic in answer.responses for each in topic.partitions])
        if found.error_code:
            raise for_code(found.error_code)(self._topic)
        before, records = self._offset, MemoryRecords(found.records or b"")
        while (batch := records.next_batch()) is not None:
            self._fold(batch)
        return self._offset > before and self._offset < found.high_watermark

    def _only(self, found: Sequence[Any]) -> Any:
        """Return the one that was asked for, which brokers that are not Apache's may leave out."""
        if len(found) != 1:
            raise UnknownError(f"{len(found)} answers about topic {self._topic}")
        return found[0]

    def _fold(self, batch: Any) -> None:
        for record in batch:
            if record.offset < self._offset:  # a batch may begin before the offset that was asked for
                continue
            if record.value is None:
                self.rows.pop(record.key or b"", None)
            else:
                self.rows[record.key or b""] = record.value
        self._offset = max(self._offset, batch.next_offset)

    def _start_again(self) -> None:
        self.rows, self._offset = {}, 0
