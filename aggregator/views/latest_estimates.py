"""The newest estimate of every collection, followed from the topic `estimates`."""

import asyncio
from collections.abc import Callable, Iterable

import msgspec
from aiokafka import TopicPartition

from aggregator.records.estimate import SETTLE_SECONDS, EstimateRecord, decode_estimate
from aggregator.topics.consumer import assigned_consumer
from aggregator.topics.foreign_records import ForeignRecords
from aggregator.topics.partition_reader import KafkaRecord
from estimators.collection import Collection
from producers.transport.cluster import Cluster

TAIL_RECORDS = 500  # how far back, in each partition, following begins
POLL_MILLISECONDS = 1000
RECORDS_PER_POLL = 100


class LatestEstimates:
    """What the page shows: one estimate per collection, that of its newest window.

    Attributes
    ----------
    newest : what is shown, by the collection's name.
    appended_ms : when the latest estimate that was taken in was appended, unix milliseconds, by name.
    sought : names of collections of which a newer estimate may lie where the topic was not read yet.
    """

    def __init__(self) -> None:
        self.newest: dict[str, EstimateRecord] = {}
        self.appended_ms: dict[str, int] = {}
        self.sought: set[str] = set()
        self._foreign = ForeignRecords()

    def take(self, data: bytes) -> EstimateRecord | None:
        """Take in one record; the estimate if it is to be shown now. DecodeError when it holds none.

        Of one in parts the first holds the largest estimates, and is all that is shown.
        """
        record = decode_estimate(data)
        return self.take_estimate(record) if record.part == 1 else None

    def take_estimate(self, record: EstimateRecord) -> EstimateRecord | None:
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
        cluster: Cluster,
        topic: str,
        partitions: int,
        show: Callable[[EstimateRecord], None] = lambda _: None,
    ) -> None:
        """Read the topic, `read_committed`, from near its end until cancelled; `show` each new estimate."""
        sources = [TopicPartition(topic, partition) for partition in range(partitions)]
        async with assigned_consumer(cluster, sources) as consumer:
            for source, end in (await consumer.end_offsets(sources)).items():
                consumer.seek(source, max(0, end - TAIL_RECORDS))
            while True:
                await asyncio.sleep(0)  # what is buffered is given without letting anybody else run
                batches = await consumer.getmany(timeout_ms=POLL_MILLISECONDS, max_records=RECORDS_PER_POLL)
                for source, records in batches.items():
                    await self.take_all(source, records, show)
                self._foreign.log_new(asyncio.get_running_loop().time())

    async def take_all(
        self, source: TopicPartition, records: Iterable[KafkaRecord], show: Callable[[EstimateRecord], None]
    ) -> None:
        """Take in records of one partition, one in a step of the event loop; `show` what is to be shown."""
        for record in records:
            await asyncio.sleep(0)  # one of 2,000 values takes milliseconds
            try:
                taken = self.take(record.value or b"")
            except msgspec.DecodeError:
                self._foreign.add(source, record.offset)
            else:
                if taken is not None:
                    former_ms = self.appended_ms.get(taken.collection, 0)
                    self.appended_ms[taken.collection] = max(former_ms, record.timestamp)
                    show(taken)


def successor_due(record: EstimateRecord, collection: Collection) -> int:
    """When the next estimate should be here at the latest, unix seconds.

    After a provisional one that is its window's final one; after a final one, that of the next window.
    """
    closes_at = collection.closes_at(record.window_start)
    return closes_at + SETTLE_SECONDS + (collection.window_seconds if record.final else 0)
