"""Workers publish the newest collection file, and count on where they cannot."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest
from kafka import KafkaAdminClient
from structlog.testing import capture_logs

from deniable.aggregator.topics import collection_publisher
from deniable.aggregator.topics.collection_publisher import CollectionPublisher, changes
from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.partition_reader import read_rows
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.protocol.publication import Publication, encode_publication, publication_of, readable
from tests.support.processes import wait_until

PLAN = Collection("plan", KRR.from_epsilon(3, 1.0))
SIZE = Collection("size", KRR.from_epsilon(9, 1.0))


def file(revision: int, *collections: Collection) -> dict[str, Publication]:
    return {each.name: publication_of(each, revision, len(collections)) for each in collections}


def test_only_missing_and_differing_records_are_written() -> None:
    own = file(2, PLAN, SIZE)
    assert changes(own, own) == {}
    assert changes(own, {}) == {name: encode_publication(each)[1] for name, each in own.items()}
    other = file(2, replace(PLAN, window_seconds=5), SIZE)
    assert set(changes(own, other)) == {"plan"}


def test_newer_file_replaces_and_deletes_records_of_older_ones() -> None:
    new = file(2, PLAN)
    written = changes(new, file(1, PLAN, SIZE))
    assert written == {"plan": encode_publication(new["plan"])[1], "size": None}


def test_worker_with_an_older_file_writes_nothing() -> None:
    assert changes(file(1, PLAN, SIZE), file(2, PLAN)) == {}


@pytest.mark.slow
def test_an_outage_is_no_reason_to_create_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection_publisher, "BOOTSTRAP_MILLISECONDS", 100)
    monkeypatch.setattr(collection_publisher, "WAIT_SECONDS", 0.01)
    publisher = CollectionPublisher(Cluster("127.0.0.1:9"), "collections", [PLAN], 1)
    asked: list[int] = []

    async def work() -> None:
        running = asyncio.create_task(publisher.run(lambda: asked.append(1) is None))
        assert await asyncio.to_thread(wait_until, lambda: len(asked) > 2, 60)
        running.cancel()

    with capture_logs() as lines:
        asyncio.run(work())
    assert lines == []


@pytest.mark.broker
def test_published_collections_are_read_back(broker: str, topic_prefix: str) -> None:
    topic = f"{topic_prefix}collections"
    newer = CollectionPublisher(Cluster(broker), topic, [PLAN], 2)
    older = CollectionPublisher(Cluster(broker), topic, [PLAN, SIZE], 1)

    async def published() -> dict[str, Publication]:
        return readable(await read_rows(Cluster(broker), topic, 0))

    assert asyncio.run(newer.publish()) == f"topic {topic} is absent"
    with KafkaAdminClient(bootstrap_servers=broker) as admin:
        assert topic not in admin.list_topics()
        admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1}})
    # A new topic has no leader for a moment.
    assert wait_until(lambda: asyncio.run(older.publish()) == "", 60)

    async def work() -> None:
        assert await published() == file(1, PLAN, SIZE)
        assert await newer.publish() == ""
        assert await older.publish() == ""
        assert await published() == file(2, PLAN)

    asyncio.run(work())


@pytest.mark.broker
def test_absent_topic_is_reported_once_and_published_to_later(broker: str, topic_prefix: str) -> None:
    topic, counts = f"{topic_prefix}collections", False
    publisher = CollectionPublisher(Cluster(broker), topic, [PLAN], 1)

    async def work() -> None:
        nonlocal counts
        running = asyncio.create_task(publisher.run(lambda: counts, 0.1))
        await asyncio.sleep(0.5)
        assert lines == []
        counts = True
        assert await asyncio.to_thread(wait_until, lambda: lines, 60)
        await asyncio.sleep(1)
        with KafkaAdminClient(bootstrap_servers=broker) as admin:
            admin.create_topics({topic: {"num_partitions": 2, "replication_factor": 1}})
        for _ in range(100):
            await asyncio.sleep(0.1)
            if readable(await read_rows(Cluster(broker), topic, 0)) == file(1, PLAN):
                break
        else:
            pytest.fail("nothing is published")
        running.cancel()

    with capture_logs() as lines:
        asyncio.run(work())
    # A new topic has no leader for a moment, and a busy broker does not answer: that is reported, too.
    assert topic in lines[0]["reason"]
    assert all(former["reason"] != each["reason"] for former, each in pairwise(lines))
    assert "deniable topics create" in lines[0]["remedy"]
