"""Create absent topics of a deployment, and check existing ones."""

import time
from collections.abc import Sequence, Set
from dataclasses import replace

from kafka import KafkaAdminClient

from deniable.aggregator.ledger.row_values import Genesis
from deniable.cluster.cluster import Cluster
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.findings import permission_findings
from deniable.cluster.permissions.roles import Role
from deniable.cluster.topics import findings as topic_findings
from deniable.cluster.topics.checks import connected, of_uploads, patient, refuse, refuse_lacks
from deniable.cluster.topics.findings import numbers_of
from deniable.cluster.topics.plan import plan, settings_made
from deniable.deploy.cluster.topics import log_identity
from deniable.deploy.cluster.topics.creation import NewTopic, create_all
from deniable.deploy.cluster.topics.number_findings import number_findings, unfit_topics
from deniable.deploy.cluster.topics.replication import replication_of
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics

METADATA_SECONDS = 10.0
ANSWERS = 4  # in a row for each broker that may be asked


def create(
    cluster: Cluster, topics: Topics, replication_factor: int | None, collections: Sequence[Collection] = ()
) -> list[str]:
    """Create absent topics, and note in a new `state` which log it counts.

    Parameters
    ----------
    cluster, topics : of the deployment.
    replication_factor : of new topics; None for the safest that the cluster allows.
    collections : of the collection file; a new `uploads` keeps their uploads long enough.

    Returns
    -------
    Names of the new topics; empty if all existed.

    Raises
    ------
    TopicSetupError if an existing topic does not fit, the broker refuses, or new topics could not be written.
    A deleted `state`, which must be rebuilt, is a finding of `check`.
    """
    with connected(cluster) as admin:
        present = numbers_of(admin, topics)
        # Check existing topics before creating others beside them.
        refuse(number_findings(admin, cluster, topics, present))
        absent = [topic for topic in plan(topics) if topic.name not in present]
        if absent:
            replication = replication_of(admin, absent[0], replication_factor)
            refuse([each for each in (replication.finding(),) if each])
            wanted = [
                NewTopic(
                    topic,
                    replication.factor,
                    settings_made(topic, replication.replicas, replication.in_sync)
                    | topic_findings.retention_made(topics, topic, collections),
                )
                for topic in absent
            ]
            create_all(admin, cluster, wanted)
            _wait_until_visible(admin, topics, {topic.name for topic in absent}, replication.brokers)
        refuse(unfit_topics(admin, cluster, topics))
        names = sorted(topic.name for topic in absent)
        log_identity.begin(admin, cluster, topics, is_new_log=topics.reports in names)
    return names


def _wait_until_visible(admin: KafkaAdminClient, topics: Topics, names: Set[str], brokers: int) -> None:
    """Brokers learn of topics one after the other, and any may be asked next: wait until none says no."""
    deadline, row = time.monotonic() + METADATA_SECONDS, 0
    while row < (ANSWERS * brokers if brokers > 1 else 1) and time.monotonic() < deadline:
        row = row + 1 if names <= numbers_of(admin, topics).keys() else 0
        time.sleep(0.05)


@patient
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
        found = unfit_topics(admin, cluster, topics)
        return (found or log_identity.findings(admin, cluster, topics)) + limits


@patient
def require(cluster: Cluster, topics: Topics) -> Genesis:
    """Return the log's identity if all topics exist and fit and we have an aggregator's permissions.

    Workers count without the topic `collections`, and without those of uploads, which is no reason to refuse.

    Raises
    ------
    TopicSetupError with a line for each finding.
    """
    topics = replace(topics, takes_uploads=False)
    with connected(cluster) as admin:
        refuse_lacks(admin, cluster, topics, Role.AGGREGATOR)
        found = unfit_topics(admin, cluster, topics)
        refuse([each for each in found if not each.is_warning])
        return log_identity.log_of(admin, topics)


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
