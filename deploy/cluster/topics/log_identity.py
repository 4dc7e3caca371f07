"""Note in `state` which log the ledgers count, before any worker counts, and check it.

Rule: findings that would make workers refuse or lose records use the workers' own words.
"""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from uuid import UUID

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec, TopicPartition
from kafka.errors import KafkaTimeoutError, for_code

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.row_values import Genesis
from deniable.aggregator.partition.failures import RecordsLostError
from deniable.aggregator.partition.ledger_checks import (
    LedgerRefusedError,
    log_was_recreated,
    naming_partition,
    partitions_were_added,
)
from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.coordinator import patiently
from deniable.cluster.existing_topics.of_kafka_python import client_of_existing_topics
from deniable.cluster.finding import Finding
from deniable.protocol.topic_names import Topics

SEND_SECONDS = 20.0
CREATION_SECONDS = 0.2  # of a partition of each topic
READ_SECONDS = 60.0
POLL_MILLISECONDS = 200
KEY = row_keys.encode_key(row_keys.SingleKey.GENESIS)
PROGRESS = row_keys.encode_key(row_keys.SingleKey.PROGRESS)


def log_of(admin: KafkaAdminClient, topics: Topics) -> Genesis:
    """Return the identity of the topic `reports`; KafkaError if it is absent."""
    (described,) = admin.describe_topics([topics.reports])
    if described["error_code"]:
        raise for_code(described["error_code"])(topics.reports)
    return Genesis(UUID(described["topic_id"]).bytes, len(described["partitions"]))


def begin(admin: KafkaAdminClient, cluster: Cluster, topics: Topics, *, is_new_log: bool) -> None:
    """Note the log in every partition of `state` that has no such note.

    Does nothing if workers have counted it, or if another partition notes another log: `findings` reports
    both.

    Parameters
    ----------
    admin : connected.
    cluster : to write to.
    topics : all exist.
    is_new_log : whether `reports` was just created, so nobody can have counted it.
    """
    log = log_of(admin, topics)
    noted = notes(cluster, topics, topics.partitions, log)
    if log_findings(topics, log, noted):
        return
    missing = [partition for partition in range(topics.partitions) if partition not in noted]
    if not missing or (not is_new_log and _committed(admin, topics)):
        return
    value = row_values.encode_genesis(log)
    producer = KafkaProducer(**cluster.client_settings(), kafka_client=client_of_existing_topics, acks="all")
    try:
        sent = [producer.send(topics.state, value, key=KEY, partition=partition) for partition in missing]
        for future in sent:
            future.get(timeout=SEND_SECONDS)
    finally:
        producer.close(timeout=SEND_SECONDS)


def findings(admin: KafkaAdminClient, cluster: Cluster, topics: Topics) -> list[Finding]:
    """Find what is wrong with the content of the topics, which all exist and fit."""
    log = log_of(admin, topics)
    found = notes(cluster, topics, topics.partitions, log)
    if wrong := log_findings(topics, log, found):
        return wrong
    if len(found) == topics.partitions:
        return _lost(admin, cluster, topics)
    if not _committed(admin, topics):
        return [Finding(f"topic {topics.state} is not set up", "run deniable topics create")]
    return [
        Finding(
            f"topic {topics.state} was deleted after {topics.group} had counted {topics.reports}, or a "
            f"rebuild was interrupted",
            f"stop all workers, then run deniable replay --rebuild, which recounts what {topics.reports} "
            f"still holds",
        )
    ]


def log_findings(topics: Topics, log: Genesis, noted: Mapping[int, Genesis]) -> list[Finding]:
    """Find whether `reports` is not the log that `state` notes, or has other partitions."""
    for note in noted.values():
        if note.topic_id != log.topic_id:
            return [_of(log_was_recreated(topics))]
        if note.partitions != log.partitions:
            return [_of(partitions_were_added(topics, log.partitions, note.partitions))]
    return []


def _of(error: LedgerRefusedError | RecordsLostError) -> Finding:
    return Finding(error.what, error.remedy)


def notes(cluster: Cluster, topics: Topics, partitions: int, log: Genesis | None) -> dict[int, Genesis]:
    """Return the log that each partition of `state` counts; partitions without a note are left out.

    The note is among the first records and is rewritten only for another log, so little is read if it notes
    `log`, the present one.

    Raises
    ------
    RowError if a note cannot be decoded; KafkaError.
    """

    def note(partition: int, value: bytes) -> Genesis:
        with naming_partition(topics, partition):
            return row_values.decode_genesis(value)

    def is_of_log(_partition: int, value: bytes) -> bool:
        with suppress(row_values.RowError):  # of a newer version, and perhaps superseded
            return log is not None and row_values.decode_genesis(value).topic_id == log.topic_id
        return False

    rows = _rows(cluster, topics, range(partitions), KEY, is_of_log)
    return {partition: note(partition, value) for partition, value in rows.items()}


def _rows(
    cluster: Cluster,
    topics: Topics,
    partitions: Collection[int],
    key: bytes,
    suffices: Callable[[int, bytes], bool],
) -> dict[int, bytes]:
    """Return the newest row of this key by partition of `state`; read no further once one suffices."""
    found: dict[int, bytes] = {}
    consumer = KafkaConsumer(
        **cluster.client_settings(),
        kafka_client=client_of_existing_topics,
        isolation_level="read_committed",
        enable_auto_commit=False,
        group_id=None,
    )
    try:
        # A broker may still be creating thousands of partitions.
        patience_ms = round(1000 * (READ_SECONDS + CREATION_SECONDS * len(partitions)))
        sources = [TopicPartition(topics.state, each) for each in partitions]
        ends = consumer.end_offsets(sources, patience_ms)
        unread = {source for source, end in ends.items() if end}
        consumer.assign(unread)
        for source in unread:
            consumer.seek_to_beginning(source)
        deadline = time.monotonic() + READ_SECONDS
        enough: set[TopicPartition] = set()
        while unread:
            if time.monotonic() > deadline:
                raise KafkaTimeoutError(f"topic {topics.state} sent nothing more for {READ_SECONDS:g} s")
            for source, records in consumer.poll(POLL_MILLISECONDS).items():
                deadline = time.monotonic() + READ_SECONDS
                values = [record.value for record in records if record.key == key and record.value]
                if values:
                    found[source.partition] = values[-1]
                    if suffices(source.partition, values[-1]):
                        enough.add(source)
            read = {each for each in unread if each in enough or consumer.position(each) >= ends[each]}
            consumer.pause(*read)
            unread -= read
    finally:
        consumer.close()
    return found


def _lost(admin: KafkaAdminClient, cluster: Cluster, topics: Topics) -> list[Finding]:
    """Find partitions of `reports` whose records were deleted before they were counted.

    Where the group has committed nothing, or Kafka has forgotten it, the ledger says how far it has counted.
    """
    sources = [TopicPartition(topics.reports, partition) for partition in range(topics.partitions)]
    # Ask this first: workers and retention advance meanwhile.
    starts = admin.list_partition_offsets(dict.fromkeys(sources, OffsetSpec.EARLIEST))
    firsts = {source.partition: start.offset for source, start in starts.items() if start.offset}
    if not firsts:
        return []
    positions = dict.fromkeys(firsts, 0) | _committed(admin, topics)
    behind = [partition for partition, first in firsts.items() if not positions[partition]]
    if behind:
        positions |= _counted(cluster, topics, behind)
    return [
        _of(RecordsLostError(partition, positions[partition], first))
        for partition, first in sorted(firsts.items())
        if positions[partition] < first
    ]


def _counted(cluster: Cluster, topics: Topics, partitions: Collection[int]) -> dict[int, int]:
    """Return the next offset to count by partition, as ledgers have it; those without any are left out."""
    rows = _rows(cluster, topics, partitions, PROGRESS, lambda _partition, _value: False)
    counted = {}
    for partition, value in rows.items():
        with naming_partition(topics, partition):
            counted[partition] = row_values.decode_progress(value).position
    return counted


def _committed(admin: KafkaAdminClient, topics: Topics) -> dict[int, int]:
    """Return the group's position by partition of `reports`; Kafka forgets those of an idle group."""
    offsets = patiently(lambda: admin.list_group_offsets(topics.group))[topics.group]
    return {
        source.partition: found.offset
        for source, found in offsets.items()
        if source.topic == topics.reports and found.offset >= 0
    }
