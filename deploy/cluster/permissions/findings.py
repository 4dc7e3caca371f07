"""What the principal that we connect as may not do, though its role needs it: one sentence each.

Rule: asking has no effect. Of topics and groups the broker tells what is allowed; of transactional ids it
does not, so the end of a transaction is asked for that nobody has begun, which changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ACLOperation, ResourceType
from kafka.errors import (
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    for_code,
)
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import EndTxnRequest

from aggregator.topics.names import Topics
from deploy.cluster.connection.coordinator import STARTING_ERRORS, patiently
from deploy.cluster.finding import Finding
from deploy.cluster.permissions.roles import Permission, Role, permissions_of, words
from producers.transport.cluster import Cluster

NO_PRODUCER = -1  # which Kafka gives to nobody


def permission_findings(
    admin: KafkaAdminClient, cluster: Cluster, topics: Topics, role: Role
) -> list[Finding]:
    """One finding about all that the role needs and may not do; empty when it may all."""
    lacks = missing(admin, topics, permissions_of(role, topics))
    return [lack(cluster, lacks, role, suited(admin, topics, role))] if lacks else []


def suited(admin: KafkaAdminClient, topics: Topics, other_than: Role) -> Role | None:
    """Another role whose work the principal may do, and whose topics are there; None if there is none."""
    for role in Role:
        asked = permissions_of(role, topics)
        names = {each.name for each in asked if each.kind is ResourceType.TOPIC}
        is_other = role is not other_than and names <= topic_operations(admin, sorted(names)).keys()
        if is_other and not missing(admin, topics, asked):
            return role
    return None


def missing(admin: KafkaAdminClient, topics: Topics, asked: Sequence[Permission]) -> list[Permission]:
    """Which of them the principal of `admin` has not; of a topic that is absent nothing is missing.

    A topic that is hidden may be neither read nor written; whether its settings may be seen, is not told.
    """
    names = {each.name for each in asked if each.kind is ResourceType.TOPIC}
    allowed = topic_operations(admin, sorted(names))
    return [each for each in asked if not _is_allowed(admin, topics, each, allowed)]


def _is_allowed(
    admin: KafkaAdminClient, topics: Topics, asked: Permission, allowed: Mapping[str, set[str]]
) -> bool:
    match asked.kind:
        case ResourceType.TOPIC:
            told = allowed.get(asked.name)
            if not told:
                return told is None or asked.operation is ACLOperation.DESCRIBE_CONFIGS
            return asked.operation.name in told
        case ResourceType.GROUP:
            group = f"{asked.name}deniable" if asked.is_prefix else asked.name
            return asked.operation.name in group_operations(admin, group)
        case _:
            ids = map(topics.transactional_id, range(topics.partitions))
            return all(may_write_transactions(admin, each) for each in ids)


def topic_operations(admin: KafkaAdminClient, names: Iterable[str]) -> dict[str, set[str]]:
    """What is allowed on each topic, `READ` and so on; nothing on a hidden one, absent ones are left out."""
    found = {}
    for topic in admin.describe_topics(list(names)):
        if topic["error_code"] == TopicAuthorizationFailedError.errno:
            found[topic["name"]] = set[str]()
        elif not topic["error_code"]:
            found[topic["name"]] = set(topic["authorized_operations"])
    return found


def group_operations(admin: KafkaAdminClient, group: str) -> set[str]:
    """What is allowed on a group, which need not be there."""

    async def ask() -> set[str]:
        node = await admin._find_coordinator_id(group)
        # A later version tells nothing of a group that is not there.
        request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True, max_version=5)
        (told,) = (await admin._manager.send(request, node_id=node)).groups
        if told.error_code:
            raise for_code(told.error_code)(group)
        return {ACLOperation(each).name for each in told.authorized_operations}

    try:
        return patiently(lambda: admin._manager.run(ask))
    except GroupAuthorizationFailedError:
        return set()


def may_write_transactions(admin: KafkaAdminClient, transactional_id: str) -> bool:
    """Whether a producer with this id would be let write; one that is at work does not notice."""

    async def ask() -> Any:
        node = await admin._find_coordinator_id(transactional_id, CoordinatorType.TRANSACTION)
        request = EndTxnRequest(
            transactional_id=transactional_id, producer_id=NO_PRODUCER, producer_epoch=0, committed=False
        )
        error = for_code((await admin._manager.send(request, node_id=node)).error_code)
        # Whatever else is wrong with the question was looked at after the permission.
        if error in (*STARTING_ERRORS, TransactionalIdAuthorizationFailedError):
            raise error(transactional_id)

    try:
        patiently(lambda: admin._manager.run(ask))
    except TransactionalIdAuthorizationFailedError:
        return False
    return True


def lack(
    cluster: Cluster, missing: Sequence[Permission], role: Role | None, other: Role | None = None
) -> Finding:
    """What is not allowed, and the remedy.

    Parameters
    ----------
    cluster : whom we connect as.
    missing : what is not allowed.
    role : for which that is needed; None for none.
    other : a role that the principal has, where `--as` chooses between them.
    """
    what = f"{who(cluster)} may not {', '.join(map(str, missing))}"
    if role is None:
        return Finding(f"{what}, which no role needs", f"allow it with {_acls_lines(cluster, missing)}")
    hint = f"did you mean --as {other}?" if other else f"run it as the principal of {_a(role)}."
    return Finding(
        f"{what}, which {_a(role)} needs",
        f"{hint} If it is to be {_a(role)}, let an administrator of the cluster run deniable topics create "
        f"--acls --{role} {principal_name(cluster) or 'NAME'}",
    )


def unreadable(cluster: Cluster, asked: Permission, role: Role) -> Finding:
    """As `lack`, of a command that needs this alone: a whole role is not handed out for it."""
    return Finding(
        f"{who(cluster)} may not {asked}, which {_a(role)} may",
        f"run it as the principal of {_a(role)}, or allow this alone: {_acls_lines(cluster, [asked])}",
    )


def _a(role: Role) -> str:
    return f"{'an' if role is Role.AGGREGATOR else 'a'} {role}"


def _acls_lines(cluster: Cluster, missing: Iterable[Permission]) -> str:
    return "; ".join(_acls_line(cluster, each) for each in missing)


def _acls_line(cluster: Cluster, missing: Permission) -> str:
    return (
        f"kafka-acls.sh --bootstrap-server {cluster.bootstrap_servers} --add --allow-principal "
        f"User:{principal_name(cluster) or 'NAME'} --operation {words(missing.operation)} "
        f"--topic {missing.name}"
    )


def principal_name(cluster: Cluster) -> str | None:
    """Whom the broker takes us for; None with a certificate, whose subject it maps as it is told to."""
    if cluster.security is None:
        return "ANONYMOUS"
    return cluster.security.username


def who(cluster: Cluster) -> str:
    """Whom we connect as, for messages."""
    name = principal_name(cluster)
    if name is None and cluster.security is not None and cluster.security.certificate_file is not None:
        return f"the principal of certificate_file {cluster.security.certificate_file}"
    return f"User:{name or 'ANONYMOUS'}"
