"""Brokers that are not Apache's leave out permissions, settings, or what makes an answer readable."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from deniable.cluster.cluster import Cluster
from deniable.cluster.permissions.findings import group_operations, missing
from deniable.cluster.permissions.roles import Role, required_permissions
from deniable.cluster.reading.publication_reader import TopicContent
from deniable.cluster.topics.checks import TopicSetupError
from deniable.cluster.topics.findings import setting_findings
from deniable.cluster.topics.limits import limit_findings
from deniable.cluster.topics.plan import plan
from deniable.deploy.cluster.topics.creation import NewTopic, create_all
from deniable.protocol.topic_names import Topics

TOPICS = Topics("d-", 2)
EVERYTHING = set(range(32))  # Tansu sets every bit, also those that are no operation


class Bare:
    """Answers with as little as the protocol allows."""

    def __init__(self, operations: set[int] | None) -> None:
        self.config = {"bootstrap_servers": "kafka:9092"}
        self._answer = SimpleNamespace(error_code=0, authorized_operations=operations)
        self._manager = self

    def run(self, ask: Callable[[], Coroutine[Any, Any, object]]) -> object:
        try:
            ask().send(None)
        except StopIteration as ended:
            return ended.value
        raise AssertionError("it waits")

    async def send(self, request: object, node_id: int) -> object:
        return SimpleNamespace(groups=[self._answer], error_code=0)

    async def _find_coordinator_id(self, *_: object) -> int:
        return 1

    def describe_topics(self, names: list[str]) -> list[dict[str, object]]:
        return [{"name": each, "error_code": 0, "authorized_operations": None} for each in names]

    def describe_configs(self, resources: list[Any], config_filter: str) -> dict[str, dict[str, object]]:
        return {"topic": {each.name: {"any": {"value": "1"}} for each in resources}}

    def create_topics(self, *_: object, **__: object) -> object:
        raise ValueError("Unrecognized ConfigSourceType: -1")


@pytest.mark.parametrize("operations", [None, EVERYTHING])
def test_permissions_that_a_broker_does_not_list_are_not_missing(operations: set[int] | None) -> None:
    admin = cast(KafkaAdminClient, Bare(operations))
    assert missing(admin, TOPICS, required_permissions(Role.AGGREGATOR, TOPICS)) == []
    assert "READ" in group_operations(admin, TOPICS.group)
    assert group_operations(cast(KafkaAdminClient, Bare(set())), TOPICS.group) == set()


def test_settings_that_a_broker_does_not_have_are_found_only_if_they_are_required() -> None:
    reports, *_ = plan(TOPICS)
    assert limit_findings([reports], {reports.name: {}}, {reports.name: 1}, {}, "change") == []
    found = setting_findings(cast(KafkaAdminClient, Bare(None)), [reports])
    assert [each.what for each in found] == [
        "topic d-reports: cleanup.policy must be delete, got None",
        "topic d-reports: message.timestamp.type must be LogAppendTime, got None",
    ]


def test_an_answer_about_topics_that_cannot_be_read_is_a_sentence() -> None:
    wanted = [NewTopic(each, 1, each.settings) for each in plan(TOPICS)]
    with pytest.raises(TopicSetupError, match="is not Kafka's: Unrecognized ConfigSourceType: -1"):
        create_all(cast(KafkaAdminClient, Bare(None)), cast(Cluster, None), wanted)


class Silent:
    """Leaves the topic out of its answers."""

    async def send(self, request: object, node_id: int | None = None) -> object:
        return SimpleNamespace(topics=[], responses=[])

    def call_soon(self, work: object) -> None:
        raise NotImplementedError


def test_an_answer_that_leaves_the_topic_out_is_an_error_of_kafka() -> None:
    content = TopicContent("collections")
    with pytest.raises(KafkaError, match="0 answers about topic collections"):
        asyncio.run(content.read_on(Silent()))
