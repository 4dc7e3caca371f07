"""What is wrong with the topics themselves: one sentence each, with its remedy.

Rule: no remedy deletes a topic that may hold ledgers, or the log that they count.
"""

from collections.abc import Mapping, Sequence

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from aggregator.topics import Topics
from deploy import genesis
from deploy.topic_plan import TopicPlan, plan

# What changes counts; retention and segments are the operator's choice.
REQUIRED = ("cleanup.policy", "message.timestamp.type")


def numbers_of(admin: KafkaAdminClient, topics: Topics) -> dict[str, int]:
    """Numbers of partitions by topic, of those that are there and that we may see."""
    described = admin.describe_topics([topic.name for topic in plan(topics)])
    return {topic["name"]: len(topic["partitions"]) for topic in described if not topic["error_code"]}


def topic_findings(admin: KafkaAdminClient, bootstrap_servers: str, topics: Topics) -> list[str]:
    """Topics that are absent, or unfit."""
    numbers = numbers_of(admin, topics)
    absent = [absence(topic.name) for topic in plan(topics) if topic.name not in numbers]
    fitting = [topic for topic in plan(topics) if numbers.get(topic.name) == topic.partitions]
    unfit = number_findings(admin, bootstrap_servers, topics, numbers)
    return unfit + absent + setting_findings(admin, fitting)


def number_findings(
    admin: KafkaAdminClient, bootstrap_servers: str, topics: Topics, numbers: Mapping[str, int]
) -> list[str]:
    """Topics with another number of partitions than the deployment's.

    If `state` says that its ledgers count another log than this one, or fewer partitions of it, that is all
    that is told: whatever the collection file says, the other numbers are right.
    """
    names = [topic.name for topic in plan(topics)]
    unfit = [name for name in names if numbers.get(name, topics.partitions) != topics.partitions]
    if not unfit:
        return []
    log = genesis.log_of(admin, topics) if topics.reports in numbers else None
    notes = genesis.notes(bootstrap_servers, topics, numbers.get(topics.state, 0), log)
    if log is not None and (told := genesis.log_findings(topics, log, notes)):
        return told
    kept = {topics.reports, topics.state} if notes else {topics.reports}
    return [
        f"topic {name} has {numbers[name]} partitions, not {topics.partitions}, and their number "
        f"never changes: {_remedy(numbers, is_kept=name in kept)}"
        for name in unfit
    ]


def _remedy(numbers: Mapping[str, int], *, is_kept: bool) -> str:
    if len(set(numbers.values())) == 1:
        return f"use {min(numbers.values())} (kafka.partitions), or another kafka.topic_prefix"
    if is_kept:
        return "use another kafka.topic_prefix"
    return (
        "if Kafka made it by itself (auto.create.topics.enable), delete it and run deniable topics create; "
        "if not, use another kafka.topic_prefix"
    )


def reports_findings(admin: KafkaAdminClient, topics: Topics) -> list[str]:
    """What a producer must know, which may be allowed to see `reports` alone.

    Of what is sent to more partitions than all other topics have, workers do not count all.
    """
    numbers = numbers_of(admin, topics)
    reports, *others = plan(topics)
    number = numbers.get(reports.name)
    seen = {numbers[topic.name] for topic in others if topic.name in numbers}
    if number is None:
        return [absence(reports.name)]
    if seen and number not in seen:
        return [
            f"topic {reports.name} has {number} partitions, and no other topic of this deployment has as "
            f"many: workers do not count all of it; deniable topics check says why. If partitions were "
            f"added, set another kafka.topic_prefix for producers and workers, and run deniable topics create"
        ]
    if number != reports.partitions:
        which = f"{number} (kafka.partitions)" if seen else "the kafka.partitions of the workers"
        return [
            f"topic {reports.name} has {number} partitions, not {reports.partitions}, and their number never "
            f"changes: use {which}, or another kafka.topic_prefix"
        ]
    return setting_findings(admin, [reports])


def setting_findings(admin: KafkaAdminClient, planned: Sequence[TopicPlan]) -> list[str]:
    """Settings that change counts, of topics that are there; KafkaError if they are not told."""
    if not planned:
        return []
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic.name) for topic in planned]
    told = admin.describe_configs(resources, config_filter="all").get("topic", {})
    change = f"kafka-configs.sh --bootstrap-server {admin.config['bootstrap_servers']} --alter"
    findings = []
    for topic in planned:
        found = told.get(topic.name)
        if not found:  # kafka-python passes over the error that stands there instead
            raise KafkaError(f"it does not tell the settings of topic {topic.name}")
        findings += [
            f"topic {topic.name}: {key} must be {topic.settings[key]}, got {found[key]['value']}: "
            f"{change} --topic {topic.name} --add-config {key}={topic.settings[key]}"
            for key in REQUIRED
            if found[key]["value"] != topic.settings[key]
        ]
    return findings


def absence(name: str) -> str:
    """That a topic is not there."""
    return f"topic {name} is absent: run deniable topics create"
