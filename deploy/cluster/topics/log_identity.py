"""Which log the ledgers count: noted in `state` when it is begun, before any worker counts.

Rule: what is told here, of what would make workers refuse or lose records, is told in their words.
"""

import time
from collections.abc import Mapping
from uuid import UUID

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec, TopicPartition
from kafka.errors import KafkaTimeoutError, for_code

from aggregator.ledger import row_keys, row_values
from aggregator.ledger.row_values import Genesis
from aggregator.partition.failures import RecordsLostError
from aggregator.partition.ledger_checks import (
    LedgerRefusedError,
    log_was_recreated,
    naming_partition,
    partitions_were_added,
)
from aggregator.topics.names import Topics
from deploy.cluster.connection.coordinator import patiently
from deploy.cluster.finding import Finding
from producers.transport.cluster import Cluster

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


def begin(admin: KafkaAdminClient, cluster: Cluster, topics: Topics, *, reports_made: bool) -> None:
    """Note the log in every partition of `state` that has no such note.

    Not if workers have counted it, or if another partition notes another log: `findings` tells of both.

    Parameters
    ----------
    admin : connected.
    cluster : where to write.
    topics : all there.
    reports_made : whether `reports` was made just now, so that nobody can have counted it.
    """
    log = log_of(admin, topics)
    noted = notes(cluster, topics, topics.partitions, log)
    if log_findings(topics, log, noted):
        return
    missing = [partition for partition in range(topics.partitions) if partition not in noted]
    if not missing or (not reports_made and _committed(admin, topics)):
        return
    value = row_values.encode_genesis(log)
    producer = KafkaProducer(**cluster.client_settings(), acks="all")
    try:
        sent = [producer.send(topics.state, value, key=KEY, partition=partition) for partition in missing]
        for future in sent:
            future.get(timeout=SEND_SECONDS)
    finally:
        producer.close(timeout=SEND_SECONDS)


def findings(admin: KafkaAdminClient, cluster: Cluster, topics: Topics) -> list[Finding]:
    """What is wrong with what the topics hold, which are all there and fit, with its remedy."""
    log = log_of(admin, topics)
    found = notes(cluster, topics, topics.partitions, log)
    if told := log_findings(topics, log, found):
        return told
    if len(found) == topics.partitions:
        return _lost(admin, topics)
    if not _committed(admin, topics):
        return [Finding(f"topic {topics.state} is not set up", "run deniable topics create")]
    return [
        Finding(
            f"topic {topics.state} was deleted after {topics.group} had counted {topics.reports}",
            f"stop all workers, then run deniable replay --rebuild, which counts again what {topics.reports} "
            f"still holds",
        )
    ]


def log_findings(topics: Topics, log: Genesis, noted: Mapping[int, Genesis]) -> list[Finding]:
    """Whether `reports` is another log now than the one that `state` notes, or has other partitions."""
    for note in noted.values():
        if note.topic_id != log.topic_id:
            return [_of(log_was_recreated(topics))]
        if note.partitions != log.partitions:
            return [_of(partitions_were_added(topics, log.partitions, note.partitions))]
    return []


def _of(error: LedgerRefusedError | RecordsLostError) -> Finding:
    return Finding(error.what, error.remedy)


def notes(cluster: Cluster, topics: Topics, partitions: int, log: Genesis | None) -> dict[int, Genesis]:
    """By partition of `state`, which log it counts; partitions that do not say so are left out.

    The note is among the first records, and is written anew for another log only: so little is read if it is
    of `log`, the present one.

    Raises
    ------
    RowError when a note cannot be read; KafkaError.
    """
    found: dict[int, Genesis] = {}
    consumer = KafkaConsumer(
        **cluster.client_settings(),
        isolation_level="read_committed",
        enable_auto_commit=False,
        group_id=None,
    )
    try:
        ends = consumer.end_offsets([TopicPartition(topics.state, each) for each in range(partitions)])
        unread = {source for source, end in ends.items() if end}
        consumer.assign(unread)
        for source in unread:
            consumer.seek_to_beginning(source)
        deadline = time.monotonic() + READ_SECONDS
        while unread:
            if time.monotonic() > deadline:
                raise KafkaTimeoutError(f"of topic {topics.state} nothing more came for {READ_SECONDS:g} s")
            for source, records in consumer.poll(POLL_MILLISECONDS).items():
                deadline = time.monotonic() + READ_SECONDS
                values = [record.value for record in records if record.key == KEY and record.value]
                if values:
                    with naming_partition(topics, source.partition):
                        found[source.partition] = row_values.decode_genesis(values[-1])
            read = {each for each in unread if consumer.position(each) >= ends[each]}
            read |= {each for each in unread if _is_of(log, found.get(each.partition))}
            consumer.pause(*read)
            unread -= read
    finally:
        consumer.close()
    return found


def _is_of(log: Genesis | None, note: Genesis | None) -> bool:
    return log is not None and note is not None and note.topic_id == log.topic_id


def _lost(admin: KafkaAdminClient, topics: Topics) -> list[Finding]:
    """Partitions of `reports` of which records were deleted before they were counted."""
    sources = [TopicPartition(topics.reports, partition) for partition in range(topics.partitions)]
    # First: workers go on meanwhile, and so does retention.
    starts = admin.list_partition_offsets(dict.fromkeys(sources, OffsetSpec.EARLIEST))
    if not any(start.offset for start in starts.values()):
        return []
    positions = _committed(admin, topics)
    return [
        _of(RecordsLostError(partition, position, starts[TopicPartition(topics.reports, partition)].offset))
        for partition, position in sorted(positions.items())
        if position < starts[TopicPartition(topics.reports, partition)].offset
    ]


def _committed(admin: KafkaAdminClient, topics: Topics) -> dict[int, int]:
    """Position of each partition of `reports` that the group has counted; Kafka forgets an idle group."""
    offsets = patiently(lambda: admin.list_group_offsets(topics.group))[topics.group]
    return {
        source.partition: found.offset
        for source, found in offsets.items()
        if source.topic == topics.reports and found.offset >= 0
    }
