"""Has aiokafka hand over a fetch as runs. Public interfaces of aiokafka 0.14 return single records alone.

A record costs aiokafka three Python objects, more than all that a worker does with it. So a consumer that
asks for runs gets them where it would get records. aiokafka still fetches, and decides what is returned to
whom; it keeps positions by `next_fetch_offset`, as it does with its own class.
"""

from collections.abc import Iterator
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition

from aggregator.ledger.runs.run import Run
from aggregator.partition.fetching.record_batches import (
    DamagedBatchError,
    RecordColumns,
    columns_of,
    end_of_batch,
    plain_batch,
    run_of,
)

RUN_RECORDS = 8192  # at least, unless the fetch ends before; a batch is never divided
_PartitionRecords = fetcher.PartitionRecords


class FetchedBytes:
    """aiokafka's MemoryRecords, and the bytes in them."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._records = MemoryRecords(data)
        self.has_next = self._records.has_next
        self.next_batch = self._records.next_batch
        self.size_in_bytes = self._records.size_in_bytes


class PartitionRuns:
    """A partition's share of a fetch, an iterator of runs; in place of aiokafka's PartitionRecords.

    Parameters
    ----------
    source : partition of a topic.
    data : of the fetch.
    fetch_offset : records before it are left out: a fetch begins with a whole batch.
    """

    def __init__(self, source: TopicPartition, data: bytes, fetch_offset: int) -> None:
        self.source = source
        self.data = data
        self.next_fetch_offset = fetch_offset  # the offset after the last run
        self._runs = self._read()

    def __iter__(self) -> Iterator[Run]:
        return self

    def __next__(self) -> Run:
        return next(self._runs)

    def _read(self) -> Iterator[Run]:
        data, place = self.data, 0
        parts: list[RecordColumns] = []
        while (end := end_of_batch(data, place)) is not None:
            columns = None
            batch = plain_batch(data, place, end)
            if batch is not None and not batch.is_control:
                try:
                    columns = columns_of(data, batch)
                except (DamagedBatchError, IndexError):
                    batch = None
            if batch is None:
                if parts:
                    yield run_of(data, parts)
                    parts = []
                yield from self._read_by_aiokafka(data[place:end])
            else:
                if columns is not None:
                    columns = _from(columns, self.next_fetch_offset)
                    parts += [columns] if len(columns.offsets) else []
                self.next_fetch_offset = batch.next_offset
                if sum(len(part.offsets) for part in parts) >= RUN_RECORDS:
                    yield run_of(data, parts)
                    parts = []
            place = end
        if parts:
            yield run_of(data, parts)

    def _read_by_aiokafka(self, data: bytes) -> Iterator[Run]:
        """Records of a batch that is compressed, of an older format or damaged.

        Raises CorruptRecordException if it is damaged; the fetcher then fetches it again.
        """
        batch = MemoryRecords(data).next_batch()
        if batch is None or not batch.validate_crc():
            raise CorruptRecordException(f"Invalid CRC - {self.source}")
        records = (
            []
            if batch.is_control_batch
            else [each for each in batch if each.offset >= self.next_fetch_offset]
        )
        self.next_fetch_offset = batch.next_offset
        if records:
            yield Run.of(records)


def ask_for_runs(consumer: "AIOKafkaConsumer[Any, Any]") -> None:
    """Have a consumer that has not started, and reads uncommitted records, return runs instead of records."""
    fetcher.MemoryRecords = FetchedBytes
    fetcher.PartitionRecords = _partition_records
    consumer._value_deserializer = ask_for_runs  # which reaches `_partition_records` with each fetch


def _partition_records(
    source: TopicPartition,
    records: FetchedBytes,
    aborted: Any,
    fetch_offset: int,
    key_deserializer: Any,
    value_deserializer: Any,
    *settings: Any,
) -> Any:
    if value_deserializer is ask_for_runs:
        return PartitionRuns(source, records.data, fetch_offset)
    return _PartitionRecords(
        source, records, aborted, fetch_offset, key_deserializer, value_deserializer, *settings
    )


def _from(columns: RecordColumns, offset: int) -> RecordColumns:
    """The records from this offset on."""
    if not len(columns.offsets) or columns.offsets[0] >= offset:
        return columns
    kept = columns.offsets >= offset
    return RecordColumns(*(each[kept] for each in columns))
