"""A cluster of three brokers on loopback, and what faults do to it and ask of it."""

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any, Self

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError

from deniable.deploy.broker.errors import BrokerError
from deniable.deploy.broker.process import new_cluster_id
from tests.chaos.processes.cluster.links import Cut, Links
from tests.chaos.processes.cluster.node import Node, Ports
from tests.support.processes import wait_until

REPLICATION = 3
START_SECONDS = 120.0
MOVE_SECONDS = 60.0
ANSWER_MILLISECONDS = 5000
Leaders = Mapping[tuple[str, int], int]  # by topic and partition, a node's number


class ChaosCluster:
    """Three nodes, numbered from 1, and the links between them."""

    def __init__(self) -> None:
        ports, cluster_id = [Ports() for _ in range(REPLICATION)], new_cluster_id()
        self.links = Links()
        self.nodes = {number: Node(number, ports, cluster_id) for number in range(1, REPLICATION + 1)}
        self._ports = ports
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.links.start()
        self._stack.callback(self.links.close)
        for number, at in enumerate(self._ports, 1):
            self.links.serve(at.brokers_proxy, number, at.brokers)
            self.links.serve(at.controllers_proxy, number, at.controllers)
        try:
            for node in self.nodes.values():
                self._stack.callback(node.stop)
            self.start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        for node in self.nodes.values():
            node.kill()  # one after the other, the last two would wait for a quorum
        self._stack.close()

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect, of all nodes."""
        return self.servers_but()

    def servers_but(self, *without: int) -> str:
        """Where clients connect that do not ask some of the nodes."""
        nodes = self.nodes.items()
        return ",".join(node.bootstrap_servers for number, node in nodes if number not in without)

    def start(self) -> None:
        """Start the nodes that do not run, and wait until each replica of all topics is in sync."""
        for node in self.nodes.values():
            node.start()
        if not wait_until(self.is_whole, START_SECONDS):
            raise BrokerError("the cluster is not in sync")

    def resume(self) -> None:
        """Heal the links and continue paused nodes."""
        self.links.cut()
        for node in self.nodes.values():
            node.resume()

    def isolate(self, number: int) -> None:
        """Cut a node off from the other brokers and controllers; clients still reach it."""
        one, others = frozenset({number}), frozenset(self.nodes.keys() - {number})
        self.links.cut(Cut(one, others), Cut(others, one))

    def stop_fetching(self, follower: int, leader: int) -> None:
        """Keep a follower from fetching of a leader; everything else between them goes on."""
        self.links.cut(Cut(frozenset({follower}), frozenset({leader}), only_fetches=True))

    def is_whole(self) -> bool:
        """Return whether all nodes know of each other, and that all replicas are in sync."""
        try:
            return all(_knows_all(node.bootstrap_servers) for node in self.nodes.values())
        except (KafkaError, OSError):
            return False

    def leaders(self, *without: int) -> Leaders:
        """Return the leader of each partition, as told by the others; empty without answer."""
        servers = self.servers_but(*without)
        with (
            suppress(KafkaError),  # at first the others still name a paused node, and the client may ask that
            _admin(servers) as admin,
        ):
            return {(t["name"], p["partition_index"]): p["leader_id"] for t, p in _partitions(admin)}
        return {}

    def controller(self) -> int:
        """Return the active controller's number."""
        with _admin(self.bootstrap_servers) as admin:
            quorum = admin.describe_metadata_quorum()
        return int(quorum["topics"][0]["partitions"][0]["leader_id"])

    def lead(self, leaders: Leaders, other: int) -> None:
        """Move leaders: of these partitions to these nodes, of all others to `other`.

        Raises
        ------
        BrokerError if they have not moved within a minute.
        """
        with _admin(self.bootstrap_servers) as admin:
            wanted = {each: leaders.get(each, other) for each in self.leaders()}
            order = {first: sorted(self.nodes, key=lambda n, first=first: n != first) for first in self.nodes}
            admin.alter_partition_reassignments(
                {TopicPartition(*each): order[first] for each, first in wanted.items()}
            )

            def moved() -> bool:
                admin.elect_leaders(0, raise_errors=False)
                return wanted.items() <= self.leaders().items()

            if not wait_until(moved, MOVE_SECONDS):
                raise BrokerError("the leaders do not move")


def _admin(servers: str) -> KafkaAdminClient:
    """A client that soon gives up a node that is away, not only after half a minute."""
    return KafkaAdminClient(
        bootstrap_servers=servers,
        bootstrap_timeout_ms=ANSWER_MILLISECONDS,
        request_timeout_ms=ANSWER_MILLISECONDS,
    )


def _knows_all(servers: str) -> bool:
    with _admin(servers) as admin:
        return len(admin.describe_cluster()["brokers"]) == REPLICATION and all(
            len(p["isr_nodes"]) == len(p["replica_nodes"]) for _, p in _partitions(admin)
        )


def _partitions(admin: KafkaAdminClient) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    return [(topic, partition) for topic in admin.describe_topics() for partition in topic["partitions"]]
