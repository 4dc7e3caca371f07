"""Our two consumer groups: workers divide the partitions of `reports`, relays those of `uploads`.

Rule: both use Kafka's classic group protocol, the only one of aiokafka 0.14; brokers offer it beside that of
KIP-848, as they are shipped. No count depends on either: two members that believe in the same partition are
told apart by transactions (workers), or make the same packs, which count once (relays). What a broker without
the classic protocol would change is this file, and how `faust_app` and `relay.service.group` join.
"""

from typing import NamedTuple


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
