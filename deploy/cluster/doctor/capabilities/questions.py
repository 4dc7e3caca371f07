"""How brokers are asked what they can do.

Rule: asking has no effect; topics are created by requests that are only validated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kafka import KafkaAdminClient
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import ClusterAuthorizationFailedError, SecurityDisabledError, TopicAuthorizationFailedError

from deniable.cluster.connection import groups
from deniable.cluster.connection.probe import address_of
from deniable.cluster.permissions.findings import with_article
from deniable.cluster.permissions.roles import permissions_of, topic_permission, topics_of
from deniable.cluster.topics.findings import operations_of, setting_findings, settings_of
from deniable.cluster.topics.plan import plan
from deniable.deploy.cluster.doctor.case import Case
from deniable.deploy.cluster.permissions.acls import AclError
from deniable.deploy.cluster.permissions.quotas import quota_of
from deniable.deploy.cluster.topics.creation import POLICY, NewTopic, validated
from deniable.deploy.cluster.topics.replication import CLUSTERS_OWN
from deniable.protocol.words import number_of

OK, CANNOT, UNKNOWN = "ok", "cannot", "unknown"
UNTRIED = (UNKNOWN, "not tried: the step transactions did not get that far")
COMMITTED_FETCH = 4  # the first version of Fetch with an isolation level
DESCRIBE_ACLS = 29
CLEANUP = "cleanup.policy"
CLEANER = "log.cleaner.enable"
EXPIRATION = "producer.id.expiration.ms"
TIMES = "message.timestamp.type"
LOG_TIME = "LogAppendTime"
TOMBSTONES = "delete.retention.ms"
#: ok, cannot or unknown, and what was seen.
Reply = tuple[str, str]


class Question:
    """One connection, and what several questions ask of it.

    Parameters
    ----------
    admin : connected.
    case : of the examination.
    """

    def __init__(self, admin: KafkaAdminClient, case: Case) -> None:
        self.admin = admin
        self.case = case

    @cached_property
    def brokers(self) -> list[int]:
        """Numbers of the brokers that answer."""
        described = self.admin.describe_cluster()["brokers"]
        there = [each for each in described if address_of(each["host"], each["port"]) not in self.case.away]
        return [each["broker_id"] for each in there]

    @cached_property
    def offered(self) -> Mapping[int, tuple[int, int]]:
        """Least and greatest version of each request of Kafka's protocol that one broker takes."""
        of_broker = self.admin.get_broker_version_data(self.brokers[0])
        found: Mapping[int, tuple[int, int]] = of_broker.api_versions
        return found

    @cached_property
    def settings(self) -> Sequence[Mapping[str, str | None]]:
        """Settings of each broker; None, or no entry, for one that it does not state.

        Raises
        ------
        ClusterAuthorizationFailedError if we may not see them.
        """
        resources = [ConfigResource(ConfigResourceType.BROKER, str(each)) for each in self.brokers]
        found = self.admin.describe_configs(resources, config_filter="all").get("broker", {})
        shown = [{key: each["value"] for key, each in settings.items()} for settings in found.values()]
        if not shown or not all(shown):  # kafka-python ignores the error in the answer
            raise ClusterAuthorizationFailedError
        return shown


@dataclass(frozen=True)
class Trial:
    """What the step `transactions` has tried.

    Parameters
    ----------
    name : of the capability.
    seen : if it has it.
    missed : if it lacks it.
    """

    name: str
    seen: str
    missed: str

    def __call__(self, asked: Question) -> Reply:
        """Report it."""
        proven = asked.case.proven.get(self.name)
        if proven is None:
            return UNTRIED
        return (OK, self.seen) if proven else (CANNOT, self.missed)


def offers(_asked: Question) -> Reply:
    """Need no more than the requests."""
    return OK, "the brokers offer it"


def committed(asked: Question) -> Reply:
    """Whether readers can leave out what was aborted, by the version of Fetch."""
    _, version = asked.offered[1]
    if version < COMMITTED_FETCH:
        return CANNOT, f"the brokers' Fetch ends at version {version}"
    return OK, "the brokers offer it"


def compaction(asked: Question) -> Reply:
    """Whether `state` is compacted, and keeps tombstones for as long as brokers remember a producer."""
    topics = asked.case.configuration.topics
    state = next(each for each in plan(topics) if each.name == topics.state)
    of_topic, is_there = state.settings, topics.state in operations_of(asked.admin, topics)
    if is_there:
        of_topic = settings_of(asked.admin, [topics.state])[topics.state]
    if (policy := of_topic.get(CLEANUP)) != state.settings[CLEANUP]:
        return CANNOT, f"{CLEANUP} of topic {topics.state} is {policy}, so ledgers would lose rows"
    if not (kept := of_topic.get(TOMBSTONES)):
        return CANNOT, f"topic {topics.state} has no {TOMBSTONES}, so it might become unreadable"
    stated = {key: [each.get(key) for each in asked.settings] for key in (CLEANER, EXPIRATION)}
    if "false" in stated[CLEANER]:
        return CANNOT, f"{CLEANER} is false, so topic {topics.state} would grow without end"
    longest = max((int(each) for each in stated[EXPIRATION] if each), default=0)
    if longest > int(kept):
        what = f"{EXPIRATION} {longest} is more than {TOMBSTONES} {kept}"
        return CANNOT, f"{what}, so topic {topics.state} might become unreadable"
    if unstated := [key for key, values in stated.items() if not all(values)]:
        return UNKNOWN, f"the brokers do not state {' and '.join(unstated)}"
    which = TOMBSTONES if is_there else f"the planned {TOMBSTONES}"
    return OK, f"the cleaner runs, and {which} {kept} is at least {EXPIRATION} {longest}"


def append_times(asked: Question) -> Reply:
    """Whether uploads get the broker's time, by the topic's setting: relays write no trial."""
    topics = asked.case.configuration.topics
    if topics.uploads not in operations_of(asked.admin, topics):
        return UNKNOWN, f"topic {topics.uploads} is absent"
    got = settings_of(asked.admin, [topics.uploads])[topics.uploads].get(TIMES)
    return (OK if got == LOG_TIME else CANNOT), f"{TIMES} of topic {topics.uploads} is {got}"


def group_protocol(asked: Question) -> Reply:
    """Whether brokers allow the groups that workers and relays join."""
    try:
        allowed = {each.get(groups.ALLOWED_PROTOCOLS) or groups.PROTOCOL for each in asked.settings}
    except ClusterAuthorizationFailedError:
        return OK, f"{groups.PROTOCOL} groups, which workers and relays join, are offered"
    lacking = [each for each in allowed if groups.PROTOCOL not in each.split(",")]
    return (CANNOT if lacking else OK), f"brokers allow {' and '.join(sorted(lacking or allowed))}"


def topic_settings(asked: Question) -> Reply:
    """Whether topics have the settings that counts depend on, and absent ones would be created with them."""
    allowed = operations_of(asked.admin, asked.case.configuration.topics)
    replies = [_existing(asked, allowed), _absent(asked, allowed)]
    for word in (CANNOT, UNKNOWN):
        for reply in replies:
            if reply[0] == word:
                return reply
    return OK, "; ".join(what for _, what in replies if what)


def _existing(asked: Question, allowed: Mapping[str, set[str]]) -> Reply:
    topics, role = asked.case.configuration.topics, asked.case.role
    there = [each for each in plan(topics) if each.name in allowed]
    seen = [each for each in there if ACLOperation.DESCRIBE_CONFIGS.name in allowed[each.name]]
    if found := setting_findings(asked.admin, seen):
        return CANNOT, found[0].what
    unseen = [each.name for each in there if each not in seen]
    needed = [topic_permission(name, ACLOperation.DESCRIBE_CONFIGS) for name in unseen]
    if lacks := [each.name for each in needed if each in permissions_of(role, topics)]:
        return UNKNOWN, f"not permitted to ask (DescribeConfigs on {', '.join(lacks)})"
    others = f"; {with_article(role)} may not see {number_of(len(unseen), 'other')}" if unseen else ""
    return OK, f"right in {number_of(len(seen), 'topic')}{others}" if seen else ""


def _absent(asked: Question, allowed: Mapping[str, set[str]]) -> Reply:
    planned = plan(asked.case.configuration.topics)
    wanted = [NewTopic(each, CLUSTERS_OWN, each.settings) for each in planned if each.name not in allowed]
    if not wanted:
        return OK, ""
    answers = validated(asked.admin, wanted)
    left = any(each["error_code"] in POLICY for each in answers)
    if left:
        answers = validated(asked.admin, [each.without_choice() for each in wanted])
    for answer in answers:
        if answer["error_code"] == TopicAuthorizationFailedError.errno:
            return UNKNOWN, "not permitted to ask (Create on the topics)"
        if answer["error_code"]:
            word = CANNOT if answer["error_code"] in POLICY else UNKNOWN
            return word, f"topic {answer['name']} is refused: {answer['error_message']}"
    number = number_of(len(wanted), "absent topic")
    return OK, f"{number} would be created with them" + ", but for those that the cluster chooses" * left


def quotas(asked: Question) -> Reply:
    """Whether a principal's quota can be seen."""
    try:
        quota_of(asked.admin, "deniable")
    except AclError as refused:
        raise refused.__cause__ or refused from None
    return OK, "the brokers answer about them"


def authorizer(asked: Question) -> Reply:
    """Whether there is one: it shows us its rules for one topic, or denies them."""
    if DESCRIBE_ACLS not in asked.offered:
        return UNKNOWN, "the brokers do not offer DescribeAcls"
    topic = topics_of(asked.case.role, asked.case.configuration.topics)[0]
    which = ResourcePatternFilter(ResourceType.TOPIC, topic, ACLResourcePatternType.MATCH)
    try:
        rules, _ = asked.admin.describe_acls(
            ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, which)
        )
    except SecurityDisabledError:
        return CANNOT, "the brokers have none"
    except ClusterAuthorizationFailedError:
        return OK, "it does not show us permissions"
    return OK, f"it lists {number_of(len(rules), 'permission')} for topic {topic}"
