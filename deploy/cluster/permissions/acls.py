"""The permissions of principals: made where they are absent, those beyond the plan told and left alone.

Rule: users and their passwords are not made here. They are the operator's secrets, and this command has no
safe place to put them.
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

from aggregator.topics.names import Topics
from deploy.cluster.permissions.roles import Permission, Role, permissions_of
from estimators.errors import DeniableError

SEEN_SECONDS = 20.0
ANYWHERE = "*"

Principals = Mapping[Role, Sequence[str]]


class AclError(DeniableError, RuntimeError):
    """Permissions or quotas cannot be made; the message says why, and what to do."""


def allow(admin: KafkaAdminClient, topics: Topics, principals: Principals) -> list[str]:
    """Allow each principal what its role needs; returns once the broker abides by it.

    Parameters
    ----------
    admin : connected as somebody who may alter ACLs.
    topics : of the deployment; they need not be there.
    principals : names by role, without `User:`.

    Returns
    -------
    A line for each permission that was made; empty when all were there already.

    Raises
    ------
    AclError; KafkaError.
    """
    made = []
    for role, names in principals.items():
        for name in names:
            wanted = {_acl(name, each): each for each in permissions_of(role, topics)}
            absent = [rule for rule in wanted if rule not in _present(admin, name)]
            _create(admin, name, absent)
            made += [f"User:{name} may {wanted[rule]}" for rule in absent]
    return made


def beyond(admin: KafkaAdminClient, topics: Topics, principals: Principals) -> list[str]:
    """A line for each rule about one of these principals that none of its roles has."""
    planned = {
        _acl(name, each)
        for role, names in principals.items()
        for name in names
        for each in permissions_of(role, topics)
    }
    names = sorted({name for each in principals.values() for name in each})
    return [_told(rule) for name in names for rule in _present(admin, name) if rule not in planned]


def _create(admin: KafkaAdminClient, name: str, rules: Sequence[ACL]) -> None:
    if not rules:
        return
    failed = admin.create_acls(rules)["failed"]  # it returns what other clients raise
    if failed:
        raise refusal(failed[0](f"no permissions for User:{name}"))
    deadline = time.monotonic() + SEEN_SECONDS
    while not set(rules) <= set(_present(admin, name)):
        if time.monotonic() > deadline:
            raise AclError(f"the permissions of User:{name} were made, and the broker does not show them")
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
    """What an answer of the broker means."""
    match error:
        case SecurityDisabledError():
            return AclError(
                "the brokers have no authorizer, so that everybody may do everything, and permissions cannot "
                "be made: set authorizer.class.name on the brokers, or leave --acls out"
            )
        case ClusterAuthorizationFailedError():
            return AclError(
                "this principal may not see or alter ACLs and quotas (Alter and AlterConfigs on the cluster, "
                "which no role of this deployment has): run it as an administrator of the cluster"
            )
    return AclError(f"the broker refuses: {error}")


def _acl(name: str, permission: Permission) -> ACL:
    return ACL(f"User:{name}", ANYWHERE, permission.operation, ACLPermissionType.ALLOW, permission.pattern)


def _told(rule: ACL) -> str:
    found = rule.resource_pattern
    prefixed = found.pattern_type is ACLResourcePatternType.PREFIXED
    kind = found.resource_type.name.lower().replace("_", " ")
    permission = rule.permission_type.name.lower()
    where = "" if rule.host == ANYWHERE else f" from {rule.host}"
    operation = rule.operation.name.replace("_", " ").title().replace(" ", "")
    return f"{rule.principal}: {permission} {operation} {kind} {found.resource_name}{'*' * prefixed}{where}"
