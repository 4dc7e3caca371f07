"""One connection to a Kafka cluster, to append frames: metadata, produce requests, end offsets.

Each request to a broker has one record for each of its partitions, and the caller decides when to send.
aiokafka's producer, with a future, a batch and a timer for each record, would cost more than the uploads.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Self

from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from deniable.cluster.cluster import Cluster, PlaintextError
from deniable.cluster.connection.outage import described
from deniable.cluster.credential_files import SecurityError
from deniable.cluster.existing_topics.of_aiokafka import create_no_topics

CLIENT_ID = "deniable-edge"
REQUEST_SECONDS = 4.0
ACKNOWLEDGE_MS = 3000  # within which the brokers must have a record, before they answer with an error
ALL = -1
LATEST = -1
METADATA_MS = 60_000
BATCH_OVERHEAD_BYTES = 256

#: What aiokafka raises when a broker cannot be used.
FAILURES = (kafka_errors.KafkaError, OSError, asyncio.TimeoutError)


class SessionError(Exception):
    """Kafka cannot be used now. The message is a reason for people, without credentials."""


class KafkaSession:
    """A connected client. `open` makes one.

    Parameters
    ----------
    client : bootstrapped, of aiokafka.
    topic, partitions : the topic `uploads` and how many partitions it has.
    """

    def __init__(self, client: AIOKafkaClient, topic: str, partitions: int) -> None:
        self._client = client
        self._topic = topic
        self._sources = [TopicPartition(topic, each) for each in range(partitions)]

    @classmethod
    async def open(cls, cluster: Cluster, topic: str, partitions: int) -> Self:
        """Connect, and check the topic.

        Raises
        ------
        SessionError if no broker answers, or if the topic is missing or has other partitions.
        """
        try:
            settings = cluster.client_settings()
        except SecurityError as error:
            raise SessionError(f"connections to Kafka cannot be secured: {error}") from None
        client = AIOKafkaClient(
            client_id=CLIENT_ID,
            request_timeout_ms=round(REQUEST_SECONDS * 1000),
            metadata_max_age_ms=METADATA_MS,
            **settings,
        )
        create_no_topics(client)
        session = cls(client, topic, partitions)
        try:
            await session._begin(cluster)
        except BaseException:
            await session.close()
            raise
        return session

    async def _begin(self, cluster: Cluster) -> None:
        try:
            await self._client.bootstrap()
            await self.refresh(self._topic)
        except FAILURES as error:
            raise SessionError(f"Kafka at {cluster.bootstrap_servers}: {cause(error)}") from error
        try:
            cluster.check_advertised(broker.host for broker in self._client.cluster.brokers())
        except PlaintextError as error:
            raise SessionError(str(error)) from None
        if self._topic in self._client.cluster.unauthorized_topics:
            raise SessionError(cause(kafka_errors.TopicAuthorizationFailedError()))
        found = len(self._client.cluster.partitions_for_topic(self._topic) or ())
        if found == 0:
            raise SessionError(f"topic {self._topic} does not exist: run deniable topics create")
        if found != len(self._sources):
            wanted = len(self._sources)
            raise SessionError(
                f"topic {self._topic} must have kafka.partitions = {wanted} partitions, got {found}"
            )

    async def refresh(self, topic: str = "") -> None:
        """Ask for the present leaders; FAILURES if no broker answers."""
        waiter = self._client.set_topics([topic]) if topic else self._client.force_metadata_update()
        if not await asyncio.wait_for(waiter, 2 * REQUEST_SECONDS):
            raise kafka_errors.KafkaConnectionError("no broker answers")

    def leader(self, partition: int) -> int | None:
        """Return the node that leads a partition; None if nobody does, as far as is known."""
        node = self._client.cluster.leader_for_partition(self._sources[partition])
        return None if node is None or node < 0 else int(node)

    async def is_ready(self, node: int) -> bool:
        """Whether there is a connection to this node, after an attempt to open one."""
        return bool(await self._client.ready(node))

    async def append(self, node: int, frames: Mapping[int, bytes]) -> dict[int, BaseException | None]:
        """Append one record to each of these partitions, all led by this node, with acks=all.

        Parameters
        ----------
        node : of `leader`.
        frames : values by partition.

        Returns
        -------
        By partition: None if all replicas in sync have it, else why it is not known.

        Raises
        ------
        FAILURES; the records may have been appended.
        """
        batches = [(partition, record_batch(frame)) for partition, frame in frames.items()]
        request = ProduceRequest(None, ALL, ACKNOWLEDGE_MS, [(self._topic, batches)])
        response = await self._answer(node, request)
        results: dict[int, BaseException | None] = {}
        for _topic, answers in response.topics:
            for partition, code, *_rest in answers:
                results[partition] = kafka_errors.for_code(code)() if code else None
        return results

    async def has_begun(self) -> bool:
        """Whether every partition has a record: a relay's settings come first. FAILURES like `append`."""
        by_node: dict[int, list[tuple[int, int]]] = {}
        for source in self._sources:
            node = self.leader(source.partition)
            if node is None:
                return False
            by_node.setdefault(node, []).append((source.partition, LATEST))
        for node, wanted in by_node.items():
            request = OffsetRequest(-1, 0, [(self._topic, wanted)])
            response = await self._answer(node, request)
            for _topic, answers in response.topics:
                for _partition, code, _time, end, *_rest in answers:
                    if code:
                        raise kafka_errors.for_code(code)()
                    if end == 0:
                        return False
        return True

    async def _answer(self, node: int, request: Any) -> Any:
        try:
            return await self._client.send(node, request)
        except KeyError:  # two requests on one connection timed out
            raise kafka_errors.RequestTimedOutError from None

    async def close(self) -> None:
        """Disconnect; requests in flight fail."""
        await self._client.close()


def record_batch(frame: bytes) -> bytearray:
    """Return a batch of one record without key and headers, uncompressed, with this machine's time.

    Brokers replace the time by that of the append. Frames of noise do not shrink.
    """
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, len(frame) + BATCH_OVERHEAD_BYTES)
    builder.append(0, int(time.time() * 1000), None, frame, [])
    built: bytearray = builder.build()
    return built


def cause(error: BaseException) -> str:
    """Explain an error of Kafka's client; its type if unknown."""
    match error:
        case kafka_errors.TopicAuthorizationFailedError():
            return "not authorized: an edge needs Write and Describe on the topic uploads"
        case kafka_errors.AuthenticationFailedError() | kafka_errors.SaslAuthenticationFailed():
            return "authentication failed; deniable doctor says why"
    return described(error)
