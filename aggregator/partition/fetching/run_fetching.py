"""Has aiokafka hand over a fetch as runs. Public interfaces of aiokafka 0.14 return single records alone.

A record costs aiokafka three Python objects, more than all that a worker does with it. So a consumer that
asks for runs gets them where it would get records. aiokafka still fetches, and decides what is returned to
whom; it keeps positions by `next_fetch_offset`, as it does with its own class.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from aiokafka import AIOKafkaConsumer
from aiokafka.consumer import fetcher
from aiokafka.errors import CorruptRecordException
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition

from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.partition.fetching.record_batches import (
    BatchRecords,
    DamagedBatchError,
    end_of_batch,
    epoch_at,
    plain_batch,
    records_of,
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
        place = records = 0
        waiting: list[BatchRecords] = []
        while (end := end_of_batch(self.data, place)) is not None:
            found = _plain_records(self.data, place, end)
            if found is not None:
                if waiting and waiting[-1].batch.epoch != found.batch.epoch:
                    yield from self._run_of(waiting)
                    waiting, records = [], 0
                waiting.append(found)
                records += len(found.starts)
            if found is None or records >= RUN_RECORDS:
                yield from self._run_of(waiting)
                waiting, records = [], 0
            if found is None:
                yield from self._read_by_aiokafka(place, end)
            place = end
        yield from self._run_of(waiting)

    def _run_of(self, batches: list[BatchRecords]) -> Iterator[Run]:
        if not batches:
            return
        try:
            run = run_of(self.data, batches, self.next_fetch_offset)
        except DamagedBatchError:
            for each in batches:
                yield from self._read_by_aiokafka(each.batch.first, each.batch.end)
            return
        self.next_fetch_offset = batches[-1].batch.next_offset
        if len(run):
            yield run

    def _read_by_aiokafka(self, first: int, end: int) -> Iterator[Run]:
        """Records of a batch that is compressed, of an older format or damaged.

        Raises CorruptRecordException if it is damaged; the fetcher then fetches it again.
        """
        batch = MemoryRecords(self.data[first:end]).next_batch()
        if batch is None or not batch.validate_crc():
            raise CorruptRecordException(f"Invalid CRC - {self.source}")
        records = (
            []
            if batch.is_control_batch
            else [each for each in batch if each.offset >= self.next_fetch_offset]
        )
        self.next_fetch_offset = batch.next_offset
        if records:
            yield replace(Run.of(records), epoch=epoch_at(self.data, first))


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


def _plain_records(data: bytes, first: int, end: int) -> BatchRecords | None:
    """The records of a batch, none if it is a transaction's marker; None if aiokafka must read it."""
    batch = plain_batch(data, first, end)
    if batch is None or batch.is_control:
        return batch and BatchRecords(batch, np.empty(0, np.int64))
    try:
        return records_of(data, batch)
    except (DamagedBatchError, IndexError):
        return None
