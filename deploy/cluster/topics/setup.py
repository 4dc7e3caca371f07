"""The topics of one deployment: made when absent, checked when present."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kafka import KafkaAdminClient
from kafka.admin import ACLOperation
from kafka.errors import (
    InvalidReplicationFactorError,
    KafkaError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
)

from aggregator.ledger.row_values import Genesis
from aggregator.topics.names import Topics
from deploy.cluster.connection.probe import probe
from deploy.cluster.finding import Finding
from deploy.cluster.permissions.findings import lack, missing, permission_findings, unreadable, who
from deploy.cluster.permissions.roles import Role, permissions_of, topic_permission
from deploy.cluster.topics import findings as topic_findings
from deploy.cluster.topics import log_identity
from deploy.cluster.topics.findings import numbers_of
from deploy.cluster.topics.plan import plan, settings_made
from estimators.collection import Collection
from estimators.errors import DeniableError
from producers.transport.cluster import Cluster, PlaintextError

METADATA_SECONDS = 10.0


class TopicSetupError(DeniableError, RuntimeError):
    """The topics cannot be made or used; the message says what to do."""


def create(cluster: Cluster, topics: Topics, replication_factor: int) -> list[str]:
    """Make the topics that are absent, and note in a new `state` which log it counts.

    Returns
    -------
    Their names; empty when all were there already.

    Raises
    ------
    TopicSetupError when a present one does not fit or the broker refuses. That `state` was deleted, and is to
    be rebuilt, is a finding of `check`.
    """
    with connected(cluster) as admin:
        wanted = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": replication_factor,
                "configs": settings_made(topic, replication_factor),
            }
            for topic in plan(topics)
        }
        present = numbers_of(admin, topics)
        # Before more are made beside them.
        refuse(topic_findings.number_findings(admin, cluster, topics, present))
        absent = sorted(set(wanted) - present.keys())
        if absent:
            _create(admin, cluster, topics, {name: wanted[name] for name in absent})
        refuse(topic_findings.topic_findings(admin, cluster, topics))
        log_identity.begin(admin, cluster, topics, reports_made=topics.reports in absent)
    return absent


def _create(
    admin: KafkaAdminClient, cluster: Cluster, topics: Topics, wanted: Mapping[str, Mapping[str, object]]
) -> None:
    """Make topics and wait until all are known; one that somebody else makes meanwhile is no error."""
    for topic in admin.create_topics(wanted, raise_errors=False)["topics"]:
        name, error, said = topic["name"], topic["error_code"], topic["error_message"]
        if error == InvalidReplicationFactorError.errno:
            factor = wanted[name]["replication_factor"]
            said = f"kafka.replication_factor must be at most the number of brokers, got {factor} ({said})"
        if error == TopicAuthorizationFailedError.errno:
            said = f"{who(cluster)} may not; run it as an administrator of the cluster"
        if error not in (0, TopicAlreadyExistsError.errno):
            raise TopicSetupError(f"topic {name} cannot be made: {said}")
    deadline = time.monotonic() + METADATA_SECONDS
    while not wanted.keys() <= numbers_of(admin, topics).keys() and time.monotonic() < deadline:
        time.sleep(0.1)


def check(
    cluster: Cluster,
    topics: Topics,
    role: Role | None = Role.AGGREGATOR,
    collections: Sequence[Collection] = (),
) -> list[Finding]:
    """What is wrong with the topics, with what they hold, and with our permissions; empty when all is well.

    Parameters
    ----------
    cluster, topics : of the deployment.
    role : for which we must be allowed what it needs; None for who makes topics, and does none of the work. A
        producer and a reader see only their own topics.
    collections : of the collection file, for how long reports must be kept.
    """
    with connected(cluster) as admin:
        lacks = [] if role is None else permission_findings(admin, cluster, topics, role)
        if role is Role.PRODUCER:
            return lacks or topic_findings.reports_findings(admin, topics)
        if role is Role.READER:
            names = (topics.estimates, topics.windows)
            return lacks + [
                each for name in names for each in topic_findings.fit_findings(admin, topics, name)
            ]
        limits = topic_findings.limits_exceeded(admin, topics, collections)
        if lacks:
            return lacks + topic_findings.visible_findings(admin, topics) + limits
        found = topic_findings.topic_findings(admin, cluster, topics)
        return (found or log_identity.findings(admin, cluster, topics)) + limits


def require(cluster: Cluster, topics: Topics) -> Genesis:
    """Identity of the log, if all topics are there and fit and we may do an aggregator's work.

    Raises
    ------
    TopicSetupError with a line for each finding.
    """
    with connected(cluster) as admin:
        _refuse_lacks(admin, cluster, topics, Role.AGGREGATOR)
        refuse(topic_findings.topic_findings(admin, cluster, topics))
        return log_identity.log_of(admin, topics)


def partitions_of(cluster: Cluster, topics: Topics, name: str) -> int:
    """Number of partitions of one of the topics, whatever its settings.

    Raises
    ------
    TopicSetupError if it is absent, or must not be read.
    """
    with connected(cluster) as admin:
        _refuse_unreadable(admin, cluster, topics, name)
        numbers = numbers_of(admin, topics)
        if name not in numbers:
            refuse([topic_findings.absence(name)])
        return numbers[name]


def require_readable(cluster: Cluster, topics: Topics, name: str) -> None:
    """Check the one topic that is read; TopicSetupError if it is absent, unfit, or must not be read."""
    with connected(cluster) as admin:
        _refuse_unreadable(admin, cluster, topics, name)
        refuse(topic_findings.fit_findings(admin, topics, name))


def _refuse_unreadable(admin: KafkaAdminClient, cluster: Cluster, topics: Topics, name: str) -> None:
    asked = topic_permission(name, ACLOperation.READ)
    if not missing(admin, topics, [asked]):
        return
    roles = [role for role in (Role.READER, Role.AGGREGATOR) if asked in permissions_of(role, topics)]
    refuse([unreadable(cluster, asked, roles[0]) if roles else lack(cluster, [asked], None)])


def _refuse_lacks(
    admin: KafkaAdminClient,
    cluster: Cluster,
    topics: Topics,
    role: Role,
) -> None:
    if lacks := missing(admin, topics, permissions_of(role, topics)):
        refuse([lack(cluster, lacks, role)])


def standing(cluster: Cluster, topics: Topics) -> tuple[Genesis, list[Finding]]:
    """Identity of the log, and settings under which no worker should go on counting, as they are now.

    Of a topic that is absent nothing is said, or made again with other partitions: whoever uses it notices.

    Raises
    ------
    TopicSetupError if there is no log, or the broker does not tell.
    """
    with connected(cluster) as admin:
        present = numbers_of(admin, topics)
        counted = (topics.reports, topics.state, topics.counts)
        there = [
            topic
            for topic in plan(topics)
            if topic.name in counted and present.get(topic.name) == topic.partitions
        ]
        return log_identity.log_of(admin, topics), topic_findings.setting_findings(admin, there)


def require_reports(cluster: Cluster, topics: Topics) -> None:
    """Check the one topic that a producer writes to; TopicSetupError with a line for each finding."""
    with connected(cluster) as admin:
        _refuse_lacks(admin, cluster, topics, Role.PRODUCER)
        refuse(topic_findings.reports_findings(admin, topics))


def refuse(findings: Sequence[Finding]) -> None:
    """Raise TopicSetupError with a line for each finding, if there is any."""
    if findings:
        raise TopicSetupError("\n".join(map(str, findings)))


@contextmanager
def connected(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    """A client for administration; UnreachableError, or TopicSetupError with what the broker refused."""
    probe(cluster)
    try:
        admin = KafkaAdminClient(**cluster.client_settings())
        try:
            cluster.check_advertised(broker.host for broker in admin._manager.cluster.brokers())
            yield admin
        finally:
            admin.close()
    except KafkaError as error:
        raise TopicSetupError(f"Kafka at {cluster.bootstrap_servers} refused: {error}") from error
    except PlaintextError as error:
        raise TopicSetupError(str(error)) from error
