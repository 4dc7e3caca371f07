"""Finds the newest estimate of every known collection, however far back in the topic `estimates`.

Rule 1: one collection's windows are in several partitions. All are read back to the same append time. A
window may be estimated before the last estimate of its predecessor. But no report is counted, and so no
estimate appended, earlier than EARLY_SECONDS before its window starts. So the newest window found is the
newest there is, once all records are read since EARLY_SECONDS before its end, and since its own estimate.
Rule 2: each step back doubles the time covered. Each record is read once, and decoded only if its collection
is still missing.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

from aiokafka import AIOKafkaConsumer, TopicPartition

from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.views.latest_estimates import LatestEstimates
from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.consumer import assigned_consumer
from deniable.cluster.reading.partition_reader import POLL_MILLISECONDS, RECORDS_PER_POLL, KafkaRecord
from deniable.protocol.wire import EARLY_SECONDS

FIRST_SECONDS = 60.0


class Backfill:
    """Reads the topic backwards while another task follows it.

    Parameters
    ----------
    latest : receives the estimates; its `sought` loses each collection that is found, or is not in the topic.
    names : of the known collections.
    show : called with each new estimate.
    """

    def __init__(
        self, latest: LatestEstimates, names: Iterable[str], show: Callable[[EstimateRecord], None]
    ) -> None:
        self.latest = latest
        self.missing = set(names)
        self.show = show

    async def run(self, cluster: Cluster, topic: str, partitions: int) -> None:
        """Search until each collection is found, or to the topic's start; KafkaError if Kafka fails."""
        sources = [TopicPartition(topic, partition) for partition in range(partitions)]
        async with assigned_consumer(cluster, sources) as consumer:
            consumer.pause(*sources)  # else requests wait behind an idle fetch
            await self._search(consumer, sources, time.time())

    async def _search(
        self, consumer: AIOKafkaConsumer, sources: Sequence[TopicPartition], now: float
    ) -> None:
        """Step back in time. A clock unlike the broker's only changes the first step."""
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
            self._drop_found(since_ms)
            seconds *= 2

    async def _read(self, consumer: AIOKafkaConsumer, source: TopicPartition, first: int, stop: int) -> None:
        """Read the offsets [first, stop) of one partition."""
        consumer.seek(source, first)
        consumer.resume(source)
        while await consumer.position(source) < stop:
            await asyncio.sleep(0)  # getmany never yields while records are buffered
            batches = await consumer.getmany(
                source, timeout_ms=POLL_MILLISECONDS, max_records=RECORDS_PER_POLL
            )
            records = [each for each in batches.get(source, ()) if each.offset < stop and self._wants(each)]
            await self.latest.take_all(source, records, self.show)
        consumer.pause(source)

    def _wants(self, record: KafkaRecord) -> bool:
        return (record.key or b"").split(b"/")[0].decode(errors="replace") in self.missing

    def _drop_found(self, since_ms: int) -> None:
        """Drop found collections; all records since then, unix milliseconds, are read (0: the topic)."""
        self.missing = {name for name in self.missing if since_ms and self._needed_ms(name) < since_ms}
        self.latest.sought &= self.missing

    def _needed_ms(self, name: str) -> int:
        """Append time back to which all must be read to prove the newest window found is the newest."""
        newest = self.latest.newest.get(name)
        if newest is None:
            return -1
        return min(self.latest.appended_ms.get(name, -1), (newest.window_end - EARLY_SECONDS) * 1000)
