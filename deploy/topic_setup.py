"""The topics of one deployment: made when absent, checked when present."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kafka import KafkaAdminClient
from kafka.errors import InvalidReplicationFactorError, KafkaError, TopicAlreadyExistsError

from aggregator.rows import Genesis
from aggregator.topics import Topics
from deploy import genesis, topic_findings
from deploy.addresses import probe
from deploy.topic_findings import numbers_of
from deploy.topic_plan import plan

METADATA_SECONDS = 10.0


class TopicError(RuntimeError):
    """The topics cannot be made or used; the message says what to do."""


def create(bootstrap_servers: str, topics: Topics, replication_factor: int) -> list[str]:
    """Make the topics that are absent, and note in a new `state` which log it counts.

    Returns
    -------
    Their names; empty when all were there already.

    Raises
    ------
    TopicError when a present one does not fit or the broker refuses. That `state` was deleted, and is to be
    rebuilt, is a finding of `check`.
    """
    planned = plan(topics)
    with _admin(bootstrap_servers) as admin:
        wanted = {
            topic.name: {
                "num_partitions": topic.partitions,
                "replication_factor": replication_factor,
                "configs": dict(topic.settings),
            }
            for topic in planned
        }
        present = numbers_of(admin, topics)
        # Before more are made beside them.
        refuse(topic_findings.number_findings(admin, bootstrap_servers, topics, present))
        absent = sorted(set(wanted) - present.keys())
        if absent:
            _create(admin, topics, {name: wanted[name] for name in absent})
        refuse(topic_findings.topic_findings(admin, bootstrap_servers, topics))
        genesis.begin(admin, bootstrap_servers, topics, reports_made=topics.reports in absent)
    return absent


def _create(admin: KafkaAdminClient, topics: Topics, wanted: Mapping[str, Mapping[str, object]]) -> None:
    """Make topics and wait until all are known; one that somebody else makes meanwhile is no error."""
    for topic in admin.create_topics(wanted, raise_errors=False)["topics"]:
        name, error, said = topic["name"], topic["error_code"], topic["error_message"]
        if error == InvalidReplicationFactorError.errno:
            factor = wanted[name]["replication_factor"]
            said = f"kafka.replication_factor must be at most the number of brokers, got {factor} ({said})"
        if error not in (0, TopicAlreadyExistsError.errno):
            raise TopicError(f"topic {name} cannot be made: {said}")
    deadline = time.monotonic() + METADATA_SECONDS
    while not wanted.keys() <= numbers_of(admin, topics).keys() and time.monotonic() < deadline:
        time.sleep(0.1)


def check(bootstrap_servers: str, topics: Topics) -> list[str]:
    """What is wrong with the topics and with what they hold; empty when all is well."""
    with _admin(bootstrap_servers) as admin:
        found = topic_findings.topic_findings(admin, bootstrap_servers, topics)
        return found or genesis.findings(admin, bootstrap_servers, topics)


def require(bootstrap_servers: str, topics: Topics) -> Genesis:
    """Identity of the log, if all topics are there and fit; TopicError with a line for each finding."""
    with _admin(bootstrap_servers) as admin:
        refuse(topic_findings.topic_findings(admin, bootstrap_servers, topics))
        return genesis.log_of(admin, topics)


def partitions_of(bootstrap_servers: str, topics: Topics, name: str) -> int:
    """Number of partitions of one of the topics, whatever its settings; TopicError if it is absent."""
    with _admin(bootstrap_servers) as admin:
        numbers = numbers_of(admin, topics)
        if name not in numbers:
            raise TopicError(topic_findings.absence(name))
        return numbers[name]


def standing(bootstrap_servers: str, topics: Topics) -> tuple[Genesis, list[str]]:
    """Identity of the log, and settings under which no worker should go on counting, as they are now.

    Of a topic that is absent nothing is said, or made again with other partitions: whoever uses it notices.

    Raises
    ------
    TopicError if there is no log, or the broker does not tell.
    """
    with _admin(bootstrap_servers) as admin:
        present = numbers_of(admin, topics)
        counted = (topics.reports, topics.state, topics.counts)
        there = [
            topic
            for topic in plan(topics)
            if topic.name in counted and present.get(topic.name) == topic.partitions
        ]
        return genesis.log_of(admin, topics), topic_findings.setting_findings(admin, there)


def require_reports(bootstrap_servers: str, topics: Topics) -> None:
    """Check the one topic that a producer writes to; TopicError with a line for each finding."""
    with _admin(bootstrap_servers) as admin:
        refuse(topic_findings.reports_findings(admin, topics))


def refuse(findings: list[str]) -> None:
    """Raise TopicError with a line for each finding, if there is any."""
    if findings:
        raise TopicError("\n".join(findings))


@contextmanager
def _admin(bootstrap_servers: str) -> Iterator[KafkaAdminClient]:
    probe(bootstrap_servers)
    try:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
        try:
            yield admin
        finally:
            admin.close()
    except KafkaError as error:
        raise TopicError(f"Kafka at {bootstrap_servers} refused: {error}") from error
