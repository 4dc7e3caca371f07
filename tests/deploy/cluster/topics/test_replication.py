"""How many replicas new topics get, by what a cluster allows; and which settings, where it allows few."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from kafka import KafkaAdminClient
from kafka.errors import (
    InvalidConfigurationError,
    InvalidReplicationFactorError,
    PolicyViolationError,
    TopicAlreadyExistsError,
)

from deniable.cluster.cluster import Cluster
from deniable.cluster.topics.checks import TopicSetupError
from deniable.cluster.topics.plan import LEFT_TO_CLUSTER, plan, settings_made
from deniable.deploy.cluster.topics.creation import NewTopic, create_all
from deniable.deploy.cluster.topics.replication import CLUSTERS_OWN, Replication, replication_of
from deniable.protocol.topic_names import Topics
from tests.support.messages import PinMessages

TOPICS = plan(Topics("d-", 2, takes_uploads=True))


@dataclass
class Kafka:
    """A cluster of this many brokers, as an admin client sees it; `requests` are those that it got.

    Parameters
    ----------
    brokers, default : how many there are, and how many replicas a topic gets unless it says.
    in_sync : min.insync.replicas of the brokers.
    allowed : replication factors that a policy allows; None for all.
    refused : keys of settings that nobody may choose.
    hides : whether it does not say what a new topic would have, and how brokers are set.
    """

    brokers: int = 1
    default: int = 1
    in_sync: int = 1
    allowed: Collection[int] | None = None
    refused: Collection[str] = ()
    hides: bool = False
    requests: list[tuple[bool, Mapping[str, Any]]] = field(default_factory=list)

    def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": [{"broker_id": number} for number in range(self.brokers)]}

    def describe_configs(self, resources: list[Any], config_filter: str) -> dict[str, Any]:
        settings = {} if self.hides else {"min.insync.replicas": {"value": str(self.in_sync)}}
        return {"broker": {each.name: settings for each in resources}}

    def create_topics(
        self, topics: Mapping[str, Any], validate_only: bool, raise_errors: bool
    ) -> dict[str, Any]:
        assert not raise_errors
        self.requests.append((validate_only, topics))
        return {"topics": [self._answer(name, **topic) for name, topic in topics.items()]}

    def _answer(
        self,
        name: str,
        num_partitions: int,
        replication_factor: int,
        configs: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        number = self.default if replication_factor == CLUSTERS_OWN else replication_factor
        error = 0
        if number > self.brokers:
            error = InvalidReplicationFactorError.errno
        elif self.allowed is not None and replication_factor not in self.allowed:
            error = PolicyViolationError.errno
        elif set(configs or {}) & set(self.refused):
            error = InvalidConfigurationError.errno
        seen = not error and not self.hides
        settings = {"min.insync.replicas": {"value": str(self.in_sync)}} if seen else {}
        return {
            "name": name,
            "error_code": error,
            "error_message": "why",
            "replication_factor": number if seen else -1,
            "configs": settings,
        }


def chosen(kafka: Kafka, factor: int | None = None) -> Replication:
    found = replication_of(cast(KafkaAdminClient, kafka), TOPICS[0], factor)
    assert all(is_validated for is_validated, _ in kafka.requests)
    return found


@pytest.mark.parametrize(
    ("kafka", "asked", "factor", "replicas"),
    [
        (Kafka(brokers=1), None, CLUSTERS_OWN, 1),
        (Kafka(brokers=2), None, 2, 2),
        (Kafka(brokers=3), None, 3, 3),
        (Kafka(brokers=6), None, 3, 3),
        (Kafka(brokers=3, default=2), None, 3, 3),
        (Kafka(brokers=6, default=3), None, CLUSTERS_OWN, 3),
        (Kafka(brokers=6, default=4), None, CLUSTERS_OWN, 4),
        (Kafka(brokers=3, default=2, allowed=[CLUSTERS_OWN]), None, CLUSTERS_OWN, 2),
        (Kafka(brokers=3, default=2, allowed=[CLUSTERS_OWN, 2]), None, CLUSTERS_OWN, 2),
        (Kafka(brokers=3, default=3, allowed=[3]), None, 3, 3),
        (Kafka(brokers=3, hides=True), None, 3, 3),
        (Kafka(brokers=3, hides=True, allowed=[CLUSTERS_OWN]), None, CLUSTERS_OWN, 3),
        (Kafka(brokers=3, default=3), 1, 1, 1),
        (Kafka(brokers=3), 2, 2, 2),
        (Kafka(brokers=1, default=3), None, CLUSTERS_OWN, 1),  # refused later, until more have started
    ],
)
def test_number_of_replicas(kafka: Kafka, asked: int | None, factor: int, replicas: int) -> None:
    found = chosen(kafka, asked)
    assert (found.factor, found.replicas) == (factor, replicas)
    assert found.finding() is None


@pytest.mark.parametrize(
    ("kafka", "asked"),
    [
        (Kafka(brokers=1, in_sync=2), None),
        (Kafka(brokers=1, in_sync=2), 1),
        (Kafka(brokers=3, in_sync=2), 1),
        (Kafka(brokers=5, in_sync=4), 3),
        (Kafka(brokers=3, default=1, in_sync=2, allowed=[CLUSTERS_OWN]), None),
    ],
)
def test_topics_that_nobody_could_write_are_refused(kafka: Kafka, asked: int | None) -> None:
    finding = chosen(kafka, asked).finding()
    assert finding is not None
    assert "could not be written" in finding.what


def test_messages_of_topics_that_nobody_could_write(pin_messages: PinMessages) -> None:
    pin_messages(
        {
            "one broker, which wants two": lambda: str(chosen(Kafka(brokers=1, in_sync=2)).finding()),
            "the file says one": lambda: str(chosen(Kafka(brokers=3, in_sync=2), 1).finding()),
            "four must be in sync": lambda: str(chosen(Kafka(brokers=5, in_sync=4), 3).finding()),
        }
    )


def test_three_replicas_keep_what_the_brokers_ask_for() -> None:
    made = [settings_made(TOPICS[0], 3, in_sync)["min.insync.replicas"] for in_sync in (1, 2, 3)]
    assert made == ["2", "2", "3"]
    assert "min.insync.replicas" not in settings_made(TOPICS[0], 2, 2)


def sent(kafka: Kafka, factor: int = 1) -> list[tuple[bool, Mapping[str, Any]]]:
    wanted = [NewTopic(topic, factor, settings_made(topic, factor)) for topic in TOPICS]
    create_all(cast(KafkaAdminClient, kafka), cast(Cluster, None), wanted)
    return kafka.requests


def test_all_settings_are_set_where_the_cluster_allows() -> None:
    validated, created = sent(Kafka(brokers=3), 3)
    assert (validated[0], created[0]) == (True, False)
    assert created[1] == validated[1]
    assert {name: each["configs"] for name, each in created[1].items()} == {
        topic.name: settings_made(topic, 3) for topic in TOPICS
    }


def test_settings_that_nobody_may_choose_are_left_to_the_cluster() -> None:
    (_, _), (is_validated, _), (_, topics) = sent(Kafka(refused=["unclean.leader.election.enable"]))
    assert is_validated
    assert {name: set(each["configs"]) for name, each in topics.items()} == {
        topic.name: set(topic.settings) - set(LEFT_TO_CLUSTER) for topic in TOPICS
    }


@pytest.mark.parametrize("kafka", [Kafka(refused=["cleanup.policy"]), Kafka(allowed=[3])])
def test_a_refusal_creates_no_topic(kafka: Kafka) -> None:
    with pytest.raises(TopicSetupError, match=r"^topic d-reports cannot be created: why$"):
        sent(kafka)
    assert all(is_validated for is_validated, _ in kafka.requests)


def test_a_topic_that_somebody_else_has_created_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [{"name": "d-reports", "error_code": TopicAlreadyExistsError.errno, "error_message": "there"}]
    monkeypatch.setattr(Kafka, "create_topics", lambda *_, **__: {"topics": answers})
    assert sent(Kafka()) == []
