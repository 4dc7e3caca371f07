"""Create absent topics of a deployment, and check existing ones."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

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
from deploy.cluster.permissions.findings import lack, missing, permission_findings, principal_text, unreadable
from deploy.cluster.permissions.roles import (
    Role,
    permissions_of,
    required_permissions,
    topic_permission,
    topics_of,
)
from deploy.cluster.topics import findings as topic_findings
from deploy.cluster.topics import log_identity
from deploy.cluster.topics.findings import numbers_of
from deploy.cluster.topics.plan import plan, settings_made
from estimators.collection import Collection
from estimators.errors import DeniableError
from producers.transport.cluster import Cluster, PlaintextError

METADATA_SECONDS = 10.0
READING_ROLES = (Role.READER, Role.AGGREGATOR, Role.RELAY)
NO_UPLOADS = (
    "the collection file has no section edge or relay; write relay: {} into it, then run deniable topics "
    "create"
)


class TopicSetupError(DeniableError, RuntimeError):
    """The topics cannot be created or used; the message says what to do."""


def create(
    cluster: Cluster, topics: Topics, replication_factor: int, collections: Sequence[Collection] = ()
) -> list[str]:
    """Create absent topics, and note in a new `state` which log it counts.

    Parameters
    ----------
    cluster, topics, replication_factor : of the deployment.
    collections : of the collection file; a new `uploads` keeps their uploads long enough.

    Returns
    -------
    Names of the new topics; empty if all existed.

    Raises
    ------
    TopicSetupError if an existing topic does not fit or the broker refuses. A deleted `state`, which must be
    rebuilt, is a finding of `check`.
    """
    with connected(cluster) as admin:
        wanted = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": replication_factor,
                "configs": settings_made(topic, replication_factor)
                | topic_findings.retention_made(topics, topic, collections),
            }
            for topic in plan(topics)
        }
        present = numbers_of(admin, topics)
        # Check existing topics before creating others beside them.
        refuse(topic_findings.number_findings(admin, cluster, topics, present))
        absent = sorted(set(wanted) - present.keys())
        if absent:
            _create(admin, cluster, topics, {name: wanted[name] for name in absent})
        refuse(topic_findings.topic_findings(admin, cluster, topics))
        log_identity.begin(admin, cluster, topics, is_new_log=topics.reports in absent)
    return absent


def _create(
    admin: KafkaAdminClient, cluster: Cluster, topics: Topics, wanted: Mapping[str, Mapping[str, object]]
) -> None:
    """Create topics and wait until all are visible; one created by somebody else meanwhile is no error."""
    for topic in admin.create_topics(wanted, raise_errors=False)["topics"]:
        name, error, message = topic["name"], topic["error_code"], topic["error_message"]
        if error == InvalidReplicationFactorError.errno:
            factor = wanted[name]["replication_factor"]
            message = (
                f"kafka.replication_factor must be at most the number of brokers, got {factor} ({message})"
            )
        if error == TopicAuthorizationFailedError.errno:
            message = f"{principal_text(cluster)} may not; run it as an administrator of the cluster"
        if error not in (0, TopicAlreadyExistsError.errno):
            raise TopicSetupError(f"topic {name} cannot be created: {message}")
    deadline = time.monotonic() + METADATA_SECONDS
    while not wanted.keys() <= numbers_of(admin, topics).keys() and time.monotonic() < deadline:
        time.sleep(0.1)


def check(
    cluster: Cluster,
    topics: Topics,
    role: Role | None = Role.AGGREGATOR,
    collections: Sequence[Collection] = (),
) -> list[Finding]:
    """Find what is wrong with the topics, their content and our permissions; empty if all is well.

    Parameters
    ----------
    cluster, topics : of the deployment.
    role : whose permissions we need; None for an administrator, who creates topics and has no role. Producers
        and readers see only the topics of their role.
    collections : of the collection file; they determine how long reports must be kept.
    """
    with connected(cluster) as admin:
        lacks = [] if role is None else permission_findings(admin, cluster, topics, role)
        if role is Role.PRODUCER:
            unusable = [each for each in lacks if not each.is_warning]
            return unusable or lacks + topic_findings.reports_findings(admin, topics)
        if role in (Role.EDGE, Role.RELAY):
            return lacks + of_uploads(admin, topics, role, collections)
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
    """Return the log's identity if all topics exist and fit and we have an aggregator's permissions.

    Workers count without the topic `collections`, and without those of uploads, which is no reason to refuse.

    Raises
    ------
    TopicSetupError with a line for each finding.
    """
    topics = replace(topics, takes_uploads=False)
    with connected(cluster) as admin:
        _refuse_lacks(admin, cluster, topics, Role.AGGREGATOR)
        found = topic_findings.topic_findings(admin, cluster, topics)
        refuse([each for each in found if not each.is_warning])
        return log_identity.log_of(admin, topics)


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


def _refuse_lacks(
    admin: KafkaAdminClient,
    cluster: Cluster,
    topics: Topics,
    role: Role,
) -> None:
    if lacks := missing(admin, topics, required_permissions(role, topics)):
        refuse([lack(cluster, lacks, role)])


def present_log(cluster: Cluster, topics: Topics) -> tuple[Genesis, list[Finding]]:
    """Return the log's present identity, and findings with which no worker should continue counting.

    Says nothing about topics that are absent or were recreated with other partitions: their clients notice.

    Raises
    ------
    TopicSetupError if there is no log, or the broker does not let us see it.
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
    """Check the topic that producers write to; TopicSetupError with a line for each finding."""
    with connected(cluster) as admin:
        _refuse_lacks(admin, cluster, topics, Role.PRODUCER)
        refuse(topic_findings.reports_findings(admin, topics))


def require_uploads(cluster: Cluster, topics: Topics, role: Role, collections: Sequence[Collection]) -> None:
    """Check the topics of an edge or a relay; TopicSetupError with a line for each finding.

    Parameters
    ----------
    cluster, topics : of the deployment.
    role : Role.EDGE or Role.RELAY.
    collections : of the collection file; they determine how long uploads must be kept.
    """
    with connected(cluster) as admin:
        _refuse_lacks(admin, cluster, topics, role)
        refuse(of_uploads(admin, topics, role, collections))


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
    """Connect an admin client; UnreachableError, or TopicSetupError with what the broker refused."""
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
