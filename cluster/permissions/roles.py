"""The permissions that each role needs on a secured cluster, and no others.

Rule: Read and Write include Describe, and transactional and idempotent producers need only Write. A test
removes one permission after the other, and so finds those that are not needed.
"""

from enum import StrEnum
from typing import NamedTuple

from kafka.admin import ACLOperation, ACLResourcePatternType, ResourcePattern, ResourceType

from deniable.protocol.topic_names import Topics

_KINDS = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
}


class Role(StrEnum):
    """The work that a principal does."""

    PRODUCER = "producer"
    AGGREGATOR = "aggregator"
    READER = "reader"
    EDGE = "edge"
    RELAY = "relay"


class Permission(NamedTuple):
    """One operation on one resource.

    Parameters
    ----------
    kind : of the resource: topic, group or transactional id.
    name : of the resource.
    operation : that is allowed.
    is_prefix : True for all resources whose names begin with `name`.
    """

    kind: ResourceType
    name: str
    operation: ACLOperation
    is_prefix: bool = False

    @property
    def pattern(self) -> ResourcePattern:
        """The resource, as Kafka's clients name it."""
        kinds = ACLResourcePatternType
        return ResourcePattern(self.kind, self.name, kinds.PREFIXED if self.is_prefix else kinds.LITERAL)

    def __str__(self) -> str:
        kind = f"{_KINDS[self.kind]}{'s' if self.is_prefix else ''}"
        return f"{words(self.operation)} {kind} {self.name}{'*' if self.is_prefix else ''}"


def permissions_of(role: Role, topics: Topics) -> list[Permission]:
    """Return all permissions that a role needs."""
    match role:
        case Role.PRODUCER:
            return [
                topic_permission(topics.reports, ACLOperation.WRITE),
                topic_permission(topics.collections, ACLOperation.READ),
            ]
        case Role.AGGREGATOR:
            return _of_aggregator(topics)
        case Role.READER:
            return [
                topic_permission(topics.estimates, ACLOperation.READ),
                topic_permission(topics.windows, ACLOperation.READ),
                Permission(ResourceType.GROUP, topics.reader_groups, ACLOperation.READ, is_prefix=True),
            ]
        case Role.EDGE:
            return [topic_permission(topics.uploads, ACLOperation.WRITE)]
        case Role.RELAY:
            return _of_relay(topics)


def required_permissions(role: Role, topics: Topics) -> list[Permission]:
    """Return the permissions without which a role cannot work.

    The topic `collections` only lets producers notice that their parameters differ: deployments that were
    created without it work on.
    """
    return [each for each in permissions_of(role, topics) if each.name != topics.collections]


def _of_aggregator(topics: Topics) -> list[Permission]:
    read = (topics.reports, topics.state, topics.counts, topics.estimates, topics.windows)
    written = (topics.state, topics.counts, topics.rejected, topics.estimates, topics.windows)
    return [
        *(topic_permission(name, ACLOperation.READ) for name in read),
        *(topic_permission(name, ACLOperation.WRITE) for name in (topics.reports, *written)),  # markers
        # Workers check settings that change counts, at their start and while they run.
        *(
            topic_permission(name, ACLOperation.DESCRIBE_CONFIGS)
            for name in dict.fromkeys((topics.reports, *written))
        ),
        topic_permission(topics.collections, ACLOperation.READ),
        topic_permission(topics.collections, ACLOperation.WRITE),
        Permission(ResourceType.GROUP, topics.group, ACLOperation.READ),
        Permission(
            ResourceType.TRANSACTIONAL_ID, topics.transactional_ids, ACLOperation.WRITE, is_prefix=True
        ),
        *(_of_waiting(topics) if topics.takes_uploads else ()),
    ]


def _of_waiting(topics: Topics) -> tuple[Permission, ...]:
    """Workers see how far relays have sent."""
    return (
        topic_permission(topics.uploads, ACLOperation.DESCRIBE),
        Permission(ResourceType.GROUP, topics.relay_group, ACLOperation.DESCRIBE),
    )


def _of_relay(topics: Topics) -> list[Permission]:
    return [
        topic_permission(topics.uploads, ACLOperation.READ),
        # Relays append markers and settings.
        *(
            topic_permission(name, ACLOperation.WRITE)
            for name in (topics.uploads, topics.reports, topics.rejected_uploads)
        ),
        topic_permission(topics.uploads, ACLOperation.DESCRIBE_CONFIGS),
        Permission(ResourceType.GROUP, topics.relay_group, ACLOperation.READ),
    ]


def topics_of(role: Role, topics: Topics) -> list[str]:
    """Return the names of the topics that a role works with."""
    asked = permissions_of(role, topics)
    return list(dict.fromkeys(each.name for each in asked if each.kind is ResourceType.TOPIC))


def roles_of(topics: Topics) -> list[Role]:
    """Return the roles of a deployment: edges and relays only if it takes uploads."""
    of_uploads = (Role.EDGE, Role.RELAY)
    return [role for role in Role if topics.takes_uploads or role not in of_uploads]


def topic_permission(name: str, operation: ACLOperation) -> Permission:
    """One operation on one topic."""
    return Permission(ResourceType.TOPIC, name, operation)


def words(operation: ACLOperation) -> str:
    """An operation as kafka-acls.sh writes it: DescribeConfigs."""
    return "".join(part.capitalize() for part in operation.name.split("_"))
