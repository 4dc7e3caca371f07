"""Stores a ledger: Kafka transactions on one partition of `state`, by one fenced producer.

Rule 1: starting the producer fences every former owner of the partition: their later commits fail, and their
open transactions are aborted.
Rule 2: after any failure, discard this object and open another; nothing is repaired.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    IllegalOperation,
    KafkaConnectionError,
    KafkaError,
)
from aiokafka.structs import OffsetAndMetadata

from deniable.aggregator.ledger import row_keys
from deniable.aggregator.partition.fetching.last_record import LastRecord, decode_last_record
from deniable.aggregator.partition.timing import DEFAULT, PartitionTiming
from deniable.aggregator.topics.transaction_batches import Outgoing, TransactionBatches
from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.closing import stop_producer
from deniable.cluster.reading.consumer import IDLE_MILLISECONDS
from deniable.cluster.reading.partition_reader import RowReader, fold
from deniable.protocol.topic_names import Topics

TRANSACTION_MILLISECONDS = 300_000  # successors do not wait for it: they abort an open transaction first
BATCH_BYTES = 512 * 1024  # a batch with one page over this size still fits into Kafka's 1 MiB

#: Raised by a store, its producer or its reader when the broker, the network or fencing refuses.
#: IllegalOperation is no KafkaError; `send` raises it after a transaction failed between two sends.
STORE_ERRORS = (KafkaError, IllegalOperation, TimeoutError, OSError)


class LedgerStore:
    """Reads and writes the ledger of one partition.

    Parameters
    ----------
    cluster : which Kafka.
    topics : names of the topics.
    partition : of the ledger.
    timing : of its waits.
    """

    def __init__(
        self, cluster: Cluster, topics: Topics, partition: int, timing: PartitionTiming = DEFAULT
    ) -> None:
        self.cluster = cluster
        self.topics = topics
        self.partition = partition
        self.timing = timing
        self.last: LastRecord | None = None  # counted before `committed`, if the commit says which
        self.opened_ms = 0  # append time of the row that `open` wrote, unix milliseconds
        self._end = 0  # offset of this store's last row
        self._producer: AIOKafkaProducer[bytes, bytes] | None = None

    async def open(self) -> dict[bytes, bytes]:
        """Fence the former owner, prove that writing works, and read the whole ledger.

        The nonce proves that reading reached the end: it was committed after everything that any former owner
        could commit.

        Returns
        -------
        Rows by key, encoded as in `state`.

        Raises
        ------
        STORE_ERRORS; among them TimeoutError if no row arrives for 60 s.
        """
        async with asyncio.timeout(self.timing.open) as patience:
            return await self._open(patience)

    async def _open(self, patience: asyncio.Timeout) -> dict[bytes, bytes]:
        await self._start()
        nonce = os.urandom(16)
        owner = row_keys.encode_key(row_keys.SingleKey.OWNER)
        self.opened_ms = await self.commit([Outgoing(self.topics.state, self.partition, owner, nonce)])
        return await self._read_until(owner, nonce, patience)

    async def _start(self) -> None:
        self._producer = producer = AIOKafkaProducer(
            **self.cluster.client_settings(),
            transactional_id=self.topics.transactional_id(self.partition),
            transaction_timeout_ms=TRANSACTION_MILLISECONDS,
            request_timeout_ms=10_000,
            max_batch_size=BATCH_BYTES,
            connections_max_idle_ms=IDLE_MILLISECONDS,
        )
        with _assertions_as_kafka_errors():
            await producer.start()

    async def close_visibly(self) -> None:
        """Close, and wait until all readers see the last transaction.

        A commit is confirmed before its markers stand in all partitions. The coordinator starts a producer of
        the same id only after that.

        Raises
        ------
        STORE_ERRORS.
        """
        await self.close()
        async with asyncio.timeout(self.timing.open):
            await self._start()
        await self.close()

    async def committed(self) -> int | None:
        """Offset committed by the group for the partition; None if there is none.

        Call it before `open`, whose rows then cover at least this offset. A successor may commit while they
        are read; its offset, fetched afterwards, would look as if rows were lost. `last` comes with it.

        Raises
        ------
        STORE_ERRORS.
        """
        source = TopicPartition(self.topics.reports, self.partition)
        admin = AIOKafkaAdminClient(**self.cluster.client_settings(), request_timeout_ms=10_000)
        try:
            await admin.start()
            async with asyncio.timeout(self.timing.commit):
                found = await self._group_offset(admin, source)
        finally:
            await admin.close()
        self.last = decode_last_record(found.metadata)
        return None if found.offset < 0 else int(found.offset)

    async def _group_offset(self, admin: AIOKafkaAdminClient, source: TopicPartition) -> OffsetAndMetadata:
        while True:
            try:
                found: dict[TopicPartition, OffsetAndMetadata] = await admin.list_consumer_group_offsets(
                    self.topics.group, partitions=[source]
                )
            except GroupCoordinatorNotAvailableError:  # a new broker still creates its offsets topic
                found = {}
            if source in found:
                return found[source]
            # aiokafka reports the error of a coordinator that is loading, or has moved, as an empty answer.
            await asyncio.sleep(self.timing.coordinator)

    async def commit(
        self, records: Iterable[Outgoing], position: int | None = None, last: LastRecord | None = None
    ) -> int:
        """Send all records, the last one a row of `state`, and the group's offset in one transaction.

        Parameters
        ----------
        records : to send.
        position : of the ledger, for the group.
        last : record counted before it.

        Returns
        -------
        Append time of the last record, unix milliseconds.

        Raises
        ------
        STORE_ERRORS; whether the transaction was committed is then unknown, and the store is unusable.
        """
        outgoing = list(records)
        async with asyncio.timeout(self.timing.commit + len(outgoing) / self.timing.commit_rate):
            return await self._commit(outgoing, position, last.encode() if last else "")

    async def close(self) -> None:
        """Stop the producer; the next owner aborts an open transaction."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        await stop_producer(producer, self.timing.close)

    async def _commit(self, records: Iterable[Outgoing], position: int | None, last: str) -> int:
        producer = self._producer
        if producer is None:
            raise KafkaError("the ledger's store is closed")
        await producer.begin_transaction()
        batches = TransactionBatches(producer)
        try:
            with _assertions_as_kafka_errors():
                await batches.send(records)
            if position is not None:
                source = TopicPartition(self.topics.reports, self.partition)
                offsets = {source: OffsetAndMetadata(position, last)}
                await producer.send_offsets_to_transaction(offsets, self.topics.group)
            offset, append_ms = await batches.stored()
        except BaseException:
            batches.give_up()
            raise
        await producer.commit_transaction()
        if offset < self._end:
            raise KafkaError(f"{self.topics.state} lost rows, or was recreated, while this worker counted")
        self._end = offset
        return append_ms

    async def _read_until(self, owner: bytes, nonce: bytes, patience: asyncio.Timeout) -> dict[bytes, bytes]:
        clock = asyncio.get_running_loop().time
        found: dict[bytes, bytes] = {}
        async with RowReader(self.cluster, self.topics.state, self.partition) as reader:
            async for record in reader.until(lambda r: r.offset >= self._end):
                fold(found, record)
                patience.reschedule(clock() + self.timing.open)
        if found.get(owner) != nonce:  # a successor wrote another; compaction may have removed ours
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
