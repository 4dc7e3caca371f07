"""Find what is wrong with the topics themselves, each with its remedy.

Rule: no remedy deletes a topic that may hold ledgers, or the log that they count.
"""

from collections.abc import Iterable, Mapping, Sequence

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import TopicAuthorizationFailedError

from deniable.cluster.finding import Finding
from deniable.cluster.permissions.findings import topic_operations
from deniable.cluster.topics.limits import UPLOADS_SPARE_SECONDS, Kept, limit_findings
from deniable.cluster.topics.plan import DAY_MILLISECONDS, TopicPlan, plan
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics
from deniable.protocol.words import number_of


def numbers_of(admin: KafkaAdminClient, topics: Topics) -> dict[str, int]:
    """Return numbers of partitions by topic, for topics that exist and that we may see."""
    described = admin.describe_topics([topic.name for topic in plan(topics)])
    return {topic["name"]: len(topic["partitions"]) for topic in described if not topic["error_code"]}


def visible_findings(admin: KafkaAdminClient, topics: Topics) -> list[Finding]:
    """Find absent and wrongly configured topics, among those that we may see."""
    numbers, allowed = numbers_of(admin, topics), operations_of(admin, topics)
    absent = [
        absence(topic.name)._replace(is_warning=topic.name == topics.collections)
        for topic in plan(topics)
        if topic.name not in allowed
    ]
    fitting = [topic for topic in _visible(admin, topics) if numbers.get(topic.name) == topic.partitions]
    return absent + setting_findings(admin, fitting)


def limits_exceeded(
    admin: KafkaAdminClient,
    topics: Topics,
    collections: Sequence[Collection],
    names: Sequence[str] | None = None,
) -> list[Finding]:
    """Find settings that change no count now, but will stop counting later; of all topics, or of these."""
    planned = [each for each in _visible(admin, topics) if names is None or each.name in names]
    described = admin.describe_topics([topic.name for topic in planned]) if planned else []
    replicas = {
        topic["name"]: min(len(each["replica_nodes"]) for each in topic["partitions"]) for topic in described
    }
    settings = settings_of(admin, replicas)
    return limit_findings(planned, settings, replicas, _kept(topics, collections), _change(admin))


def retention_made(topics: Topics, topic: TopicPlan, collections: Sequence[Collection]) -> dict[str, str]:
    """Return the setting of a new topic that must keep more than planned; empty for others."""
    kept = _kept(topics, collections).get(topic.name)
    if kept is None or kept.least_milliseconds <= int(topic.settings["retention.ms"]):
        return {}
    return {"retention.ms": str(kept.least_milliseconds)}


def _kept(topics: Topics, collections: Sequence[Collection]) -> dict[str, Kept]:
    longest = max(collections, key=lambda each: each.window_seconds + each.grace_seconds, default=None)
    if longest is None:
        return {}
    kept = {topics.reports: Kept(longest)}
    if topics.takes_uploads:
        kept[topics.uploads] = Kept(longest, UPLOADS_SPARE_SECONDS, DAY_MILLISECONDS)
    return kept


def operations_of(admin: KafkaAdminClient, topics: Topics) -> dict[str, set[str]]:
    """Return allowed operations by topic, for topics that exist or are hidden from us."""
    return topic_operations(admin, [topic.name for topic in plan(topics)])


def _visible(admin: KafkaAdminClient, topics: Topics) -> list[TopicPlan]:
    """Return the topics whose settings the broker lets us see."""
    allowed = operations_of(admin, topics)
    return [topic for topic in plan(topics) if "DESCRIBE_CONFIGS" in allowed.get(topic.name, ())]


def number_remedy(numbers: Mapping[str, int], *, is_kept: bool) -> str:
    """Return what to do about other numbers of partitions, by topic; whether this topic must be kept."""
    if len(set(numbers.values())) == 1:
        return f"use {min(numbers.values())} (kafka.partitions), or another kafka.topic_prefix"
    if is_kept:
        return "use another kafka.topic_prefix"
    return (
        "if Kafka created it by itself (auto.create.topics.enable), delete it and run deniable topics "
        "create; if not, use another kafka.topic_prefix"
    )


def reports_findings(admin: KafkaAdminClient, topics: Topics) -> list[Finding]:
    """Find what concerns a producer, which may be allowed to see only `reports`.

    If `reports` has more partitions than all other topics, workers do not count all of it.
    """
    numbers = numbers_of(admin, topics)
    reports, *others = plan(topics)
    number = numbers.get(reports.name)
    seen = {numbers[topic.name] for topic in others if topic.name in numbers.keys() - {topics.collections}}
    if number is None:
        return [absence(reports.name)]
    if seen and number not in seen:
        return [
            Finding(
                f"topic {reports.name} has {number} partitions, and no other topic of this deployment has as "
                f"many, so workers do not count all of it; deniable topics check says why",
                "If partitions were added, set another kafka.topic_prefix for producers and workers, and run "
                "deniable topics create",
            )
        ]
    if number != reports.partitions:
        which = f"{number} (kafka.partitions)" if seen else "the kafka.partitions of the workers"
        return [
            Finding(
                f"topic {reports.name} has {number_of(number, 'partition')}, not {reports.partitions}, and "
                f"the number must never change",
                f"use {which}, or another kafka.topic_prefix",
            )
        ]
    # Not for producers: workers check it, too.
    return setting_findings(admin, [each for each in _visible(admin, topics) if each == reports])


def upload_findings(admin: KafkaAdminClient, topics: Topics, names: Sequence[str]) -> list[Finding]:
    """Find what concerns an edge or a relay: these topics, and those settings that it may see."""
    found = [finding for name in names for finding in fit_findings(admin, topics, name)]
    allowed = topic_operations(admin, names)
    seen = [name for name in names if "DESCRIBE_CONFIGS" in allowed.get(name, ())]
    return found or setting_findings(admin, [each for each in plan(topics) if each.name in seen])


def fit_findings(admin: KafkaAdminClient, topics: Topics, name: str) -> list[Finding]:
    """Find whether one topic is absent or lacks partitions that are read."""
    numbers = numbers_of(admin, topics)
    if name in numbers:
        number = numbers[name]
        what = f"topic {name} has {number_of(number, 'partition')}, not {topics.partitions}"
        wrong = Finding(what, number_remedy({name: number}, is_kept=True))
        return [] if number == topics.partitions else [wrong]
    return [] if name in topic_operations(admin, [name]) else [absence(name)]


def setting_findings(admin: KafkaAdminClient, planned: Sequence[TopicPlan]) -> list[Finding]:
    """Find settings of existing topics that change counts; KafkaError as in `settings_of`.

    Retention and segments are the operator's choice, within `limits`.
    """
    if not planned:
        return []
    settings = settings_of(admin, [topic.name for topic in planned])
    return [
        Finding(
            f"topic {topic.name}: {key} must be {topic.settings[key]}, got {settings[topic.name].get(key)}",
            f"{_change(admin)} --topic {topic.name} --add-config {key}={topic.settings[key]}",
        )
        for topic in planned
        for key in topic.required
        if settings[topic.name].get(key) != topic.settings[key]
    ]


def settings_of(admin: KafkaAdminClient, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return settings by topic; TopicAuthorizationFailedError if we may not see those of one."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    if not resources:
        return {}
    settings = admin.describe_configs(resources, config_filter="all").get("topic", {})
    for each in resources:
        if not settings.get(each.name):  # kafka-python ignores the error in the answer
            what = f"it does not let us see the settings of topic {each.name} (DescribeConfigs)"
            raise TopicAuthorizationFailedError(what)
    return {name: {key: each["value"] for key, each in found.items()} for name, found in settings.items()}


def _change(admin: KafkaAdminClient) -> str:
    return f"kafka-configs.sh --bootstrap-server {admin.config['bootstrap_servers']} --alter"


def unknown_codec(name: str) -> Finding:
    """Report a record that its sender compressed, and that this installation cannot read."""
    return Finding(
        f"a record of topic {name} is compressed by a codec that is not installed here",
        "Install it (pip install cramjam) and start again; deniable topics check says how brokers decompress",
    )


def absence(name: str) -> Finding:
    """Report an absent topic."""
    return Finding(f"topic {name} is absent", "run deniable topics create")
