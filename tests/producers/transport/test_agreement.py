"""A producer learns from Kafka whether the workers count its parameters, and works on if it cannot."""

import logging
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.publication_reader import PublicationReader, UnreadableError
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.transport.agreement import Agreement, disagreements
from deniable.producers.transport.connection import Connection, connect
from deniable.protocol.publication import encode_publication, publication_of
from tests.support.brokers.log_lines import messages
from tests.support.producers.questions import CARRIER, LATENCY

pytestmark = pytest.mark.broker

OTHER = replace(CARRIER, mechanism=KRR.from_epsilon(4, 2.0))
AT_ONCE = ProducerTiming(comparison=1e-6)


class Published:
    """A topic `collections`, and a producer's connection."""

    def __init__(self, broker: str, prefix: str) -> None:
        self.broker = broker
        self.topic = f"{prefix}collections"
        self.create(f"{prefix}reports")
        self.connection: Connection = connect(Cluster(broker), f"{prefix}reports", 1, 20.0)

    def create(self, topic: str) -> None:
        with KafkaAdminClient(bootstrap_servers=self.broker) as admin:
            admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}})

    def write(self, *collections: Collection, revision: int = 1) -> None:
        records = [
            encode_publication(publication_of(each, revision, len(collections))) for each in collections
        ]
        self.write_raw(*records)

    def write_raw(self, *records: tuple[bytes, bytes | None]) -> None:
        with KafkaProducer(bootstrap_servers=self.broker) as kafka:
            for key, value in records:
                kafka.send(self.topic, key=key, value=value, partition=0).get(30)


@pytest.fixture
def published(broker: str, topic_prefix: str) -> Iterator[Published]:
    made = Published(broker, topic_prefix)
    yield made
    made.connection.close(timeout=1)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Our own: Kafka's client reports a topic that was just created as missing."""
    ours = [each for each in caplog.records if each.name.startswith("deniable.")]
    return [each.getMessage() for each in ours if each.levelno >= logging.ERROR]


def test_absent_topic_is_one_line_and_stays_absent(
    published: Published, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    agreement = Agreement([CARRIER], published.topic, AT_ONCE)
    caplog.clear()
    for _ in range(3):
        agreement.compare(published.connection.manager)
    (shown,) = messages(caplog)
    assert published.topic in shown
    assert agreement.differing == {}
    assert agreement.headers(CARRIER.fingerprint) == [("collection", b"carrier")]


def test_differences_are_logged_when_they_change(
    published: Published, caplog: pytest.LogCaptureFixture
) -> None:
    published.create(published.topic)
    agreement, manager = Agreement([CARRIER, LATENCY], published.topic, AT_ONCE), published.connection.manager
    agreement.compare(manager)
    assert (agreement.differing, agreement.headers(CARRIER.fingerprint)) == ({}, [("collection", b"carrier")])
    published.write(OTHER, LATENCY)
    for _ in range(3):
        agreement.compare(manager)
    assert {name: [str(each)] for name, each in agreement.differing.items()} == {"carrier": errors(caplog)}
    assert agreement.headers(CARRIER.fingerprint) == [("collection", b"carrier")]
    assert agreement.headers(LATENCY.fingerprint) == []
    assert agreement.headers(1) == []
    published.write(CARRIER, LATENCY, revision=2)
    agreement.compare(manager)
    assert (agreement.differing, agreement.headers(CARRIER.fingerprint)) == ({}, [])
    assert len(errors(caplog)) == 1


def test_collection_that_workers_lack_is_named_once_all_are_known(published: Published) -> None:
    published.create(published.topic)
    reader, manager = PublicationReader(published.topic, 20.0), published.connection.manager
    complete = publication_of(LATENCY, 1, 2), publication_of(OTHER, 1, 2)
    published.write_raw(encode_publication(complete[0]))
    assert disagreements([CARRIER], reader.read(manager)) == {}
    published.write_raw(encode_publication(complete[1]), (b"foreign", b"\xff"))
    assert set(disagreements([CARRIER], reader.read(manager))) == {"carrier"}
    published.write_raw((b"carrier", None), encode_publication(publication_of(LATENCY, 2, 1)))
    assert set(disagreements([CARRIER], reader.read(manager))) == {"carrier"}


def test_recreated_topic_is_read_from_its_start(published: Published) -> None:
    published.create(published.topic)
    reader, manager = PublicationReader(published.topic, 20.0), published.connection.manager
    published.write(OTHER, LATENCY)
    assert set(reader.read(manager)) == {"carrier", "latency"}
    with KafkaAdminClient(bootstrap_servers=published.broker) as admin:
        admin.delete_topics([published.topic])
        deadline = time.monotonic() + 60
        while published.topic in admin.list_topics():
            assert time.monotonic() < deadline
    with pytest.raises(UnreadableError):
        reader.read(manager)
    published.create(published.topic)
    published.write(CARRIER)
    assert list(reader.read(manager)) == ["carrier"]


def test_agreement_is_asked_for_once_a_minute(published: Published) -> None:
    published.create(published.topic)
    agreement = Agreement([CARRIER], published.topic)
    agreement.compare(published.connection.manager)
    published.write(OTHER)
    agreement.compare(published.connection.manager)
    assert agreement.differing == {}


def test_closed_connection_is_no_failure_and_the_next_one_is_used(
    published: Published, caplog: pytest.LogCaptureFixture
) -> None:
    published.create(published.topic)
    published.write(OTHER)
    agreement = Agreement([CARRIER], published.topic, AT_ONCE)
    published.connection.close(timeout=1)
    agreement.compare(published.connection.manager)
    assert agreement.differing == {}
    assert errors(caplog) == []
    reports = published.topic.replace("collections", "reports")
    published.connection = connect(Cluster(published.broker), reports, 1, 20.0)
    agreement.compare(published.connection.manager)
    assert list(agreement.differing) == ["carrier"]
    assert len(errors(caplog)) == 1
