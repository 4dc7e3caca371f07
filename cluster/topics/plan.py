"""The topics of a deployment, and the settings that its correctness depends on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from deniable.protocol.topic_names import Topics

RECORD_BYTES = 1_048_588  # Kafka's default; packs and rows stay below it
DAY_MILLISECONDS = 86_400_000
WEEK_MILLISECONDS = 7 * DAY_MILLISECONDS
SAFE_REPLICAS = 3  # one may be lost while two still have every acknowledged record
WINDOWS_MILLISECONDS = 90 * DAY_MILLISECONDS  # how far back roll-ups reach
FOREVER = -1
NEVER = 2**63 - 1
UNCLEAN = "unclean.leader.election.enable"
#: Settings that some managed clusters let nobody choose; their own are usually the same.
LEFT_TO_CLUSTER = ("compression.type", "message.timestamp.before.max.ms", "min.insync.replicas", UNCLEAN)


@dataclass(frozen=True)
class TopicPlan:
    """One topic.

    Parameters
    ----------
    name, partitions : of the topic.
    settings : with which it is created.
    required : keys of settings without which counts may change; programs refuse to start then.
    is_source : whether others than workers and relays write to it, and all that they write is counted.
    """

    name: str
    partitions: int
    settings: Mapping[str, str]
    required: tuple[str, ...] = ("cleanup.policy", "message.timestamp.type")
    is_source: bool = False


def plan(topics: Topics) -> list[TopicPlan]:
    """Return every topic of a deployment, `reports` first, then `state`.

    `reports` has append times, so the log decides what is late and a replay decides the same.

    Tombstones stay for as long as brokers remember a producer (producer.id.expiration.ms): if a transaction's
    marker is emptied before, it stays in the log as its producer's last batch, and aiokafka cannot read it.

    Brokers store everything uncompressed: workers do not know every codec that a stranger may use, and packs
    do not shrink.

    `uploads`, whose log alone decides what relays send, must not lose acknowledged records to an election.
    """
    log_time = {
        "message.timestamp.type": "LogAppendTime",
        "max.message.bytes": str(RECORD_BYTES),
        "compression.type": "uncompressed",
        UNCLEAN: "false",
    }
    compacted = {
        "cleanup.policy": "compact",
        "delete.retention.ms": str(DAY_MILLISECONDS),
        "min.compaction.lag.ms": "0",
        "max.compaction.lag.ms": str(NEVER),
        "min.cleanable.dirty.ratio": "0.1",
        "segment.ms": "600000",
    }
    kept = {
        "cleanup.policy": "delete",
        "retention.ms": str(WEEK_MILLISECONDS),
        "retention.bytes": str(FOREVER),
    }
    return [
        TopicPlan(topics.reports, topics.partitions, {**kept, **log_time}, is_source=True),
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
    uploads = TopicPlan(topics.uploads, topics.partitions, {**kept, "retention.ms": str(DAY_MILLISECONDS)})
    yield replace(uploads, required=(*uploads.required, UNCLEAN), is_source=True)
    # Relays state the hour: the time of a batch may be that of one upload. They may state it days later.
    own_time = {"message.timestamp.type": "CreateTime", "message.timestamp.before.max.ms": str(NEVER)}
    yield TopicPlan(topics.rejected_uploads, topics.partitions, {**kept, **own_time})


def settings_made(topic: TopicPlan, replicas: int, in_sync: int = 1) -> dict[str, str]:
    """Return the settings of a new topic: with three replicas, two must have every acknowledged record.

    Parameters
    ----------
    topic : to create.
    replicas : of each partition, >= 1.
    in_sync : min.insync.replicas of the brokers, >= 1; more than two stay as many.
    """
    more = {"min.insync.replicas": str(max(2, in_sync))} if replicas >= SAFE_REPLICAS else {}
    return {**topic.settings, **more}
