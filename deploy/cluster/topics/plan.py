"""The topics that one deployment needs, and the settings that the design rests on."""

from collections.abc import Mapping
from dataclasses import dataclass

from aggregator.topics.names import Topics

RECORD_BYTES = 1_048_588  # Kafka's own default; packs and rows stay below it
DAY_MILLISECONDS = 86_400_000
WEEK_MILLISECONDS = 7 * DAY_MILLISECONDS
SAFE_REPLICAS = 3  # from which on one may be lost while two still hold what was acknowledged
WINDOWS_MILLISECONDS = 90 * DAY_MILLISECONDS  # how far back roll-ups reach


@dataclass(frozen=True)
class TopicPlan:
    """One topic: number of partitions and settings."""

    name: str
    partitions: int
    settings: Mapping[str, str]


def plan(topics: Topics) -> list[TopicPlan]:
    """Every topic of a deployment, `reports` first, then `state`.

    `reports` carries the log's own append time, so that lateness is decided by the log and a replay decides
    the same. So does `state`: an idle partition learns the time from it.

    Deletions stay for as long as brokers remember a producer (producer.id.expiration.ms): a transaction's
    marker that is emptied before that stays in the log as its producer's last, and aiokafka cannot read it.
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
    ]


def settings_made(topic: TopicPlan, replication_factor: int) -> dict[str, str]:
    """Settings that a new topic gets: with three replicas, two must have what is acknowledged."""
    in_sync = {"min.insync.replicas": "2"} if replication_factor >= SAFE_REPLICAS else {}
    return {**topic.settings, **in_sync}
