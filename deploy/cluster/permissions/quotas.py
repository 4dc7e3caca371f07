"""Limit the bytes a second that each producer and edge may send to each broker, so none can fill a topic.

Kafka throttles those above the limit; it refuses nothing.
"""

from collections.abc import Iterable

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, for_code
from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from deniable.cluster.connection.requests import ask
from deniable.cluster.permissions.roles import Role
from deniable.deploy.cluster.permissions.acls import refusal

DEFAULT_BYTES_PER_SECOND = 10_000_000
EDGE_BYTES_PER_SECOND = 50_000_000  # an edge sends what many devices upload
USUAL = {Role.PRODUCER: DEFAULT_BYTES_PER_SECOND, Role.EDGE: EDGE_BYTES_PER_SECOND}
KEY = "producer_byte_rate"
EXACTLY = 0  # match an entity by its exact name


def limit(
    admin: KafkaAdminClient,
    names: Iterable[str],
    bytes_per_second: int | None,
    usual: int = DEFAULT_BYTES_PER_SECOND,
) -> list[str]:
    """Set the quota of producers or edges.

    Parameters
    ----------
    admin : connected as a principal that may alter the cluster's settings.
    names : of the principals, without `User:`.
    bytes_per_second : for each, >= 0, 0 for no quota; None: `usual` for those without a quota.
    usual : see there.

    Returns
    -------
    A line for each changed quota.

    Raises
    ------
    AclError; KafkaError.
    """
    changed = []
    for name in names:
        present = quota_of(admin, name)
        wanted = present or usual if bytes_per_second is None else bytes_per_second or None
        if wanted != present:
            _set(admin, name, wanted)
            changed.append(f"User:{name} sends {_in_words(wanted)}")
    return changed


def quota_of(admin: KafkaAdminClient, name: str) -> float | None:
    """Return the bytes a second that a principal may send to a broker; None without a limit."""
    answer = ask(admin, _question(name))
    _raise(answer.error_code, answer.error_message)
    values = {each.key: each.value for entry in answer.entries or () for each in entry.values}
    return values.get(KEY)


def _question(name: str) -> DescribeClientQuotasRequest:
    user = DescribeClientQuotasRequest.ComponentData(entity_type="user", match_type=EXACTLY, match=name)
    return DescribeClientQuotasRequest(components=[user], strict=True)


def _set(admin: KafkaAdminClient, name: str, bytes_per_second: float | None) -> None:
    entry = AlterClientQuotasRequest.EntryData
    wanted = entry(
        entity=[entry.EntityData(entity_type="user", entity_name=name)],
        ops=[entry.OpData(key=KEY, value=bytes_per_second or 0.0, remove=bytes_per_second is None)],
    )
    request = AlterClientQuotasRequest(entries=[wanted], validate_only=False)
    for each in ask(admin, request).entries:
        _raise(each.error_code, each.error_message)


def _raise(code: int, message: str | None) -> None:
    if code:
        error: KafkaError = for_code(code)(message)
        raise refusal(error) from error


def _in_words(bytes_per_second: float | None) -> str:
    if bytes_per_second is None:
        return "without a quota"
    return f"at most {bytes_per_second:,.0f} bytes a second to each broker"
