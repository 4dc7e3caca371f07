"""Where a ledger lives: Kafka transactions on one partition of `state`, by one fenced producer.

Rule 1: starting the producer fences every former owner of the partition: from then on their commits fail,
and what they left open is aborted.
Rule 2: after any failure this object is of no use any more; nothing is repaired, another one is opened.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    IllegalOperation,
    KafkaConnectionError,
    KafkaError,
)
from aiokafka.structs import OffsetAndMetadata

from aggregator.ledger import row_keys
from aggregator.topics.names import Topics
from aggregator.topics.partition_reader import RowReader, fold
from producers.transport.cluster import Cluster

OPEN_SECONDS = 60.0  # of silence; a large ledger may take longer
COMMIT_SECONDS = 15.0
LEAST_RECORDS_PER_SECOND = 2000  # a transaction with more of them may take longer
TRANSACTION_MILLISECONDS = 300_000  # a successor does not wait for it: its first step aborts what is open
COORDINATOR_SECONDS = 0.2
STOP_SECONDS = 3.0
SENDS_PER_TURN = 100
BATCH_BYTES = 512 * 1024  # a batch with one page over this size still fits into Kafka's 1 MiB

#: What a store, its producer or its reader can raise when the broker, the network or the fence says no.
#: IllegalOperation, which is no KafkaError, comes from the next send when a transaction fails between two.
STORE_ERRORS = (KafkaError, IllegalOperation, TimeoutError, OSError)


class Outgoing(NamedTuple):
    """A record that leaves because of what was counted. None as the partition lets the key decide."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None


class LedgerStore:
    """Reads and writes the ledger of one partition.

    Parameters
    ----------
    cluster : which Kafka.
    topics : names of this deployment.
    partition : whose ledger.
    """

    def __init__(self, cluster: Cluster, topics: Topics, partition: int) -> None:
        self.cluster = cluster
        self.topics = topics
        self.partition = partition
        self.opened_ms = 0  # append time of the row that `open` wrote, unix milliseconds
        self._end = 0  # of the partition, as far as this store wrote it
        self._producer: AIOKafkaProducer[bytes, bytes] | None = None

    async def open(self) -> dict[bytes, bytes]:
        """Fence the former owner, prove that writing works, and read the whole ledger.

        The nonce is the proof that reading reached the end: it was committed after everything that any
        former owner could commit.

        Returns
        -------
        Rows by key, as they lie in `state`.

        Raises
        ------
        STORE_ERRORS, TimeoutError when nothing more came for 60 s.
        """
        async with asyncio.timeout(OPEN_SECONDS) as patience:
            return await self._open(patience)

    async def _open(self, patience: asyncio.Timeout) -> dict[bytes, bytes]:
        self._producer = producer = AIOKafkaProducer(
            **self.cluster.client_settings(),
            transactional_id=self.topics.transactional_id(self.partition),
            transaction_timeout_ms=TRANSACTION_MILLISECONDS,
            request_timeout_ms=10_000,
            max_batch_size=BATCH_BYTES,
        )
        with _assertions_as_kafka_errors():
            await producer.start()
        nonce = os.urandom(16)
        owner = row_keys.encode_key(row_keys.SingleKey.OWNER)
        self.opened_ms = await self.commit([Outgoing(self.topics.state, self.partition, owner, nonce)])
        return await self._read_until(owner, nonce, patience)

    async def committed(self) -> int | None:
        """Offset that the group has committed for the partition; None if it never did.

        To be asked before `open`, whose rows then tell of it or of more. A successor may commit while they
        are read: asked afterwards, its offset would look like rows that were lost.

        Raises
        ------
        STORE_ERRORS.
        """
        source = TopicPartition(self.topics.reports, self.partition)
        admin = AIOKafkaAdminClient(**self.cluster.client_settings(), request_timeout_ms=10_000)
        try:
            await admin.start()
            async with asyncio.timeout(COMMIT_SECONDS):
                offset = await self._group_offset(admin, source)
        finally:
            await admin.close()
        return None if offset < 0 else offset

    async def _group_offset(self, admin: AIOKafkaAdminClient, source: TopicPartition) -> int:
        while True:
            try:
                found: dict[TopicPartition, OffsetAndMetadata] = await admin.list_consumer_group_offsets(
                    self.topics.group, partitions=[source]
                )
            except GroupCoordinatorNotAvailableError:  # a new broker makes its topic of offsets
                found = {}
            if source in found:
                return int(found[source].offset)
            # aiokafka takes the error of a coordinator that still loads, or has moved, for an empty answer.
            await asyncio.sleep(COORDINATOR_SECONDS)

    async def commit(self, records: Iterable[Outgoing], position: int | None = None) -> int:
        """Send all records, the last one a row of `state`, and the group's offset in one transaction.

        Returns
        -------
        The append time that the broker gave to the last record, unix milliseconds.

        Raises
        ------
        STORE_ERRORS; the transaction is then not known to be committed or aborted, and the store is done.
        """
        outgoing = list(records)
        async with asyncio.timeout(COMMIT_SECONDS + len(outgoing) / LEAST_RECORDS_PER_SECOND):
            return await self._commit(outgoing, position)

    async def close(self) -> None:
        """Let the producer go; an open transaction is left to the next owner, who aborts it."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            async with asyncio.timeout(STOP_SECONDS):
                with _assertions_as_kafka_errors():
                    await producer.stop()
        except STORE_ERRORS:
            await producer.client.close()

    async def _commit(self, records: Iterable[Outgoing], position: int | None) -> int:
        producer = self._producer
        if producer is None:
            raise KafkaError("the ledger's store is closed")
        await producer.begin_transaction()
        sent: list[asyncio.Future[Any]] = []
        try:
            for number, record in enumerate(records):
                with _assertions_as_kafka_errors():
                    sent.append(
                        await producer.send(
                            record.topic, record.value, key=record.key, partition=record.partition
                        )
                    )
                if number % SENDS_PER_TURN == 0:
                    await asyncio.sleep(0)  # a send that finds room returns without letting anybody else run
            if position is not None:
                source = TopicPartition(self.topics.reports, self.partition)
                await producer.send_offsets_to_transaction({source: position}, self.topics.group)
            for each in sent:  # gather would call back for each: of ten thousand, a step of 100 ms
                written = await each
        except BaseException:
            # Of a failed transaction one error is told; asyncio would log the others as never retrieved.
            for each in sent:
                _retrieve(each) if each.done() else each.add_done_callback(_retrieve)
            raise
        await producer.commit_transaction()
        if written.offset < self._end:
            raise KafkaError(f"{self.topics.state} was deleted and made again while this worker counted")
        self._end = written.offset
        return int(written.timestamp)

    async def _read_until(self, owner: bytes, nonce: bytes, patience: asyncio.Timeout) -> dict[bytes, bytes]:
        clock = asyncio.get_running_loop().time
        found: dict[bytes, bytes] = {}
        async with RowReader(self.cluster, self.topics.state, self.partition) as reader:
            async for record in reader.until(lambda r: r.offset >= self._end):
                fold(found, record)
                patience.reschedule(clock() + OPEN_SECONDS)
        if found.get(owner) != nonce:  # a newer one stands there, and compaction may have removed ours
            raise KafkaError(f"another worker has taken partition {self.partition} over")
        return found


@contextmanager
def _assertions_as_kafka_errors() -> Iterator[None]:
    """Raise KafkaConnectionError for an AssertionError of aiokafka; use around its producer's calls only.

    It asserts what a broker can falsify: that the cluster names a broker while a producer looks for its
    coordinator (a broker that has just come back names none, itself included), and that the transaction and
    the partition still exist when a send that waited for room goes on.
    """
    try:
        yield
    except AssertionError as error:
        raise KafkaConnectionError(f"aiokafka could not go on: {error}") from error


def _retrieve(answer: "asyncio.Future[Any]") -> None:
    if not answer.cancelled():
        answer.exception()
