"""Markers are appended with the leader's word, once for each end of a window, and never for nothing."""

import asyncio
import gc
import socket
import time
from collections.abc import Callable, Sequence

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from structlog.testing import capture_logs

from deniable.aggregator.topics import markers as markers_module
from deniable.aggregator.topics.markers import MARKERS, Markers
from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage
from deniable.protocol.marker import MARKER
from deniable.protocol.topic_names import Topics
from tests.support.aggregator.builders import NOWHERE
from tests.support.processes import wait_until

PARTITIONS = 2
DEADLINE_SECONDS = 60.0
OUTAGE = Outage(NOWHERE, "counting waits")


@pytest.fixture
def topics(broker: str, topic_prefix: str) -> Topics:
    found = Topics(topic_prefix, PARTITIONS)
    configs = {"message.timestamp.type": "LogAppendTime"}
    with KafkaAdminClient(bootstrap_servers=broker) as admin:
        admin.create_topics(
            {found.reports: {"num_partitions": PARTITIONS, "replication_factor": 1, "configs": configs}}
        )
    return found


def appended(broker: str, topics: Topics) -> list[list[tuple[bytes, int]]]:
    """Values and append times by partition."""
    sources = [TopicPartition(topics.reports, each) for each in range(PARTITIONS)]
    found: dict[int, list[tuple[bytes, int]]] = {each: [] for each in range(PARTITIONS)}
    with KafkaConsumer(bootstrap_servers=broker, group_id=None) as consumer:
        consumer.assign(sources)
        ends = consumer.end_offsets(sources)
        consumer.seek_to_beginning()
        while any(consumer.position(each) < ends[each] for each in sources):
            for source, records in consumer.poll(100).items():
                found[source.partition] += [(record.value, record.timestamp) for record in records]
    return list(found.values())


async def run(markers: Markers, asks: Sequence[Callable[[], dict[int, int]]]) -> None:
    """Ask one after the other, each time until everything is acknowledged."""
    running = asyncio.create_task(markers.run())
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            for each in asks:
                markers.ask(each())
                while markers._waiting:  # noqa: ASYNC110 (it has no event)
                    await asyncio.sleep(0.01)
    finally:
        running.cancel()
        await asyncio.wait([running])


@pytest.mark.broker
def test_a_partition_gets_one_marker_for_an_end(broker: str, topics: Topics) -> None:
    """With an append time beyond it; the next end gets another one."""
    markers, before = Markers(Cluster(broker), topics, OUTAGE), int(time.time() * 1000)
    asks = [dict[int, int], lambda: {0: before - 1}, lambda: {0: before - 1}, lambda: {0: before - 2}]
    asks.append(lambda: {0: markers._appended[0].append_ms - 1, 1: 0})
    asyncio.run(run(markers, asks))
    (one,), (other,) = appended(broker, topics)
    assert (one[0], other[0]) == (MARKER, MARKER)
    assert one[1] >= before


@pytest.mark.broker
def test_an_end_that_a_broker_has_not_reached_is_asked_for_again_later(broker: str, topics: Topics) -> None:
    """A machine's clock is ahead: no marker a second time before the broker's has moved on."""
    markers = Markers(Cluster(broker), topics, OUTAGE)
    asyncio.run(run(markers, [lambda: {0: int(time.time() * 1000) + 3_600_000}] * 3))
    assert [len(each) for each in appended(broker, topics)] == [1, 0]
    assert markers._due_at(0, markers._appended[0].append_ms + 5000) == markers._appended[0].at + 5


def test_an_outage_is_one_line_and_what_was_asked_for_stays_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markers_module, "RETRY_SECONDS", 0.01)
    markers = Markers(NOWHERE, Topics("test-", PARTITIONS), OUTAGE)

    async def wait() -> None:
        running = asyncio.create_task(markers.run())
        markers.ask({0: 1})
        await asyncio.sleep(0.3)
        running.cancel()
        await asyncio.wait([running])

    with capture_logs() as lines:
        asyncio.run(wait())
    assert [line["log_level"] for line in lines] == ["warning"]
    assert markers._due_at(0, 1) == 0


def test_an_outage_ends_when_no_marker_is_needed_any_more() -> None:
    outage = Outage(NOWHERE, "counting waits")
    markers = Markers(NOWHERE, Topics("test-", PARTITIONS), outage)
    outage.failed(MARKERS, TimeoutError())
    markers.append(0, MARKER)
    markers.ask({})
    assert wait_until(lambda: outage._is_logged)
    assert outage.cause  # one is still on its way
    markers._waiting.clear()
    with capture_logs() as lines:
        markers.ask({})
    assert (outage.cause, lines[-1]["log_level"]) == ("", "info")


@pytest.mark.filterwarnings("error:(?s).*AIOKafka:pytest.PytestUnraisableExceptionWarning")
def test_a_worker_that_ends_while_kafka_is_silent_leaves_no_client() -> None:
    async def work(port: int) -> None:
        markers = Markers(Cluster(f"127.0.0.1:{port}"), Topics("test-", PARTITIONS), OUTAGE)
        running = asyncio.create_task(markers.run())
        markers.ask({0: 1})
        await asyncio.sleep(0.3)
        running.cancel()
        await asyncio.wait([running])

    with socket.create_server(("127.0.0.1", 0)) as silent:
        asyncio.run(work(silent.getsockname()[1]))
    gc.collect()
