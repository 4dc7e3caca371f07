"""Find permissions that our principal lacks and its role needs.

Rule: asking has no effect. For topics and groups the broker lists what is allowed. For transactional ids it
does not, so we ask it to end a transaction that nobody has begun, which changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence

from kafka import KafkaAdminClient
from kafka.admin import ACLOperation, ResourceType
from kafka.errors import (
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
    for_code,
)
from kafka.protocol.producer import EndTxnRequest

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.coordinator import STARTING_ERRORS, patiently
from deniable.cluster.connection.groups import authorized_operations
from deniable.cluster.connection.requests import ask_coordinator
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.roles import (
    Permission,
    Role,
    permissions_of,
    required_permissions,
    roles_of,
    words,
)
from deniable.protocol.topic_names import Topics

NO_PRODUCER = -1  # an id that Kafka assigns to nobody
#: Where a broker, which is not Apache's, leaves out what is allowed: it says so when it refuses.
EVERY = {each.name for each in ACLOperation}


def permission_findings(
    admin: KafkaAdminClient, cluster: Cluster, topics: Topics, role: Role
) -> list[Finding]:
    """Return one finding with all permissions that the role lacks; empty if it has all."""
    lacks = missing(admin, topics, permissions_of(role, topics))
    return [lack_of_role(admin, cluster, topics, role, lacks)] if lacks else []


def lack_of_role(
    admin: KafkaAdminClient, cluster: Cluster, topics: Topics, role: Role, lacks: Sequence[Permission]
) -> Finding:
    """Describe permissions that a role lacks; a warning if it works without them."""
    if all(each not in required_permissions(role, topics) for each in lacks):
        return lack(cluster, lacks, role)._replace(is_warning=True)
    return lack(cluster, lacks, role, suited(admin, topics, role))


def suited(admin: KafkaAdminClient, topics: Topics, other_than: Role) -> Role | None:
    """Return another role that the principal has all permissions for, and whose topics exist; else None.

    The one with the most: a relay may do what a producer does, too.
    """
    for role in sorted(roles_of(topics), key=lambda each: -len(required_permissions(each, topics))):
        asked = required_permissions(role, topics)
        names = {each.name for each in asked if each.kind is ResourceType.TOPIC}
        is_other = role is not other_than and names <= topic_operations(admin, sorted(names)).keys()
        if is_other and not missing(admin, topics, asked):
            return role
    return None


def missing(admin: KafkaAdminClient, topics: Topics, asked: Sequence[Permission]) -> list[Permission]:
    """Return those permissions that the principal of `admin` lacks; none are missing on an absent topic.

    A hidden topic may be neither read nor written; the broker does not say whether its settings may be seen.
    """
    names = {each.name for each in asked if each.kind is ResourceType.TOPIC}
    allowed = topic_operations(admin, sorted(names))
    return [each for each in asked if not _is_allowed(admin, topics, each, allowed)]


def _is_allowed(
    admin: KafkaAdminClient, topics: Topics, asked: Permission, allowed: Mapping[str, set[str]]
) -> bool:
    match asked.kind:
        case ResourceType.TOPIC:
            operations = allowed.get(asked.name)
            if not operations:
                return operations is None or asked.operation is ACLOperation.DESCRIBE_CONFIGS
            return asked.operation.name in operations
        case ResourceType.GROUP:
            group = f"{asked.name}deniable" if asked.is_prefix else asked.name
            return asked.operation.name in group_operations(admin, group)
        case _:
            ids = map(topics.transactional_id, range(topics.partitions))
            return all(may_write_transactions(admin, each) for each in ids)


def topic_operations(admin: KafkaAdminClient, names: Iterable[str]) -> dict[str, set[str]]:
    """Return allowed operations by topic, such as `READ`: none for a hidden topic, no entry if absent."""
    found = {}
    for topic in admin.describe_topics(list(names)):
        if topic["error_code"] == TopicAuthorizationFailedError.errno:
            found[topic["name"]] = set[str]()
        elif not topic["error_code"]:
            operations = topic["authorized_operations"]
            found[topic["name"]] = EVERY if operations is None else set(operations)
    return found


def group_operations(admin: KafkaAdminClient, group: str) -> set[str]:
    """Return allowed operations on a group, which need not exist."""
    try:
        operations = patiently(lambda: authorized_operations(admin, group))
    except GroupAuthorizationFailedError:
        return set()
    return EVERY if operations is None else {each.name for each in ACLOperation if each in operations}


def may_write_transactions(admin: KafkaAdminClient, transactional_id: str) -> bool:
    """Whether a producer with this id may write; a running one is not affected."""
    request = EndTxnRequest(
        transactional_id=transactional_id, producer_id=NO_PRODUCER, producer_epoch=0, committed=False
    )

    def try_to_end() -> None:
        answer = ask_coordinator(admin, transactional_id, request, of_transactions=True)
        error = for_code(answer.error_code)
        # Any other error comes after the check of the permission.
        if error in (*STARTING_ERRORS, TransactionalIdAuthorizationFailedError):
            raise error(transactional_id)

    try:
        patiently(try_to_end)
    except TransactionalIdAuthorizationFailedError:
        return False
    return True


def lack(
    cluster: Cluster, missing: Sequence[Permission], role: Role | None, other: Role | None = None
) -> Finding:
    """Describe missing permissions and the remedy.

    Parameters
    ----------
    cluster : names our principal.
    missing : permissions.
    role : that needs them; None if no role does.
    other : a role that the principal has, if `--as` can choose it.
    """
    what = f"{principal_text(cluster)} may not {', '.join(map(str, missing))}"
    if role is None:
        return Finding(f"{what}, which no role needs", f"allow it with {_acls_lines(cluster, missing)}")
    a_role = with_article(role)
    hint = f"did you mean --as {other}?" if other else f"run it as the principal of {a_role}."
    return Finding(
        f"{what}, which {a_role} needs",
        f"{hint} If it should be {a_role}, let an administrator of the cluster run deniable topics create "
        f"--acls --{role} {principal_name(cluster) or 'NAME'}",
    )


def unreadable(cluster: Cluster, asked: Permission, role: Role) -> Finding:
    """Like `lack`, for a command that needs only this permission: no whole role is granted for it."""
    a_role = with_article(role)
    return Finding(
        f"{principal_text(cluster)} may not {asked}, which {a_role} may",
        f"run it as the principal of {a_role}, or allow this alone: {_acls_lines(cluster, [asked])}",
    )


def with_article(role: Role) -> str:
    """Return the role as sentences name it."""
    return f"{'an' if role in (Role.AGGREGATOR, Role.EDGE) else 'a'} {role}"


def _acls_lines(cluster: Cluster, missing: Iterable[Permission]) -> str:
    return "; ".join(_acls_line(cluster, each) for each in missing)


def _acls_line(cluster: Cluster, missing: Permission) -> str:
    return (
        f"kafka-acls.sh --bootstrap-server {cluster.bootstrap_servers} --add --allow-principal "
        f"User:{principal_name(cluster) or 'NAME'} --operation {words(missing.operation)} "
        f"--topic {missing.name}"
    )


def principal_name(cluster: Cluster) -> str | None:
    """Return our principal's name; None with a certificate, whose subject the broker maps."""
    if cluster.security is None:
        return "ANONYMOUS"
    return cluster.security.username


def principal_text(cluster: Cluster) -> str:
    """Return our principal as messages show it."""
    name = principal_name(cluster)
    if name is None and cluster.security is not None and cluster.security.certificate_file is not None:
        return f"the principal of certificate_file {cluster.security.certificate_file}"
    if name is None and cluster.security is not None and cluster.security.token_source is not None:
        return f"the principal of the token of {cluster.security.token_source}"
    return f"User:{name or 'ANONYMOUS'}"
