"""The topics that one deployment needs: made when absent, checked when present."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, TopicAlreadyExistsError

from aggregator.rows import Genesis
from aggregator.topics import Topics
from deploy import genesis
from deploy.addresses import probe

RECORD_BYTES = 1_048_588  # Kafka's own default; packs and rows stay below it
DAY_MILLISECONDS = 86_400_000
WEEK_MILLISECONDS = 7 * DAY_MILLISECONDS
METADATA_SECONDS = 10.0


class TopicError(RuntimeError):
    """The topics cannot be made or used; the message says what to do."""


@dataclass(frozen=True)
class TopicPlan:
    """One topic: number of partitions and the settings that the design rests on."""

    name: str
    partitions: int
    settings: Mapping[str, str]


def plan(topics: Topics) -> list[TopicPlan]:
    """Every topic of a deployment.

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
    ]


def create(bootstrap_servers: str, topics: Topics, replication_factor: int) -> list[str]:
    """Make the topics that are absent, and note in a new `state` which log it counts.

    Returns
    -------
    Their names; empty when all were there already.

    Raises
    ------
    TopicError when a present one does not fit or the broker refuses. That `state` was deleted, and is to be
    rebuilt, is a finding of `check`.
    """
    planned = plan(topics)
    with _admin(bootstrap_servers) as admin:
        wanted = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": replication_factor,
                "configs": dict(topic.settings),
            }
            for topic in planned
        }
        present = _present(admin, list(wanted))
        refuse(_partition_findings(present, planned))  # before more are made beside them
        absent = sorted(set(wanted) - present.keys())
        if absent:
            _create(admin, {name: wanted[name] for name in absent})
        refuse(_findings(admin, planned))
        genesis.begin(admin, bootstrap_servers, topics, reports_made=topics.reports in absent)
    return absent


def _create(admin: KafkaAdminClient, wanted: Mapping[str, object]) -> None:
    """Make topics and wait until all are known; one that somebody else makes meanwhile is no error."""
    for topic in admin.create_topics(wanted, raise_errors=False)["topics"]:
        if topic["error_code"] not in (0, TopicAlreadyExistsError.errno):
            raise TopicError(f"topic {topic['name']} cannot be made: {topic['error_message']}")
    deadline = time.monotonic() + METADATA_SECONDS
    while len(_present(admin, list(wanted))) < len(wanted) and time.monotonic() < deadline:
        time.sleep(0.1)


def check(bootstrap_servers: str, topics: Topics) -> list[str]:
    """What is wrong with the topics, one sentence each with its remedy; empty when all fit."""
    with _admin(bootstrap_servers) as admin:
        return _findings(admin, plan(topics)) or genesis.findings(admin, bootstrap_servers, topics)


def require(bootstrap_servers: str, topics: Topics) -> Genesis:
    """Identity of the log, if all topics are there and fit; TopicError with a line for each finding."""
    with _admin(bootstrap_servers) as admin:
        refuse(_findings(admin, plan(topics)))
        return genesis.log_of(admin, topics)


def identity(bootstrap_servers: str, topics: Topics) -> Genesis:
    """Identity of the log as it is now; TopicError if there is none, or the broker knows none."""
    with _admin(bootstrap_servers) as admin:
        return genesis.log_of(admin, topics)


def require_reports(bootstrap_servers: str, topics: Topics) -> None:
    """Check the one topic that a producer writes to; TopicError with a line for each finding."""
    with _admin(bootstrap_servers) as admin:
        refuse(_findings(admin, [topic for topic in plan(topics) if topic.name == topics.reports]))


def refuse(findings: list[str]) -> None:
    """Raise TopicError with a line for each finding, if there is any."""
    if findings:
        raise TopicError("\n".join(findings))


def _findings(admin: KafkaAdminClient, planned: Sequence[TopicPlan]) -> list[str]:
    present = _present(admin, [topic.name for topic in planned])
    findings = _partition_findings(present, planned)
    for topic in planned:
        if topic.name not in present:
            findings.append(f"topic {topic.name} is absent: run deniable topics create")
        elif present[topic.name] == topic.partitions:
            findings += _unfit_settings(admin, topic)
    return findings


def _partition_findings(present: Mapping[str, int], planned: Sequence[TopicPlan]) -> list[str]:
    numbers = {present[topic.name] for topic in planned if topic.name in present}
    remedy = (
        f"use {min(numbers)} (kafka.partitions), or another kafka.topic_prefix"
        if len(numbers) == 1
        else "if Kafka made it by itself (auto.create.topics.enable), delete it and run deniable topics "
        "create; if not, use another kafka.topic_prefix"
    )
    return [
        f"topic {topic.name} has {present[topic.name]} partitions, not {topic.partitions}, and their number "
        f"never changes: {remedy}"
        for topic in planned
        if present.get(topic.name, topic.partitions) != topic.partitions
    ]


def _unfit_settings(admin: KafkaAdminClient, topic: TopicPlan) -> list[str]:
    """Only what changes counts is required; retention and segments are the operator's choice."""
    required = ("cleanup.policy", "message.timestamp.type")
    resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
    found = admin.describe_configs([resource], config_filter="all")["topic"][topic.name]
    change = f"kafka-configs.sh --bootstrap-server {admin.config['bootstrap_servers']} --alter"
    return [
        f"topic {topic.name}: {key} must be {topic.settings[key]}, got {found[key]['value']}: "
        f"{change} --topic {topic.name} --add-config {key}={topic.settings[key]}"
        for key in required
        if found[key]["value"] != topic.settings[key]
    ]


def _present(admin: KafkaAdminClient, names: list[str]) -> dict[str, int]:
    described = admin.describe_topics(names)
    return {topic["name"]: len(topic["partitions"]) for topic in described if not topic["error_code"]}


@contextmanager
def _admin(bootstrap_servers: str) -> Iterator[KafkaAdminClient]:
    probe(bootstrap_servers)
    try:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
        try:
            yield admin
        finally:
            admin.close()
    except KafkaError as error:
        raise TopicError(f"Kafka at {bootstrap_servers} refused: {error}") from error
