"""The newest estimate of every collection, followed from the topic `estimates`."""

import asyncio
from collections.abc import Callable, Iterable

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from aggregator import estimate_record
from aggregator.estimate_record import EstimateRecord
from aggregator.foreign_records import ForeignRecords
from aggregator.row_reader import Record
from estimators.collection import Collection

TAIL_RECORDS = 500  # how far back, in each partition, the newest estimates are looked for at the start
SETTLE_SECONDS = 15  # from a window's close to its final estimate, when all is well and partitions idle
POLL_MILLISECONDS = 1000


class Board:
    """What the page shows: one estimate per collection, that of its newest window."""

    def __init__(self) -> None:
        self.newest: dict[str, EstimateRecord] = {}
        self._foreign = ForeignRecords()

    def take(self, data: bytes) -> EstimateRecord | None:
        """Take in one record; the estimate if it is to be shown now. DecodeError when it holds none.

        Of one in parts the first holds the largest estimates, and is all that is shown.
        """
        record = estimate_record.decode(data)
        return self.add(record) if record.part == 1 else None

    def add(self, record: EstimateRecord) -> EstimateRecord | None:
        """Take in one estimate; itself if it is to be shown now."""
        shown = self.newest.get(record.collection)
        if shown is not None and shown.window_start > record.window_start:
            return None
        if shown is None or shown.window_start < record.window_start or record.supersedes(shown):
            self.newest[record.collection] = record
            return record
        return None

    def stale(self, collections: Iterable[Collection], now: float) -> dict[str, int]:
        """Collections whose newest estimate should have been followed by another, and since when.

        Parameters
        ----------
        collections : the known ones; one that has no estimate yet is not stale.
        now : unix seconds.

        Returns
        -------
        Unix seconds by name.
        """
        shown = [(c, self.newest[c.name]) for c in collections if c.name in self.newest]
        due = {collection.name: successor_due(record, collection) for collection, record in shown}
        return {name: since for name, since in due.items() if since < now}

    async def follow(
        self,
        bootstrap_servers: str,
        topic: str,
        partitions: int,
        show: Callable[[EstimateRecord], None] = lambda _: None,
    ) -> None:
        """Read the topic, `read_committed`, from near its end until cancelled; `show` each new estimate."""
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap_servers,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        try:
            await consumer.start()
            sources = [TopicPartition(topic, partition) for partition in range(partitions)]
            consumer.assign(sources)
            for source, end in (await consumer.end_offsets(sources)).items():
                consumer.seek(source, max(0, end - TAIL_RECORDS))
            while True:
                await asyncio.sleep(0)  # what is buffered is given without letting anybody else run
                for source, records in (await consumer.getmany(timeout_ms=POLL_MILLISECONDS)).items():
                    self._show(source, records, show)
                self._foreign.tell(asyncio.get_running_loop().time())
        finally:
            await consumer.stop()

    def _show(
        self, source: TopicPartition, records: Iterable[Record], show: Callable[[EstimateRecord], None]
    ) -> None:
        for record in records:
            try:
                taken = self.take(record.value or b"")
            except msgspec.DecodeError:
                self._foreign.add(source, record.offset)
            else:
                if taken is not None:
                    show(taken)


def successor_due(record: EstimateRecord, collection: Collection) -> int:
    """When the next estimate should be here at the latest, unix seconds.

    After a provisional one that is its window's final one; after a final one, that of the next window.
    """
    closes_at = collection.closes_at(record.window_start)
    return closes_at + SETTLE_SECONDS + (collection.window_seconds if record.final else 0)
