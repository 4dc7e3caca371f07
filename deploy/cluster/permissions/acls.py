"""Create the permissions of principals; report those beyond the plan and leave them alone.

Rule: this does not create users or passwords. They are the operator's secrets, and this command has no safe
place for them.
"""

import time
from collections.abc import Mapping, Sequence

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import ClusterAuthorizationFailedError, KafkaError, SecurityDisabledError

from deniable.cluster.permissions.roles import Permission, Role, permissions_of
from deniable.estimators.errors import DeniableError
from deniable.protocol.topic_names import Topics

SEEN_SECONDS = 20.0
ANYWHERE = "*"

Principals = Mapping[Role, Sequence[str]]


class AclError(DeniableError, RuntimeError):
    """Permissions or quotas cannot be set; the message says why, and what to do."""


def allow(admin: KafkaAdminClient, topics: Topics, principals: Principals) -> list[str]:
    """Allow each principal what its role needs; return once the broker applies it.

    Parameters
    ----------
    admin : connected as a principal that may alter ACLs.
    topics : of the deployment; they need not exist.
    principals : names by role, without `User:`.

    Returns
    -------
    A line for each new permission; empty if all existed.

    Raises
    ------
    AclError; KafkaError.
    """
    created = []
    for role, names in principals.items():
        for name in names:
            wanted = {_acl(name, each): each for each in permissions_of(role, topics)}
            absent = [rule for rule in wanted if rule not in _present(admin, name)]
            _create(admin, name, absent)
            created += [f"User:{name} may {wanted[rule]}" for rule in absent]
    return created


def beyond(admin: KafkaAdminClient, topics: Topics, principals: Principals) -> list[str]:
    """Return a line for each rule about one of these principals that none of its roles needs."""
    planned = {
        _acl(name, each)
        for role, names in principals.items()
        for name in names
        for each in permissions_of(role, topics)
    }
    names = sorted({name for each in principals.values() for name in each})
    return [_in_words(rule) for name in names for rule in _present(admin, name) if rule not in planned]


def _create(admin: KafkaAdminClient, name: str, rules: Sequence[ACL]) -> None:
    if not rules:
        return
    failed = admin.create_acls(rules)["failed"]  # returned, not raised
    if failed:
        raise refusal(failed[0](f"no permissions for User:{name}"))
    deadline = time.monotonic() + SEEN_SECONDS
    while not set(rules) <= set(_present(admin, name)):
        if time.monotonic() > deadline:
            raise AclError(f"the permissions of User:{name} were created, but the broker does not show them")
        time.sleep(0.05)


def _present(admin: KafkaAdminClient, name: str) -> list[ACL]:
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    asked = ACLFilter(f"User:{name}", None, ACLOperation.ANY, ACLPermissionType.ANY, anything)
    try:
        rules: list[ACL] = admin.describe_acls(asked)[0]
    except KafkaError as error:
        raise refusal(error) from error
    return rules


def refusal(error: KafkaError) -> AclError:
    """Explain a broker's refusal."""
    match error:
        case SecurityDisabledError():
            return AclError(
                "the brokers have no authorizer, so everybody may do everything and permissions cannot be "
                "set: set authorizer.class.name on the brokers, or leave --acls out"
            )
        case ClusterAuthorizationFailedError():
            return AclError(
                "this principal may not see or alter ACLs and quotas (Alter and AlterConfigs on the cluster, "
                "which no role of this deployment has): run it as an administrator of the cluster"
            )
    return AclError(f"the broker refuses: {error}")


def _acl(name: str, permission: Permission) -> ACL:
    return ACL(f"User:{name}", ANYWHERE, permission.operation, ACLPermissionType.ALLOW, permission.pattern)


def _in_words(rule: ACL) -> str:
    found = rule.resource_pattern
    prefixed = found.pattern_type is ACLResourcePatternType.PREFIXED
    kind = found.resource_type.name.lower().replace("_", " ")
    permission = rule.permission_type.name.lower()
    where = "" if rule.host == ANYWHERE else f" from {rule.host}"
    operation = rule.operation.name.replace("_", " ").title().replace(" ", "")
    return f"{rule.principal}: {permission} {operation} {kind} {found.resource_name}{'*' * prefixed}{where}"
