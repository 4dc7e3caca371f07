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
from deniable.cluster.topics.findings import numbers_of, operations_of, setting_findings, settings_of
from deniable.cluster.topics.plan import DAY_MILLISECONDS, plan
from deniable.deploy.cluster.doctor.case import Case
from deniable.deploy.cluster.permissions.acls import AclError
from deniable.deploy.cluster.permissions.quotas import quota_of
from deniable.deploy.cluster.topics.creation import POLICY, NewTopic, validated
from deniable.deploy.cluster.topics.replication import CLUSTERS_OWN
from deniable.protocol.words import number_of

OK, CANNOT, UNKNOWN = "ok", "cannot", "unknown"
UNTRIED = (UNKNOWN, "not tried: the step transactions did not get so far")
COMMITTED_FETCH = 4  # the first version of Fetch with an isolation level
DESCRIBE_ACLS = 29
CLEANER = "log.cleaner.enable"
DESCRIBE_CONFIGS = "DESCRIBE_CONFIGS"
EXPIRATION = "producer.id.expiration.ms"
TOMBSTONES = "delete.retention.ms"
ANYTHING = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)
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
    def settings(self) -> Sequence[Mapping[str, str]]:
        """Settings of each broker.

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
    return OK, "offered"


def committed(asked: Question) -> Reply:
    """Whether readers can leave out what was aborted, by the version of Fetch."""
    _, version = asked.offered[1]
    return (OK, "offered") if version >= COMMITTED_FETCH else (CANNOT, f"its Fetch ends at version {version}")


def compaction(asked: Question) -> Reply:
    """Whether brokers compact, and keep tombstones for as long as they remember a producer."""
    topics = asked.case.configuration.topics
    kept = DAY_MILLISECONDS
    if topics.state in numbers_of(asked.admin, topics):
        of_topic = settings_of(asked.admin, [topics.state])[topics.state]
        if TOMBSTONES not in of_topic:
            return CANNOT, f"topics have no {TOMBSTONES}"
        kept = int(of_topic[TOMBSTONES])
    for settings in asked.settings:
        if settings.get(CLEANER) == "false":
            return CANNOT, f"{CLEANER} is false"
        if int(settings.get(EXPIRATION, 0)) > kept:
            return CANNOT, f"{EXPIRATION} {settings[EXPIRATION]} is more than {TOMBSTONES} {kept}"
    return OK, f"{TOMBSTONES} {kept} outlasts {EXPIRATION}"


def group_protocol(asked: Question) -> Reply:
    """Whether brokers allow the groups that workers and relays join."""
    try:
        allowed = {each.get(groups.ALLOWED_PROTOCOLS) or groups.PROTOCOL for each in asked.settings}
    except ClusterAuthorizationFailedError:
        return OK, f"{groups.PROTOCOL} groups, which workers and relays join, are offered"
    lacking = [each for each in allowed if groups.PROTOCOL not in each.split(",")]
    return (CANNOT if lacking else OK), f"brokers allow {' and '.join(sorted(lacking or allowed))}"


def topic_settings(asked: Question) -> Reply:
    """Whether topics have the settings that counts depend on, or the brokers would create them so."""
    topics = asked.case.configuration.topics
    allowed = operations_of(asked.admin, topics)
    if not (absent := [each for each in plan(topics) if each.name not in allowed]):
        seen = [each for each in plan(topics) if DESCRIBE_CONFIGS in allowed[each.name]]
        if not seen:
            return UNKNOWN, "not permitted to ask (DescribeConfigs on the topics)"
        found = setting_findings(asked.admin, seen)
        return (CANNOT, found[0].what) if found else (OK, f"{number_of(len(seen), 'topic')} have them")
    wanted = [NewTopic(each, CLUSTERS_OWN, each.settings) for each in absent]
    answers = validated(asked.admin, wanted)
    left = any(each["error_code"] in POLICY for each in answers)
    if left:
        answers = validated(asked.admin, [each.without_choice() for each in wanted])
    for answer in answers:
        if answer["error_code"] == TopicAuthorizationFailedError.errno:
            raise TopicAuthorizationFailedError
        if answer["error_code"] in POLICY:
            return CANNOT, f"topic {answer['name']} is refused: {answer['error_message']}"
        if answer["error_code"]:
            return UNKNOWN, f"topic {answer['name']} is refused: {answer['error_message']}"
    return OK, "topics would be created so" + ", but for those that this cluster chooses itself" * left


def quotas(asked: Question) -> Reply:
    """Whether a principal's quota can be seen."""
    try:
        quota_of(asked.admin, "deniable")
    except AclError as refused:
        raise refused.__cause__ or refused from None
    return OK, "offered"


def authorizer(asked: Question) -> Reply:
    """Whether there is one: it shows us its rules, or denies them."""
    if DESCRIBE_ACLS not in asked.offered:
        return UNKNOWN, "no DescribeAcls"
    try:
        asked.admin.describe_acls(ANYTHING)
    except SecurityDisabledError:
        return CANNOT, "the brokers have none"
    except ClusterAuthorizationFailedError:
        return OK, "it denies us its list of permissions"
    return OK, "it lists permissions"
