"""A real broker: what the producer sends is what the topic holds, and what is wrong is said clearly."""

import itertools
import re
import socket
import subprocess
import sys
import time

import pytest
from kafka import KafkaConsumer
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition

from estimators.collection import Collection
from estimators.krr import KRR
from estimators.rappor import Rappor
from producers.connection import DeliveryError
from producers.producer import Producer
from producers.wire import bit_rows, decode, encode, partition_of

PARTITIONS = 3
CARRIER = Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True)
DESTINATION = Collection("destination", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), memoize=True)
EVENT = 1_767_225_633.25


@pytest.fixture
def topic(broker, topic_prefix):
    """A topic that keeps the senders' timestamps, so that the test sees all that left."""
    name = f"{topic_prefix}reports"
    admin = KafkaAdminClient(bootstrap_servers=broker)
    admin.create_topics({name: {"num_partitions": PARTITIONS, "replication_factor": 1}})
    yield name
    admin.delete_topics([name])
    admin.close()


def read(broker, topic):
    """All records of a topic, from its start to its end now."""
    consumer = KafkaConsumer(bootstrap_servers=broker, enable_auto_commit=False)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    ends = consumer.end_offsets(partitions)
    records = []
    deadline = time.monotonic() + 30
    while any(consumer.position(each) < ends[each] for each in partitions):
        assert time.monotonic() < deadline, "the topic could not be read to its end"
        records += itertools.chain.from_iterable(consumer.poll(timeout_ms=200).values())
    consumer.close()
    return records


@pytest.mark.broker
def test_what_is_sent_is_what_the_topic_holds(broker, topic, tmp_path):
    clients = [f"client-{number}" for number in range(3000)]
    with Producer([CARRIER, DESTINATION], broker, topic, PARTITIONS, tmp_path, pack_reports=100) as producer:
        producer.report("carrier", ["AA", "B6", "ZZ"] * 1000, at=EVENT)
        producer.report("destination", ["JFK"] * 3000, clients, at=EVENT)
        producer.flush()
        counters = producer.counters()
    records = read(broker, topic)
    packs = [decode(record.value) for record in records]
    assert counters.reports == {"carrier": 3000, "destination": 3000}
    assert (counters.packs, counters.dropped, counters.failed) == (len(records), 0, 0)
    assert counters.bytes == sum(len(record.value) for record in records)
    for collection in (CARRIER, DESTINATION):
        own = [pack for pack in packs if pack.fingerprint == collection.fingerprint]
        assert sum(pack.reports for pack in own) == 3000
        assert {pack.window_start for pack in own} == {1_767_225_600}
    assert len({pack.pack_id for pack in packs}) == len(packs)
    assert {pack.cohort for pack in packs if pack.mechanism == 2} == set(range(8))
    assert sum(bit_rows(pack).shape[0] for pack in packs if pack.mechanism == 2) == 3000


@pytest.mark.broker
def test_nothing_but_the_pack_is_in_the_log(broker, topic, tmp_path):
    """No key, no header, no compression, no clock: the only time is the start of the window."""
    with Producer([DESTINATION], broker, topic, PARTITIONS, tmp_path) as producer:
        producer.report("destination", ["canary-7391"] * 5000, ["client-5519"] * 5000, at=EVENT)
    records = read(broker, topic)
    assert len(records) == 5
    for record in records:
        assert record.key is None
        assert record.headers == []
        assert record.timestamp == 1_767_225_600_000
        assert encode(decode(record.value)) == record.value
        assert record.partition == partition_of(decode(record.value).pack_id, PARTITIONS)
        assert b"7391" not in record.value
        assert b"5519" not in record.value


@pytest.mark.broker
def test_a_topic_with_another_number_of_partitions_is_refused(broker, topic, tmp_path):
    with pytest.raises(DeliveryError, match=rf"^topic {topic} must have 4 partitions, got 3$"):
        Producer([CARRIER], broker, topic, 4, tmp_path)


@pytest.mark.broker
def test_an_absent_topic_is_refused(broker, topic_prefix, tmp_path, monkeypatch):
    monkeypatch.setattr("producers.connection.METADATA_MILLISECONDS", 500)
    with pytest.raises(DeliveryError, match=rf"^topic {topic_prefix}none cannot be found: \w+$"):
        Producer([CARRIER], broker, f"{topic_prefix}none", 4, tmp_path)


ABSENT = """
import sys
from pathlib import Path
from producers.connection import DeliveryError
from producers.producer import Producer

try:
    Producer([], sys.argv[1], "reports", 4, Path(sys.argv[2]), connect_seconds=0.5)
except DeliveryError as error:
    print(error)
"""


def test_an_absent_broker_is_named(tmp_path):
    """In a process of its own: kafka-python leaves the sockets of refused connections open."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [sys.executable, "-W", "ignore", "-c", ABSENT, address, str(tmp_path)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert re.fullmatch(rf"no Kafka broker answers at {address}: \w+\n", run.stdout)
