"""A real broker: the topic holds exactly the sent reports, and faults are reported clearly."""

import re
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from kafka.errors import KafkaError

from deniable.cluster.cluster import Cluster
from deniable.config.settings.allowance import Allowance
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError, MissingTopicError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.producer import Producer
from deniable.producers.transport.connection import connect
from deniable.protocol.wire import bit_rows, decode, encode, partition_of
from tests.support.producers.topics import make_topic, read

PARTITIONS = 3
CARRIER = Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True)
DESTINATION = Collection("destination", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), memoize=True)
EVENT = 1_767_225_633.25
# The grace accepts windows of any time.
FREE = tuple(Allowance(replace(each, grace_seconds=10**10), None) for each in (CARRIER, DESTINATION))


@pytest.fixture
def topic(broker, topic_prefix):
    """A topic that keeps the producer's timestamps, so tests see all that was sent."""
    with make_topic(broker, f"{topic_prefix}reports", PARTITIONS) as name:
        yield name


@pytest.fixture
def config(broker, topic, tmp_path):
    def make(**options):
        given = {
            "allowances": FREE,
            "bootstrap_servers": broker,
            "topic": topic,
            "partitions": PARTITIONS,
            "data_dir": tmp_path,
            "block_milliseconds": 60_000,
        }
        return ProducerConfig(**given | options)

    return make


@pytest.mark.contract
@pytest.mark.broker
def test_topic_has_exactly_the_sent_reports(broker, topic, config):
    with Producer(config(pack_reports=100)) as producer:
        producer.report("carrier", ["AA", "B6", "ZZ"] * 1000, None, at=EVENT)
        producer.report("destination", ["JFK"] * 3000, None, at=EVENT)
        producer.flush()
        counters = producer.counters()
    records = read(broker, topic)
    packs = [decode(record.value) for record in records]
    assert counters.acknowledged == counters.stored == {"carrier": 3000, "destination": 3000}
    assert (counters.packs, counters.dropped, counters.expired) == (len(records), {}, {})
    assert counters.bytes == sum(len(record.value) for record in records)
    for collection in (CARRIER, DESTINATION):
        own = [pack for pack in packs if pack.fingerprint == collection.fingerprint]
        assert sum(pack.reports for pack in own) == 3000
        assert {pack.window_start for pack in own} == {1_767_225_600}
    assert len({pack.pack_id for pack in packs}) == len(packs)
    assert {pack.cohort for pack in packs if pack.mechanism == 2} == set(range(8))
    assert sum(bit_rows(pack).shape[0] for pack in packs if pack.mechanism == 2) == 3000


@pytest.mark.broker
def test_log_has_only_the_packs(broker, topic, config):
    """Records have no key, header or compression; their only time is the start of the window."""
    with Producer(config()) as producer:
        producer.report("destination", ["JFK"] * 5000, None, at=EVENT)
    records = read(broker, topic)
    assert len(records) >= 5
    for record in records:
        assert record.key is None
        assert record.headers == []
        assert record.timestamp == 1_767_225_600_000
        assert encode(decode(record.value)) == record.value
        assert record.partition == partition_of(decode(record.value).pack_id, PARTITIONS)


@pytest.mark.contract
@pytest.mark.broker
def test_append_time_past_the_grace_is_counted_as_expired(broker, topic_prefix, config):
    """The topic as deployed: the broker sets the append time."""
    name = f"{topic_prefix}appended"
    with (
        make_topic(broker, name, PARTITIONS, {"message.timestamp.type": "LogAppendTime"}),
        Producer(config(topic=name, allowances=(Allowance(CARRIER, None),))) as producer,
    ):
        producer.report("carrier", ["AA"] * 5, None, at=time.time() - 200)
        producer.report("carrier", ["AA"] * 7, None)
        producer.flush()
        assert producer.counters().acknowledged == {"carrier": 12}
        assert producer.counters().expired == {"carrier": 5}


@pytest.mark.broker
def test_wrong_partition_count_sends_nothing(broker, topic, config):
    producer = Producer(config(partitions=4))
    assert producer.report("carrier", ["AA"] * 5, None) == Receipt(stored=5)
    for call in (producer.flush, producer.close):
        with pytest.raises(DeliveryError, match=topic):
            call()
    assert read(broker, topic) == []
    # With the right settings, the next producer sends the stored packs.
    Producer(config()).close()
    assert sum(decode(record.value).reports for record in read(broker, topic)) == 5


@pytest.mark.broker
def test_absent_topic_is_named(broker, topic_prefix):
    missing = rf"^topic {topic_prefix}none does not exist; create it: deniable topics create$"
    with pytest.raises(MissingTopicError, match=missing):
        connect(Cluster(broker), f"{topic_prefix}none", 4, 10.0)


def use(config):
    with Producer(config) as producer:
        assert producer.report("carrier", ["AA"] * 5, None) == Receipt(stored=5)
        producer.flush()


@pytest.mark.broker
def test_absent_topic_fails_early_and_keeps_reports(broker, topic_prefix, config, tmp_path):
    """Within seconds, as one error and one log line; the reports are sent once the topic exists."""
    absent, began = f"{topic_prefix}later", time.monotonic()
    with pytest.raises(DeliveryError) as caught:
        use(config(topic=absent, partitions=2))
    assert time.monotonic() - began < 15
    assert f"topic {absent} " in str(caught.value)
    assert caught.value.__context__ is None
    with make_topic(broker, absent, 2):
        Producer(config(topic=absent, partitions=2)).close()
        assert sum(decode(record.value).reports for record in read(broker, absent)) == 5


AWAY = """
import sys, time
from pathlib import Path
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.config.settings.allowance import Allowance
from deniable.producers.transport.connection import DeliveryError
from deniable.producers.producer import Producer
from deniable.producers.config import ProducerConfig

carrier = Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True)
away = Producer(ProducerConfig(
    allowances=(Allowance(carrier, None),), bootstrap_servers=sys.argv[1], topic=sys.argv[2], partitions=3,
    data_dir=Path(sys.argv[3]), connect_seconds=0.3, block_milliseconds=60_000,
    timing=ProducerTiming(retry=(0.1,)),
))
began = time.monotonic()
print(away.report("carrier", ["AA"] * 5, None).stored, "stored")
away.report("carrier", ["AA"] * 6, None)
print("held up" if time.monotonic() - began > 5 else "not held up")
try:
    away.close(timeout=1.0)
except DeliveryError as error:
    print(error)
"""


@pytest.mark.broker
def test_late_broker_gets_kept_reports(broker, topic, config, tmp_path):
    """The part without a broker runs in another process: kafka-python leaves refused sockets open."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        command = [sys.executable, "-W", "ignore", "-c", AWAY, address, topic, str(tmp_path)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    lines = run.stdout.splitlines()
    assert {"5 stored", "not held up"} <= set(lines)
    assert re.fullmatch(
        rf"not all was acknowledged within 1 s; no Kafka broker answers at {address}: [\w ]+; "
        rf"\d packs? (is|are) kept in {tmp_path} and will be sent by the next producer with it",
        lines[-1],
    )
    with Producer(config()) as producer:
        producer.flush()
    assert sum(decode(record.value).reports for record in read(broker, topic)) == 11


FORK = """
import gc, os, sys
from pathlib import Path
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.config.settings.allowance import Allowance
from deniable.producers.producer import Producer
from deniable.producers.config import ProducerConfig

carrier = Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True)
producer = Producer(ProducerConfig(
    allowances=(Allowance(carrier, None),), bootstrap_servers=sys.argv[1], topic=sys.argv[2], partitions=3,
    data_dir=Path(sys.argv[3]), block_milliseconds=60_000,
))
producer.report("carrier", ["AA"] * 5, None)
producer.flush()
child = os.fork()
if child == 0:
    producer.report("carrier", ["AA"] * 7, None)
    producer.close()
    gc.collect()
    sys.exit()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
producer.report("carrier", ["AA"] * 11, None)
producer.flush(timeout=5)
producer.close()
"""


@pytest.mark.broker
def test_forked_child_leaves_the_parents_connection_open(broker, topic, tmp_path):
    """The child exits normally, which closes its copies of the parent's sockets."""
    command = [sys.executable, "-W", "ignore", "-c", FORK, broker, topic, str(tmp_path)]
    subprocess.run(command, timeout=60, check=True)
    packs = [decode(record.value) for record in read(broker, topic)]
    assert sorted(pack.reports for pack in packs) == [5, 7, 11]
    assert len({pack.pack_id for pack in packs}) == 3


@pytest.mark.broker
def test_connection_is_closed_only_in_its_process(broker, topic, monkeypatch):
    """It is closed at once, whatever is in flight."""
    kafka = connect(Cluster(broker), topic, PARTITIONS, 10.0)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("deniable.producers.transport.connection.os.getpid", lambda: 0)
        kafka.close()
    kafka.send(topic, value=b"x", partition=0).get(timeout=120)
    kafka.send(topic, value=b"y", partition=0)
    kafka.close(timeout=0)
    with pytest.raises(KafkaError):
        kafka.send(topic, value=b"z", partition=0)
