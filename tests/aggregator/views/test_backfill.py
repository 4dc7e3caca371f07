"""Backfill finds the newest estimate of every collection, at any age and in any partition."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from structlog.testing import capture_logs

from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.views import backfill
from deniable.aggregator.views.backfill import Backfill
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.cluster.reading import consumer
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import FRUIT, NOWHERE, PLACE, T0, MemoryRecord, changed, estimate_of

NOW = T0 + 700_000.0
DAY = 86_400
FORMER = replace(FRUIT, mechanism=KRR.from_epsilon(4, 1.0))


class Topic:
    """Two partitions in memory, each with a marker after every record; records the offsets that were read."""

    def __init__(self) -> None:
        self.partitions: dict[int, list[MemoryRecord]] = {0: [], 1: []}
        self.given: list[tuple[int, int]] = []

    def append(self, partition: int, age_seconds: int, record: EstimateRecord | None = None) -> None:
        """Append an estimate, by default of an unknown collection, of this age at NOW."""
        estimate = record or stranger()
        log = self.partitions[partition]
        value = encode_estimate(estimate)
        log.append(MemoryRecord(2 * len(log), int((NOW - age_seconds) * 1000), estimate.key, value))

    def consumer(self, **_: object) -> "Consumer":
        return Consumer(self)

    def search(self, latest: EstimateHistory) -> list[EstimateRecord]:
        """Search for fruit and place; return the estimates shown."""
        shown: list[EstimateRecord] = []

        async def run() -> None:
            async with asyncio.timeout(20):
                await Backfill(latest, ["fruit", "place"], shown.append).run(NOWHERE, "estimates", 2)

        asyncio.run(run())
        return shown


class Consumer:
    """The part of aiokafka's consumer that backfill uses."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.start = self.stop = lambda: asyncio.sleep(0)
        self.assign = self.pause = self.resume = lambda *_: None
        self._client = SimpleNamespace()
        self.places: dict[int, int] = {}

    async def end_offsets(self, sources: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {source: 2 * len(self.topic.partitions[source.partition]) for source in sources}

    async def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, Any]:
        logs = self.topic.partitions
        return {
            source: next((r for r in logs[source.partition] if r.timestamp >= since_ms), None)
            for source, since_ms in times.items()
        }

    def seek(self, source: TopicPartition, offset: int) -> None:
        self.places[source.partition] = offset

    async def position(self, source: TopicPartition) -> int:
        return self.places[source.partition]

    async def getmany(
        self, source: TopicPartition, timeout_ms: int, max_records: int
    ) -> dict[TopicPartition, list[MemoryRecord]]:
        place = self.places[source.partition]
        log = self.topic.partitions[source.partition]
        found = [record for record in log if record.offset >= place][:max_records]
        self.places[source.partition] = found[-1].offset + 2 if found else place + 1
        self.topic.given += [(source.partition, record.offset) for record in found]
        return {source: found}


@cache
def stranger() -> EstimateRecord:
    """An estimate of an unknown collection."""
    return changed(estimate_of(), collection="stranger", fingerprint="0" * 16)


@cache
def ended(age_seconds: int, collection: Collection = FRUIT) -> EstimateRecord:
    """An estimate of a window that ended this long before NOW, a multiple of 10 s."""
    end = int(NOW) - age_seconds
    return changed(estimate_of(collection), window_start=end - 10, window_end=end)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    topic = Topic()
    monkeypatch.setattr(consumer, "AIOKafkaConsumer", topic.consumer)
    monkeypatch.setattr(backfill, "time", SimpleNamespace(time=lambda: NOW))
    monkeypatch.setattr(backfill, "RECORDS_PER_POLL", 7)
    return topic


def test_rare_collection_is_found_behind_many_others(topic: Topic) -> None:
    """A day old, followed by hundreds of records; much older records are not read."""
    old, newest = estimate_of(), ended(DAY + 30)
    topic.append(0, 6 * DAY, old)
    topic.append(0, DAY, newest)
    for age in range(600, 0, -1):
        topic.append(age % 2, age)
    topic.append(1, 1, ended(10, PLACE))
    latest = EstimateHistory([FRUIT, PLACE])
    shown = topic.search(latest)
    assert latest.newest == {"fruit": newest, "place": ended(10, PLACE)}
    assert shown == [ended(10, PLACE), newest]
    assert latest.sought == set()
    assert (0, 0) not in topic.given


def test_newest_estimate_wins_at_any_depth(topic: Topic) -> None:
    """Partitions are read back to the same time, not to the same depth."""
    older, newest = changed(estimate_of(), window_start=T0 - 10), estimate_of()
    topic.append(0, 2000, older)
    topic.append(1, 1000, newest)
    for age in range(900, 0, -1):
        topic.append(1, age)
    topic.append(1, 1, estimate_of(PLACE))
    latest = EstimateHistory([FRUIT, PLACE])
    topic.search(latest)
    assert latest.newest["fruit"] == newest


def test_late_final_estimate_does_not_end_the_search(topic: Topic) -> None:
    """The later window got no more reports, and many other estimates follow its own."""
    topic.append(1, 1000, ended(1010))
    for age in range(900, 0, -1):
        topic.append(1, age)
    topic.append(0, 100, changed(ended(1020), final=True))
    latest = EstimateHistory([FRUIT, PLACE])
    topic.search(latest)
    assert latest.newest["fruit"] == ended(1010)


def test_older_known_estimate_does_not_end_the_search(topic: Topic) -> None:
    """Following starts a fixed number of records back, which in a quiet partition is long ago."""
    older, newest = changed(estimate_of(), window_start=T0 - 10), estimate_of()
    latest = EstimateHistory([FRUIT, PLACE])
    topic.append(0, 2000, older)
    asyncio.run(latest.take_all(TopicPartition("estimates", 0), topic.partitions[0], lambda _: None))
    topic.append(1, 1000, newest)
    for age in range(900, 0, -1):
        topic.append(1, age)
    topic.append(1, 1, estimate_of(PLACE))
    topic.search(latest)
    assert latest.newest["fruit"] == newest


def test_absent_collection_ends_the_search(topic: Topic) -> None:
    """The whole topic is read; an estimate under previous parameters is shown, but never the newest."""
    for age in range(1000, 0, -10):
        topic.append(0, age)
    topic.append(0, 1, estimate_of(PLACE))
    topic.append(1, 5, estimate_of(FORMER))
    latest = EstimateHistory([FRUIT, PLACE])
    assert latest.sought == {"fruit", "place"}
    assert topic.search(latest) == [estimate_of(PLACE), estimate_of(FORMER)]
    assert latest.newest == {"place": estimate_of(PLACE)}
    assert latest.sought == set()
    assert len(set(topic.given)) == 102
    assert len(topic.given) < 200  # each once, plus the rest of each batch


def test_empty_topic_ends_the_search(topic: Topic) -> None:
    latest = EstimateHistory([FRUIT, PLACE])
    assert topic.search(latest) == []
    assert latest.sought == set()


@pytest.mark.slow
def test_found_collections_are_not_decoded(topic: Topic) -> None:
    """Minutes older than each newest record, only records of missing collections are decoded."""
    topic.append(0, DAY, estimate_of())
    for age in range(5000, 0, -50):
        topic.append(1, age, ended(age + 30 - age % 10, PLACE))
    latest = EstimateHistory([FRUIT, PLACE])
    shown = topic.search(latest)
    names = [each.collection for each in shown]
    assert names[-1] == "fruit"
    assert names.count("place") == len(names) - 1 < 12  # out of 100


def test_unreadable_record_of_ours_is_skipped(topic: Topic) -> None:
    topic.append(0, 10, estimate_of())
    topic.partitions[0].append(MemoryRecord(2, int(NOW * 1000), b"fruit/7", b"no estimate"))
    latest = EstimateHistory([FRUIT, PLACE])
    with capture_logs() as lines:
        assert topic.search(latest) == [estimate_of()]
    assert lines == []  # the follower of the topic logs it
