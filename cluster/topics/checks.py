"""Check the topics that a program uses before it begins."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from kafka import KafkaAdminClient
from kafka.admin import ACLOperation
from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, UnknownTopicOrPartitionError

from deniable.cluster.cluster import Cluster, PlaintextError
from deniable.cluster.connection.outage import why_unavailable
from deniable.cluster.connection.probe import BrokerAwayError, probe
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.findings import lack, missing, unreadable
from deniable.cluster.permissions.roles import (
    Role,
    permissions_of,
    required_permissions,
    topic_permission,
    topics_of,
)
from deniable.cluster.topics import findings as topic_findings
from deniable.cluster.topics.findings import numbers_of
from deniable.estimators.collection import Collection
from deniable.estimators.errors import DeniableError
from deniable.protocol.topic_names import Topics

#: Longer than a broker that has died is still named by the others, and its partitions have no other leader.
AWAY_SECONDS = 20.0
AGAIN_SECONDS = 0.5
READING_ROLES = (Role.READER, Role.AGGREGATOR, Role.RELAY)
NO_UPLOADS = (
    "the collection file has no section edge or relay; write relay: {} into it, then run deniable topics "
    "create"
)


P = ParamSpec("P")
T = TypeVar("T")


class TopicSetupError(DeniableError, RuntimeError):
    """The topics cannot be created or used; the message says what to do."""


def patient(ask: Callable[P, T]) -> Callable[P, T]:
    """Let a question be asked again while one of several brokers is away; BrokerAwayError in the end."""

    @wraps(ask)
    def again(*of: P.args, **how: P.kwargs) -> T:
        deadline = time.monotonic() + AWAY_SECONDS
        while True:
            try:
                return ask(*of, **how)
            except BrokerAwayError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(AGAIN_SECONDS)

    return again


@patient
def partitions_of(cluster: Cluster, topics: Topics, name: str) -> int:
    """Return a topic's number of partitions, whatever its settings.

    Raises
    ------
    TopicSetupError if it is absent or we may not read it.
    """
    with connected(cluster) as admin:
        _refuse_unreadable(admin, cluster, topics, name)
        numbers = numbers_of(admin, topics)
        if name not in numbers:
            is_unasked = name in (topics.uploads, topics.rejected_uploads) and not topics.takes_uploads
            absence = topic_findings.absence(name)
            refuse([absence._replace(remedy=NO_UPLOADS) if is_unasked else absence])
        return numbers[name]


@patient
def require_readable(cluster: Cluster, topics: Topics, name: str) -> None:
    """Check the topic to read; TopicSetupError if it is absent or unfit, or if we may not read it."""
    with connected(cluster) as admin:
        _refuse_unreadable(admin, cluster, topics, name)
        refuse(topic_findings.fit_findings(admin, topics, name))


def _refuse_unreadable(admin: KafkaAdminClient, cluster: Cluster, topics: Topics, name: str) -> None:
    asked = topic_permission(name, ACLOperation.READ)
    if not missing(admin, topics, [asked]):
        return
    roles = [role for role in READING_ROLES if asked in permissions_of(role, topics)]
    refuse([unreadable(cluster, asked, roles[0]) if roles else lack(cluster, [asked], None)])


def refuse_lacks(
    admin: KafkaAdminClient,
    cluster: Cluster,
    topics: Topics,
    role: Role,
) -> None:
    """Raise TopicSetupError with the permissions that the role lacks, if any."""
    if lacks := missing(admin, topics, required_permissions(role, topics)):
        refuse([lack(cluster, lacks, role)])


@patient
def require_reports(cluster: Cluster, topics: Topics) -> None:
    """Check the topic that producers write to; TopicSetupError with a line for each finding."""
    with connected(cluster) as admin:
        refuse_lacks(admin, cluster, topics, Role.PRODUCER)
        refuse(topic_findings.reports_findings(admin, topics))


@patient
def require_uploads(cluster: Cluster, topics: Topics, role: Role, collections: Sequence[Collection]) -> None:
    """Check the topics of an edge or a relay; TopicSetupError with a line for each finding but warnings.

    Parameters
    ----------
    cluster, topics : of the deployment.
    role : Role.EDGE or Role.RELAY.
    collections : of the collection file; they determine how long uploads must be kept.
    """
    with connected(cluster) as admin:
        refuse_lacks(admin, cluster, topics, role)
        refuse([each for each in of_uploads(admin, topics, role, collections) if not each.is_warning])


def of_uploads(
    admin: KafkaAdminClient, topics: Topics, role: Role, collections: Sequence[Collection]
) -> list[Finding]:
    """Find what is wrong with the topics of an edge or a relay, which may see no others."""
    if not topics.takes_uploads:
        return [Finding("no device can upload", NO_UPLOADS[0].upper() + NO_UPLOADS[1:])]
    names = topics_of(role, topics)
    found = topic_findings.upload_findings(admin, topics, names)
    is_whole = role is Role.RELAY and not found
    return found + (topic_findings.limits_exceeded(admin, topics, collections, names) if is_whole else [])


def refuse(findings: Sequence[Finding]) -> None:
    """Raise TopicSetupError with a line for each finding, if there is any."""
    if findings:
        raise TopicSetupError("\n".join(map(str, findings)))


@contextmanager
def connected(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    """Connect an admin client; UnreachableError, or TopicSetupError with what the broker refused.

    Among the first is BrokerAwayError, raised for what is asked within: of several brokers, one is away.
    """
    advertised = probe(cluster)
    try:
        cluster.check_advertised(host for host, _ in advertised)
        admin = KafkaAdminClient(**cluster.client_settings())
        try:
            yield admin
        finally:
            admin.close()
    except KafkaError as error:
        if _is_away(error):
            why = asyncio.run(why_unavailable(cluster, (), error))
            raise BrokerAwayError(f"Kafka at {cluster.bootstrap_servers} does not answer: {why}") from error
        raise TopicSetupError(f"Kafka at {cluster.bootstrap_servers} refused: {error}") from error
    except PlaintextError as error:
        raise TopicSetupError(str(error)) from error


def _is_away(error: KafkaError) -> bool:
    away = error.retriable or isinstance(error, KafkaConnectionError | KafkaTimeoutError)
    return bool(away) and not isinstance(error, UnknownTopicOrPartitionError)
