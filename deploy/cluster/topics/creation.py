"""Create topics, or none of them if the cluster refuses one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka import KafkaAdminClient
from kafka.errors import (
    InvalidConfigurationError,
    InvalidReplicationFactorError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
)

from deniable.cluster.cluster import Cluster
from deniable.cluster.permissions.findings import principal_text
from deniable.cluster.topics.checks import TopicSetupError
from deniable.cluster.topics.plan import LEFT_TO_CLUSTER, TopicPlan
from deniable.deploy.cluster.topics.replication import CLUSTERS_OWN

#: With which a managed cluster refuses settings that it lets nobody choose.
POLICY = (InvalidConfigurationError.errno, PolicyViolationError.errno)
NO_ERROR = (0, TopicAlreadyExistsError.errno)  # somebody else has created it meanwhile


class NewTopic(NamedTuple):
    """A topic to create, with a replication factor and all settings."""

    topic: TopicPlan
    factor: int
    settings: Mapping[str, str]

    def without_choice(self) -> "NewTopic":
        """Leave to the cluster what some clusters let nobody choose; checks find what differs then."""
        kept = {key: value for key, value in self.settings.items() if key not in LEFT_TO_CLUSTER}
        return self._replace(settings=kept)


def create_all(admin: KafkaAdminClient, cluster: Cluster, wanted: Sequence[NewTopic]) -> None:
    """Create topics; TopicSetupError with the cluster's reason, before any is created if it can be known."""
    answers = validated(admin, wanted)
    if any(each["error_code"] in POLICY for each in answers):
        wanted = [each.without_choice() for each in wanted]
        answers = validated(admin, wanted)
    factor = wanted[0].factor
    _refuse(answers, cluster, factor)
    _refuse(_sent(admin, wanted, validate_only=False), cluster, factor)


def validated(admin: KafkaAdminClient, wanted: Sequence[NewTopic]) -> list[dict[str, Any]]:
    """Return the cluster's answer for each topic, and create none."""
    return _sent(admin, wanted, validate_only=True)


def _sent(
    admin: KafkaAdminClient, wanted: Sequence[NewTopic], *, validate_only: bool
) -> list[dict[str, Any]]:
    topics = {
        each.topic.name: {
            "num_partitions": each.topic.partitions,
            "replication_factor": each.factor,
            "configs": dict(each.settings),
        }
        for each in wanted
    }
    try:
        answers = admin.create_topics(topics, validate_only=validate_only, raise_errors=False)["topics"]
    except ValueError as error:  # some brokers that are not Kafka leave fields out
        raise TopicSetupError(f"the brokers' answer about new topics is not Kafka's: {error}") from error
    return list(answers)


def _refuse(answers: Iterable[Mapping[str, Any]], cluster: Cluster, factor: int) -> None:
    for answer in answers:
        error, message = answer["error_code"], answer["error_message"]
        if error == InvalidReplicationFactorError.errno:
            message = f"{_of_factor(factor)} ({message})"
        if error == TopicAuthorizationFailedError.errno:
            message = f"{principal_text(cluster)} may not; run it as an administrator of the cluster"
        if error not in NO_ERROR:
            raise TopicSetupError(f"topic {answer['name']} cannot be created: {message}")


def _of_factor(factor: int) -> str:
    if factor == CLUSTERS_OWN:
        return "default.replication.factor of the brokers is more than their number: start the others"
    return f"kafka.replication_factor must be at most the number of brokers, got {factor}"
