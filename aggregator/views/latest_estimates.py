"""The newest estimate of every collection, followed from the topic `estimates`."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

import msgspec
from aiokafka import TopicPartition

from deniable.aggregator.records.estimate import SETTLE_SECONDS, EstimateRecord, decode_estimate
from deniable.aggregator.topics.foreign_records import ForeignRecords
from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage, noted
from deniable.cluster.reading.consumer import assigned_consumer
from deniable.cluster.reading.partition_reader import KafkaRecord
from deniable.estimators.collection import Collection

TAIL_RECORDS = 500  # in each partition, read before following
POLL_MILLISECONDS = 1000
RECORDS_PER_POLL = 100


class LatestEstimates:
    """The estimate of each collection's newest window, as the page shows it.

    Attributes
    ----------
    newest : estimates by collection name.
    appended_ms : latest append time of the estimates read under the parameters of the newest one, unix
        milliseconds, by collection name.
    sought : names of collections whose newest estimate may be in a part of the topic not read yet.
    """

    def __init__(self) -> None:
        self.newest: dict[str, EstimateRecord] = {}
        self.appended_ms: dict[str, int] = {}
        self.sought: set[str] = set()
        self._foreign = ForeignRecords()

    def take(self, data: bytes) -> EstimateRecord | None:
        """Read one record; return its estimate if it should be shown. DecodeError if it holds none.

        Of an estimate in parts only part 1 is shown: it holds the largest values.
        """
        record = decode_estimate(data)
        return self.take_estimate(record) if record.part == 1 else None

    def take_estimate(self, record: EstimateRecord) -> EstimateRecord | None:
        """Add one estimate; return it if it should be shown."""
        shown = self.newest.get(record.collection)
        if shown is not None and shown.window_start > record.window_start:
            return None
        if shown is None or shown.window_start < record.window_start or record.supersedes(shown):
            self.newest[record.collection] = record
            return record
        return None

    def stale(self, collections: Iterable[Collection], now: float) -> dict[str, int]:
        """Collections whose next estimate is overdue, and since when.

        Parameters
        ----------
        collections : to check; those without an estimate are not stale.
        now : unix seconds.

        Returns
        -------
        Unix seconds by collection name.
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
        outage: Outage | None = None,
    ) -> None:
        """Follow the topic, `read_committed`, from near its end until cancelled; `show` each new estimate.

        Parameters
        ----------
        outage : notes whether Kafka answers meanwhile; None if somebody else does.
        """
        sources = [TopicPartition(topic, partition) for partition in range(partitions)]
        async with (
            assigned_consumer(cluster, sources) as consumer,
            noted(outage, partial(consumer.end_offsets, sources)),
        ):
            for source, end in (await consumer.end_offsets(sources)).items():
                consumer.seek(source, max(0, end - TAIL_RECORDS))
            while True:
                await asyncio.sleep(0)  # getmany never yields while records are buffered
                batches = await consumer.getmany(timeout_ms=POLL_MILLISECONDS, max_records=RECORDS_PER_POLL)
                for source, records in batches.items():
                    await self.take_all(source, records, show)
                self._foreign.log_new(asyncio.get_running_loop().time())

    async def take_all(
        self, source: TopicPartition, records: Iterable[KafkaRecord], show: Callable[[EstimateRecord], None]
    ) -> None:
        """Read records of one partition, one per step of the event loop; `show` each estimate to show."""
        for record in records:
            await asyncio.sleep(0)  # a record of 2,000 values takes milliseconds
            try:
                taken = self.take(record.value or b"")
            except msgspec.DecodeError:
                self._foreign.add(source, record.offset)
            else:
                if taken is not None:
                    self._note(taken, record.timestamp)
                    show(taken)

    def _note(self, taken: EstimateRecord, appended_ms: int) -> None:
        newest = self.newest.get(taken.collection)
        if newest is not None and newest.fingerprint == taken.fingerprint:
            former_ms = self.appended_ms.get(taken.collection, 0)
            self.appended_ms[taken.collection] = max(former_ms, appended_ms)


def successor_due(record: EstimateRecord, collection: Collection) -> int:
    """When the next estimate is due, unix seconds.

    A provisional estimate is followed by its window's final one; a final one, by the next window's.
    """
    closes_at = collection.closes_at(record.window_start)
    return closes_at + SETTLE_SECONDS + (collection.window_seconds if record.final else 0)
