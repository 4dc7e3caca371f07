"""Ask an edge what a producer wants to know before it sends: whether it is ready, and what it takes.

Rule: what an edge writes is foreign text, shown without control characters, and cut.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from deniable.config.settings.edge_address import EdgeAddress
from deniable.producers.errors import HopelessError
from deniable.producers.transport.edge.answers import HttpAnswer, unexpected
from deniable.producers.transport.edge.collection_list import (
    COLLECTIONS_PATH,
    MOST_LIST_BYTES,
    CollectionListError,
    read_list,
)
from deniable.producers.transport.edge.connection import EdgeConnection
from deniable.protocol.publication import Publication

READY_PATH = "/readyz"
MOST_REASONS = 3
MOST_CHARACTERS = 200


class EdgeAnswers(NamedTuple):
    """What an edge answered.

    Parameters
    ----------
    listed : to a request for its list of collections, of any status.
    reasons : why it is not ready; None if it does not say whether it is, because a proxy hides it.
    """

    listed: HttpAnswer
    reasons: list[str] | None


def ask_edge(edge: EdgeAddress, seconds: float) -> EdgeAnswers:
    """Ask over one connection.

    Parameters
    ----------
    edge : to ask.
    seconds : for each of connecting and two answers.

    Raises
    ------
    DeliveryError if it does not answer.
    """
    connection = EdgeConnection(edge, seconds, seconds)
    try:
        listed = connection.get(COLLECTIONS_PATH, MOST_LIST_BYTES)
        return EdgeAnswers(listed, _reasons(connection.get(READY_PATH)))
    finally:
        connection.close()


def collections_of(edge: EdgeAddress, answer: HttpAnswer) -> Mapping[str, Publication]:
    """Read the list of collections, by name.

    Raises
    ------
    DeliveryError if the edge fails at the moment; HopelessError if it is no edge, or not the configured one.
    """
    if answer.status != 200:
        raise unexpected(answer.status, edge.url)
    try:
        return read_list(answer.body, None if edge.public_key is None else edge.key)
    except CollectionListError as error:
        raise HopelessError(f"the list of collections of {edge.url} cannot be used: {error}") from None


def _reasons(answer: HttpAnswer) -> list[str] | None:
    if answer.status == 200:
        return []
    if answer.status != 503:
        return None
    try:
        found = json.loads(answer.body)["reasons"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ["it does not say why"]
    shown = [_plain(each) for each in found if isinstance(each, str)] if isinstance(found, list) else []
    return shown[:MOST_REASONS] or ["it does not say why"]


def _plain(text: str) -> str:
    escaped = text if text.isprintable() else json.dumps(text)[1:-1]
    return escaped[:MOST_CHARACTERS]
