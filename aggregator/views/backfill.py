"""The newest estimate of every known collection, however far back it lies in the topic `estimates`.

Rule 1: windows of one collection lie in several partitions. All are read back to the same moment, by the
log's own append times. A window may have its estimate before the last one of the window before it. But no
report of a window is counted, and so no estimate appended, earlier than EARLY_SECONDS before it starts: what
was read back to then, and to the newest estimate, holds no later window's.
Rule 2: each stretch of time is as long as all before it together, is read once, and of it only what is of
collections still missing is decoded.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

from aiokafka import AIOKafkaConsumer, TopicPartition

from aggregator.records.estimate import EstimateRecord
from aggregator.topics.consumer import assigned_consumer
from aggregator.topics.partition_reader import POLL_MILLISECONDS, RECORDS_PER_POLL, KafkaRecord
from aggregator.views.latest_estimates import LatestEstimates
from producers.transport.cluster import Cluster
from producers.wire import EARLY_SECONDS

FIRST_SECONDS = 60.0


class Backfill:
    """Reads the topic backwards, beside who follows it.

    Parameters
    ----------
    latest : what is found is taken in there; its `sought` shrinks as collections are found, or are nowhere.
    names : of the known collections.
    show : told each estimate that the board takes in.
    """

    def __init__(
        self, latest: LatestEstimates, names: Iterable[str], show: Callable[[EstimateRecord], None]
    ) -> None:
        self.latest = latest
        self.missing = set(names)
        self.show = show

    async def run(self, cluster: Cluster, topic: str, partitions: int) -> None:
        """Search until each collection is found, or to the topic's start; KafkaError when it cannot."""
        sources = [TopicPartition(topic, partition) for partition in range(partitions)]
        async with assigned_consumer(cluster, sources) as consumer:
            consumer.pause(*sources)  # else requests wait behind a fetch that waits for records
            await self._search(consumer, sources, time.time())

    async def _search(
        self, consumer: AIOKafkaConsumer, sources: Sequence[TopicPartition], now: float
    ) -> None:
        """A clock that differs from the broker's makes the first stretch longer or shorter, no more."""
        stops = await consumer.end_offsets(sources)
        seconds = FIRST_SECONDS
        while self.missing:
            since_ms = max(0, int((now - seconds) * 1000))
            firsts = await consumer.offsets_for_times(dict.fromkeys(sources, since_ms))
            for source in sources:
                first = firsts[source]
                if first is not None and first.offset < stops[source]:
                    await self._read(consumer, source, first.offset, stops[source])
                    stops[source] = first.offset
            self._settle(since_ms)
            seconds *= 2

    async def _read(self, consumer: AIOKafkaConsumer, source: TopicPartition, first: int, stop: int) -> None:
        """Take in the offsets [first, stop) of one partition."""
        consumer.seek(source, first)
        consumer.resume(source)
        while await consumer.position(source) < stop:
            await asyncio.sleep(0)  # what is buffered is given without letting anybody else run
            batches = await consumer.getmany(
                source, timeout_ms=POLL_MILLISECONDS, max_records=RECORDS_PER_POLL
            )
            records = [each for each in batches.get(source, ()) if each.offset < stop and self._wants(each)]
            await self.latest.take_all(source, records, self.show)
        consumer.pause(source)

    def _wants(self, record: KafkaRecord) -> bool:
        return (record.key or b"").split(b"/")[0].decode(errors="replace") in self.missing

    def _settle(self, since_ms: int) -> None:
        """All that was appended since then, unix milliseconds, is taken in; 0: all that there is."""
        self.missing = {name for name in self.missing if since_ms and self._needed_ms(name) < since_ms}
        self.latest.sought &= self.missing

    def _needed_ms(self, name: str) -> int:
        """Back to when all must be read for the newest window known to be the newest that there is."""
        newest = self.latest.newest.get(name)
        if newest is None:
            return -1
        return min(self.latest.appended_ms.get(name, -1), (newest.window_end - EARLY_SECONDS) * 1000)
