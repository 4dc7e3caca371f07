"""Reading to the end of a log does not wait forever when no more records arrive."""

import asyncio

import pytest

from deniable.cluster.reading.partition_reader import KafkaRecord
from tests.support.aggregator.builders import TOPICS, MemoryLog, MemoryReader

RECORDS = 5


class Dying(MemoryReader):
    """Returns some records one by one, then none, like a client that lost its broker."""

    async def poll(self, milliseconds: int = 0) -> list[KafkaRecord]:
        await asyncio.sleep(0.001)
        batch = [record for record in self._records if record.offset >= self._next][:1]
        if batch and batch[0].offset == RECORDS - 1:
            return []
        self._next += len(batch)
        return batch


def test_reading_fails_when_records_stop() -> None:
    log, read = MemoryLog(), []
    for _ in range(RECORDS):
        log.append(TOPICS.reports, 0, b"a record")

    async def run() -> None:
        async with Dying(log.partition(TOPICS.reports, 0)) as reader:
            async for record in reader.until_end(silence_seconds=0.2):
                read.append(record.offset)

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert read == list(range(RECORDS - 1))
