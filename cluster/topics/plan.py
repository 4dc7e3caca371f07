"""The topics of a deployment, and the settings that its correctness depends on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deniable.protocol.topic_names import Topics

RECORD_BYTES = 1_048_588  # Kafka's default; packs and rows stay below it
DAY_MILLISECONDS = 86_400_000
WEEK_MILLISECONDS = 7 * DAY_MILLISECONDS
SAFE_REPLICAS = 3  # one may be lost while two still have every acknowledged record
WINDOWS_MILLISECONDS = 90 * DAY_MILLISECONDS  # how far back roll-ups reach


@dataclass(frozen=True)
class TopicPlan:
    """One topic: number of partitions and settings."""

    name: str
    partitions: int
    settings: Mapping[str, str]


def plan(topics: Topics) -> list[TopicPlan]:
    """Return every topic of a deployment, `reports` first, then `state`.

    `reports` has append times, so the log decides what is late and a replay decides the same. So has `state`:
    an idle partition learns the time from it.

    Tombstones stay for as long as brokers remember a producer (producer.id.expiration.ms): if a transaction's
    marker is emptied before, it stays in the log as its producer's last batch, and aiokafka cannot read it.

    `uploads`, whose log alone decides what relays send, must not lose acknowledged records to an election.
    """
    log_time = {"message.timestamp.type": "LogAppendTime", "max.message.bytes": str(RECORD_BYTES)}
    compacted = {
        "cleanup.policy": "compact",
        "delete.retention.ms": str(DAY_MILLISECONDS),
        "min.cleanable.dirty.ratio": "0.1",
        "segment.ms": "600000",
    }
    kept = {"cleanup.policy": "delete", "retention.ms": str(WEEK_MILLISECONDS)}
    return [
        TopicPlan(topics.reports, topics.partitions, {**kept, **log_time}),
        TopicPlan(topics.state, topics.partitions, {**compacted, **log_time}),
        TopicPlan(topics.counts, topics.partitions, {**compacted, **log_time}),
        TopicPlan(topics.rejected, topics.partitions, {**kept, **log_time}),
        TopicPlan(topics.estimates, topics.partitions, {**kept, **log_time}),
        TopicPlan(
            topics.windows,
            topics.partitions,
            {**kept, **log_time, "retention.ms": str(WINDOWS_MILLISECONDS)},
        ),
        TopicPlan(topics.collections, topics.partitions, {**compacted, **log_time}),
        *(_of_uploads(topics, {**kept, **log_time}) if topics.takes_uploads else ()),
    ]


def _of_uploads(topics: Topics, kept: Mapping[str, str]) -> Iterator[TopicPlan]:
    uploads = {"retention.ms": str(DAY_MILLISECONDS), "unclean.leader.election.enable": "false"}
    yield TopicPlan(topics.uploads, topics.partitions, {**kept, **uploads})
    # Relays state the hour: the time of a batch may be that of one upload.
    own_time = {"message.timestamp.type": "CreateTime"}
    yield TopicPlan(topics.rejected_uploads, topics.partitions, {**kept, **own_time})


def settings_made(topic: TopicPlan, replication_factor: int) -> dict[str, str]:
    """Return the settings of a new topic: with three replicas, two must have every acknowledged record."""
    in_sync = {"min.insync.replicas": "2"} if replication_factor >= SAFE_REPLICAS else {}
    return {**topic.settings, **in_sync}
