"""Which log the ledgers count: noted in `state` when it is begun, before any worker counts."""

import time
from uuid import UUID

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import CoordinatorNotAvailableError, KafkaTimeoutError, for_code

from aggregator import row_keys, rows
from aggregator.rows import Genesis
from aggregator.topics import Topics

COORDINATOR_SECONDS = 20.0
SEND_SECONDS = 20.0
READ_SECONDS = 60.0
POLL_MILLISECONDS = 200
KEY = row_keys.encode_key(row_keys.SingleKey.GENESIS)


def log_of(admin: KafkaAdminClient, topics: Topics) -> Genesis:
    """Identity of the topic `reports`; KafkaError when it is not there."""
    (described,) = admin.describe_topics([topics.reports])
    if described["error_code"]:
        raise for_code(described["error_code"])(topics.reports)
    return Genesis(UUID(described["topic_id"]).bytes, len(described["partitions"]))


def begin(admin: KafkaAdminClient, bootstrap_servers: str, topics: Topics, *, reports_made: bool) -> None:
    """Note the log in every partition of `state` that has no such note; not if workers have counted it.

    Parameters
    ----------
    admin : connected.
    bootstrap_servers : where to write.
    topics : all there.
    reports_made : whether `reports` was made just now, so that nobody can have counted it.
    """
    missing = _without_note(bootstrap_servers, topics)
    if not missing or (not reports_made and _was_counted(admin, topics)):
        return
    value = rows.encode_genesis(log_of(admin, topics))
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all")
    try:
        sent = [producer.send(topics.state, value, key=KEY, partition=partition) for partition in missing]
        for future in sent:
            future.get(timeout=SEND_SECONDS)
    finally:
        producer.close(timeout=SEND_SECONDS)


def findings(admin: KafkaAdminClient, bootstrap_servers: str, topics: Topics) -> list[str]:
    """What is wrong with `state`, which is there, with its remedy; empty when it was begun."""
    if not _without_note(bootstrap_servers, topics):
        return []
    if not _was_counted(admin, topics):
        return [f"topic {topics.state} is not set up: run deniable topics create"]
    return [
        f"topic {topics.state} was deleted after {topics.group} had counted {topics.reports}: stop all "
        f"workers, then run deniable replay --rebuild, which counts again what {topics.reports} still holds"
    ]


def _without_note(bootstrap_servers: str, topics: Topics) -> list[int]:
    """Partitions of `state` that do not say which log they count.

    The note is among the first records, and is never written anew: so little is read.
    """
    missing = {TopicPartition(topics.state, partition) for partition in range(topics.partitions)}
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        isolation_level="read_committed",
        enable_auto_commit=False,
        group_id=None,
    )
    try:
        ends = consumer.end_offsets(missing)
        unread = {source for source in missing if ends[source]}
        consumer.assign(unread)
        for source in unread:
            consumer.seek_to_beginning(source)
        deadline = time.monotonic() + READ_SECONDS
        while unread:
            if time.monotonic() > deadline:
                raise KafkaTimeoutError(f"topic {topics.state} was not read within {READ_SECONDS:g} s")
            for source, records in consumer.poll(POLL_MILLISECONDS).items():
                if any(record.key == KEY for record in records):
                    missing.discard(source)
            read = {each for each in unread if each not in missing or consumer.position(each) >= ends[each]}
            consumer.pause(*read)
            unread -= read
    finally:
        consumer.close()
    return sorted(source.partition for source in missing)


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
