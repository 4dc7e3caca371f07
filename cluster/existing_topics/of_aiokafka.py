"""aiokafka's clients.

Rule: aiokafka 0.14 has no setting for it, so its one method that asks about topics is replaced: of a client,
or of the class in a process of ours, where libraries create clients.
"""

from functools import partial
from types import FunctionType, MethodType

from aiokafka import client as aiokafka_client
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.metadata import MetadataRequest

#: aiokafka's method, in whose module the request has another default.
_ask = FunctionType(
    AIOKafkaClient._metadata_update.__code__,
    vars(aiokafka_client) | {"MetadataRequest": partial(MetadataRequest, allow_auto_topic_creation=False)},
)


def create_no_topics(client: AIOKafkaClient) -> None:
    """Let this client create no topic."""
    client._metadata_update = MethodType(_ask, client)


def create_no_topics_here() -> None:
    """Let no client of aiokafka in this process create a topic. For our own programs, not for others'."""
    AIOKafkaClient._metadata_update = _ask
