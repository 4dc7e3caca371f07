"""Reads a partition of `counts`, to which other programs may have written too.

Rule: only the newest row of a key must be readable. An unreadable one, such as a newer version's, fails no
reader if a readable one follows it before the end of the log.
"""

import asyncio
from collections.abc import Callable

from deniable.aggregator.ledger import row_keys
from deniable.aggregator.ledger.row_values import RowError
from deniable.aggregator.topics.foreign_records import ForeignRecords
from deniable.cluster.reading.partition_reader import KafkaRecord, RowReader


class CountsReader:
    """Passes our records to a callback, and warns of foreign ones.

    Parameters
    ----------
    reader : of the partition, started.
    sources : number of partitions that count.
    take : called with each key and value.
    """

    def __init__(
        self, reader: RowReader, sources: int, take: Callable[[bytes, bytes | None], object]
    ) -> None:
        self.reader = reader
        self.sources = sources
        self.take = take
        self._foreign = ForeignRecords()
        self._unreadable: dict[bytes, RowError] = {}  # by key, until a later row supersedes it

    async def read(self) -> None:
        """Read to the current end of the log.

        Compaction may move a row behind the progress committed with it, so the rows are complete only at an
        end. During the first read of a long log it may even move one behind the requested
        end: so read twice at first.

        Raises
        ------
        RowError if the newest row of a key cannot be read; KafkaError; TimeoutError.
        """
        async for record in self.reader.until_end():
            self._apply(record)
        for error in self._unreadable.values():
            raise error
        self._foreign.log_new(asyncio.get_running_loop().time())

    async def arrive(self, seconds: float) -> None:
        """Wait for records, so long at most, and take them; `read` to the end before relying on them."""
        for record in await self.reader.poll(round(1000 * seconds)):
            self._apply(record)

    def _apply(self, record: KafkaRecord) -> None:
        if row_keys.is_foreign(record.key or b"", self.sources):
            self._foreign.add(self.reader.topic_partition, record.offset)
        else:
            self._take(record)

    def _take(self, record: KafkaRecord) -> None:
        key = record.key or b""
        self._unreadable.pop(key, None)
        try:
            self.take(key, record.value)
        except RowError as error:
            source = self.reader.topic_partition
            place = f"offset {record.offset} of partition {source.partition} of {source.topic}"
            self._unreadable[key] = RowError(
                f"{place}: {error}. If another program wrote it: stop all workers, delete that topic and run "
                f"deniable topics create; what is counted is published again"
            )
            self._unreadable[key].__cause__ = error
