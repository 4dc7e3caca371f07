"""Requests of Kafka's protocol that kafka-python's clients have no method for, over their connections."""

from typing import Any, Protocol

from kafka import KafkaAdminClient
from kafka.protocol.metadata import CoordinatorType


class Manager(Protocol):
    """The part of kafka-python's KafkaConnectionManager that is used. A client's thread runs it."""

    def call_soon(self, work: Any) -> Any:
        """Schedule a coroutine function on that thread; return its future. Any thread may call this."""

    def send(self, request: Any, node_id: int | None = None) -> Any:
        """Send a request; return a future of the answer. Only that thread may call this."""


def manager_of(client: Any) -> Manager:
    """Return the manager of a KafkaAdminClient or of a producer's KafkaNetClient."""
    manager: Manager = client._manager
    return manager


def ask(admin: KafkaAdminClient, request: Any) -> Any:
    """Send a request to any broker and return the answer; KafkaError."""
    return admin._manager.run(admin._manager.send, request)


def ask_coordinator(admin: KafkaAdminClient, key: str, request: Any, *, of_transactions: bool = False) -> Any:
    """Send a request to the coordinator of a group, or of a transactional id; KafkaError.

    Parameters
    ----------
    admin : connected.
    key : the group, or the transactional id.
    request : of Kafka's protocol.
    of_transactions : whether `key` is a transactional id.
    """

    async def find_and_ask() -> Any:
        kind = CoordinatorType.TRANSACTION if of_transactions else CoordinatorType.GROUP
        node = await admin._find_coordinator_id(key, kind)
        return await admin._manager.send(request, node_id=node)

    return admin._manager.run(find_and_ask)
