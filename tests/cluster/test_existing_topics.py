"""No client creates a topic on a broker that creates topics for whoever asks about one."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, suppress
from types import FunctionType

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka import client as aiokafka_client
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from kafka import KafkaAdminClient, OffsetSpec
from kafka import TopicPartition as Source
from kafka.errors import KafkaError as PythonKafkaError

from deniable.cluster.cluster import Cluster
from deniable.cluster.existing_topics import of_aiokafka
from deniable.cluster.existing_topics.of_aiokafka import create_no_topics_here
from deniable.cluster.reading.consumer import assigned_consumer
from deniable.cluster.topics.checks import TopicSetupError, require_reports
from deniable.cluster.topics.plan import plan
from deniable.deploy.cluster.topics import log_identity, setup
from deniable.edge.sending.kafka_session import KafkaSession, SessionError
from deniable.producers.errors import MissingTopicError
from deniable.producers.transport.connection import connect
from deniable.protocol.topic_names import Topics
from deniable.relay.service.group import RelayGroup
from tests.support.brokers.broker_with import BrokerWith
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.slow]
SECONDS = 3.0


@pytest.fixture(scope="module")
def generous(kafka_jars: None) -> Iterator[str]:
    """Bootstrap servers of a broker that creates topics by itself."""
    with BrokerWith("auto.create.topics.enable=true") as broker:
        yield broker.bootstrap_servers


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aiokafka as it was imported: a command that another test has run here may have changed the class."""
    original = FunctionType(of_aiokafka._ask.__code__, vars(aiokafka_client))
    monkeypatch.setattr(AIOKafkaClient, "_metadata_update", original)


@pytest.fixture
def topics(topic_prefix: str) -> Topics:
    return Topics(topic_prefix, 2, takes_uploads=True)


def created(servers: str, topics: Topics) -> list[str]:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        return sorted(name for name in admin.list_topics() if name.startswith(topics.prefix))


def test_a_client_that_may_create_topics_would_be_noticed(generous: str, topics: Topics) -> None:
    async def ask() -> None:
        async with AIOKafkaProducer(bootstrap_servers=generous) as producer:
            await producer.client.set_topics([topics.uploads])

    asyncio.run(ask())
    assert wait_until(lambda: created(generous, topics) == [topics.uploads], 60)


def test_an_edge_creates_no_topic(generous: str, topics: Topics) -> None:
    with pytest.raises(SessionError, match="does not exist: run deniable topics create"):
        asyncio.run(KafkaSession.open(Cluster(generous), topics.uploads, topics.partitions))
    assert created(generous, topics) == []


def test_readers_create_no_topic(generous: str, topics: Topics) -> None:
    async def read() -> None:
        source = TopicPartition(topics.estimates, 0)
        async with assigned_consumer(Cluster(generous), [source]) as consumer:
            with suppress(TimeoutError, KafkaError):
                async with asyncio.timeout(SECONDS):
                    await consumer.getone()

    asyncio.run(read())
    assert created(generous, topics) == []


def test_producers_checks_and_administrators_create_no_topic(
    generous: str, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_identity, "READ_SECONDS", SECONDS)
    cluster = Cluster(generous)
    with pytest.raises(MissingTopicError), closing(connect(cluster, topics.reports, 2, 60.0)):
        pass
    with pytest.raises(TopicSetupError):
        require_reports(cluster, topics)
    assert {each.what.partition(" is ")[2] for each in setup.check(cluster, topics)} == {"absent"}
    with suppress(PythonKafkaError):
        log_identity.notes(cluster, topics, 2, None)
    with KafkaAdminClient(bootstrap_servers=generous) as admin, suppress(PythonKafkaError):
        admin.list_partition_offsets({Source(topics.reports, 0): OffsetSpec.LATEST}, timeout_ms=3000)
    assert created(generous, topics) == []


def test_workers_and_relays_create_no_topic(generous: str, topics: Topics) -> None:
    """Their libraries create clients, in a process of ours."""
    create_no_topics_here()
    cluster = Cluster(generous)

    async def work() -> None:
        async with AIOKafkaProducer(bootstrap_servers=generous) as producer:  # as ledgers do
            await producer.client.set_topics([topics.state])
        async with AIOKafkaConsumer(bootstrap_servers=generous) as consumer:  # as Faust does
            await consumer._client.set_topics([topics.reports])
        group = RelayGroup(cluster, topics.uploads, topics.relay_group)
        await group.start()
        await group.stop()

    asyncio.run(work())
    assert created(generous, topics) == []


def test_all_topics_have_the_planned_partitions_where_brokers_create_some(
    generous: str, topics: Topics
) -> None:
    assert setup.create(Cluster(generous), topics, None) == sorted(each.name for each in plan(topics))
    assert setup.check(Cluster(generous), topics) == []
