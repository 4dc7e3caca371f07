"""Our two consumer groups: workers divide the partitions of `reports`, relays those of `uploads`.

Rule: both use Kafka's classic group protocol, the only one of aiokafka 0.14; brokers offer it beside that of
KIP-848, as they are shipped. No count depends on either: two members that believe in the same partition are
told apart by transactions (workers), or make the same packs, which count once (relays). What a broker without
the classic protocol would change is this file, and how `faust_app` and `relay.service.group` join.
"""

from typing import NamedTuple

from kafka import KafkaAdminClient
from kafka.errors import for_code
from kafka.protocol.admin import DescribeGroupsRequest

from deniable.cluster.connection.requests import ask_coordinator

PROTOCOL = "classic"
#: The setting of brokers that lists the protocols they allow.
ALLOWED_PROTOCOLS = "group.coordinator.rebalance.protocols"
#: The requests of members, by number.
REQUESTS = {
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
}


class MemberTimes(NamedTuple):
    """When a group's members count as dead, all > 0.

    Parameters
    ----------
    session_seconds : without a heartbeat, after which a member's partitions move on.
    heartbeat_seconds : between two heartbeats, from which members also learn that partitions move.
    """

    session_seconds: float
    heartbeat_seconds: float


WORKERS = MemberTimes(10.0, 1.0)
RELAYS = MemberTimes(6.0, 0.5)  # their partitions must be open again within delivery_seconds


def authorized_operations(admin: KafkaAdminClient, group: str) -> set[int] | None:
    """Return numbers of the operations allowed on a group, which need not exist; None if brokers do not say.

    Raises
    ------
    GroupAuthorizationFailedError if we may do nothing; KafkaError.
    """
    # Later versions return no operations for a group that does not exist.
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True, max_version=5)
    (answer,) = ask_coordinator(admin, group, request).groups
    if answer.error_code:
        raise for_code(answer.error_code)(group)
    operations: set[int] | None = answer.authorized_operations
    return operations
