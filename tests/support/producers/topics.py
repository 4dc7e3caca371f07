"""Topics of a real broker, and their records."""

import itertools
import time
from contextlib import contextmanager

from kafka import KafkaConsumer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.structs import TopicPartition

from tests.support.processes import wait_until


def settings(broker):
    """Return keywords for clients: given ones, or those of bootstrap servers without security."""
    return {"bootstrap_servers": broker} if isinstance(broker, str) else broker


@contextmanager
def make_topic(broker, name, partitions, configs=None):
    """A topic that exists while the context is open."""
    admin = KafkaAdminClient(**settings(broker))
    kept = {"retention.ms": "-1"}  # events are old, and retention would delete them
    topic = {"num_partitions": partitions, "replication_factor": 1, "configs": kept | (configs or {})}
    admin.create_topics({name: topic})
    try:
        yield name
    finally:
        admin.delete_topics([name])
        admin.close()


def change(admin, topic, changed):
    """Change settings of a topic; a broker applies them after it has answered."""

    def is_applied():
        found = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])["topic"][topic]
        return all(found.get(name, {}).get("value") == value for name, value in changed.items())

    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=changed)])
    assert wait_until(is_applied), (topic, changed)


def read(broker, topic):
    """All records of a topic, up to its present end."""
    consumer = KafkaConsumer(**settings(broker), enable_auto_commit=False)
    partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    ends = consumer.end_offsets(partitions)
    records = []
    deadline = time.monotonic() + 120
    while any(consumer.position(each) < ends[each] for each in partitions):
        assert time.monotonic() < deadline, "the topic could not be read to its end"
        records += itertools.chain.from_iterable(consumer.poll(timeout_ms=200).values())
    consumer.close()
    return records
