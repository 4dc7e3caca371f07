"""Which log the ledgers count: noted in `state` when it is begun, before any worker counts."""

import time
from uuid import UUID

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import CoordinatorNotAvailableError

from aggregator import row_keys, rows
from aggregator.rows import Genesis
from aggregator.topics import Topics

COORDINATOR_SECONDS = 20.0
SEND_SECONDS = 20.0


def log_of(admin: KafkaAdminClient, topics: Topics) -> Genesis:
    """Identity of the topic `reports`, which must be there."""
    (described,) = admin.describe_topics([topics.reports])
    return Genesis(UUID(described["topic_id"]).bytes, len(described["partitions"]))


def begin(admin: KafkaAdminClient, bootstrap_servers: str, topics: Topics, *, reports_made: bool) -> bool:
    """Note the log in every partition of `state` that was never written to.

    Parameters
    ----------
    admin : connected.
    bootstrap_servers : where to write.
    topics : all there.
    reports_made : whether `reports` was made just now, so that nobody can have counted it.

    Returns
    -------
    False, with nothing written, if workers have counted the log before: `state` was deleted then.
    """
    empty = _never_written(admin, topics)
    if not empty:
        return True
    if not reports_made and _was_counted(admin, topics):
        return False
    value = rows.encode_genesis(log_of(admin, topics))
    key = row_keys.encode_key(row_keys.SingleKey.GENESIS)
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all")
    try:
        sent = [producer.send(topics.state, value, key=key, partition=partition) for partition in empty]
        for future in sent:
            future.get(timeout=SEND_SECONDS)
    finally:
        producer.close(timeout=SEND_SECONDS)
    return True


def _never_written(admin: KafkaAdminClient, topics: Topics) -> list[int]:
    asked = {
        TopicPartition(topics.state, partition): OffsetSpec.LATEST for partition in range(topics.partitions)
    }
    ends = admin.list_partition_offsets(asked)
    return sorted(source.partition for source, end in ends.items() if end.offset == 0)


def _was_counted(admin: KafkaAdminClient, topics: Topics) -> bool:
    deadline = time.monotonic() + COORDINATOR_SECONDS
    while True:
        try:
            offsets = admin.list_group_offsets(topics.group)[topics.group]
            break
        except CoordinatorNotAvailableError:  # on a new broker, while it makes its topic of offsets
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    return any(source.topic == topics.reports and found.offset >= 0 for source, found in offsets.items())
