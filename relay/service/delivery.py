"""Records that are sent until Kafka has them all."""

import asyncio
from collections.abc import Callable, Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
)

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.closing import stop_producer
from deniable.cluster.connection.outage import Outage
from deniable.relay.service.errors import RelayError
from deniable.relay.service.partition import Sendable

BATCH_BYTES = 1 << 18
RECORD_BYTES = 1_048_588
REQUEST_MILLISECONDS = 10_000
RETRY_SECONDS = 0.5
STOP_SECONDS = 1.0
NEVER = (
    ClusterAuthorizationFailedError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
)


class PackDelivery:
    """A producer without idempotence or transactions: a pack that is in the log twice counts once.

    Parameters
    ----------
    cluster : which Kafka.
    away : notes whether it takes records.
    """

    def __init__(self, cluster: Cluster, away: Outage) -> None:
        self._away = away
        self._producer: AIOKafkaProducer[bytes, bytes] = AIOKafkaProducer(
            **cluster.client_settings(),
            acks="all",
            max_batch_size=BATCH_BYTES,
            max_request_size=RECORD_BYTES,
            request_timeout_ms=REQUEST_MILLISECONDS,
        )

    async def start(self) -> None:
        """Connect; KafkaError if no broker answers."""
        await self._producer.start()

    async def stop(self) -> None:
        """Disconnect."""
        await stop_producer(self._producer, STOP_SECONDS)

    async def send(self, records: Sequence[Sendable], is_wanted: Callable[[], bool]) -> bool:
        """Send all records, again and again, until all are acknowledged.

        Parameters
        ----------
        records : in any order.
        is_wanted : asked before each further attempt; False gives up.

        Returns
        -------
        Whether Kafka has all.

        Raises
        ------
        RelayError if Kafka will never take one of them.
        """
        left = list(records)
        while left:
            left = await self._attempt(left)
            if left:
                if not is_wanted():
                    for each in left:
                        self._away.forget(each.place)
                    return False
                await asyncio.sleep(RETRY_SECONDS)
        return True

    async def append(self, topic: str, partition: int, value: bytes) -> int | None:
        """Send one record; return its offset, None if Kafka did not answer."""
        record = Sendable(topic, value, partition)
        (answer,) = await asyncio.gather(self._send(record), return_exceptions=True)
        if isinstance(answer, BaseException):
            self._judge(answer, record)
            return None
        return int(answer)

    async def _attempt(self, records: Sequence[Sendable]) -> list[Sendable]:
        """Return the records that Kafka did not acknowledge."""
        answers = await asyncio.gather(*map(self._send, records), return_exceptions=True)
        failed = []
        for record, answer in zip(records, answers, strict=True):
            if isinstance(answer, BaseException):
                self._judge(answer, record)
                failed.append(record)
        return failed

    async def _send(self, record: Sendable) -> int:
        future = await self._producer.send(
            record.topic,
            record.value,
            key=record.key,
            partition=record.partition,
            timestamp_ms=record.timestamp_ms,
        )
        offset = int((await future).offset)
        self._away.answered(record.place)
        return offset

    def _judge(self, error: BaseException, record: Sendable) -> None:
        """Note an error that a retry may mend; raise what it may not."""
        if isinstance(error, NEVER):
            raise RelayError(
                f"topic {record.topic} takes no record of this relay ({type(error).__name__}): run deniable "
                "doctor --as relay, which says what is missing"
            ) from error
        if not isinstance(error, KafkaError):
            raise error
        self._away.failed(record.place, error)
