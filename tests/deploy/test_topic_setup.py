"""Topics on a real broker: made once with the settings that the design rests on, checked with remedies."""

from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from aggregator.topics import Topics
from deploy.topic_setup import TopicError, check, create, plan
from tests.deploy.processes import wait_until

pytestmark = pytest.mark.broker


@pytest.fixture
def topics(topic_prefix: str) -> Topics:
    return Topics(topic_prefix, 2)


@pytest.fixture
def admin(broker: str, topics: Topics) -> Iterator[KafkaAdminClient]:
    """A client that deletes what the test has made."""
    with KafkaAdminClient(bootstrap_servers=broker) as client:
        yield client
        present = set(client.list_topics())
        client.delete_topics([topic.name for topic in plan(topics) if topic.name in present])


def names(topics: Topics) -> list[str]:
    return sorted([topics.reports, topics.state, topics.counts, topics.rejected, topics.estimates])


def test_topics_are_made_once_with_their_settings(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    assert check(broker, topics) == [
        f"topic {topic.name} is absent: run deniable topics create" for topic in plan(topics)
    ]
    assert create(broker, topics, 1) == names(topics)
    assert create(broker, topics, 1) == []
    assert check(broker, topics) == []
    for topic in plan(topics):
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
        found = admin.describe_configs([resource], config_filter="all")["topic"][topic.name]
        assert {key: found[key]["value"] for key in topic.settings} == dict(topic.settings)
    described = admin.describe_topics(names(topics))
    assert [len(topic["partitions"]) for topic in described] == [2] * 5
    compacted = {topic.name for topic in plan(topics) if topic.settings["cleanup.policy"] == "compact"}
    assert compacted == {topics.state, topics.counts}
    assert {topic.settings["message.timestamp.type"] for topic in plan(topics)} == {"LogAppendTime"}


def test_an_absent_one_among_others_is_made(broker: str, topics: Topics, admin: KafkaAdminClient) -> None:
    admin.create_topics({topics.estimates: {"num_partitions": 2, "replication_factor": 1}})
    assert set(create_refused(broker, topics).splitlines()) == {
        f"topic {topics.estimates}: message.timestamp.type must be LogAppendTime, got CreateTime: "
        f"kafka-configs.sh --bootstrap-server {broker} --alter --topic {topics.estimates} "
        "--add-config message.timestamp.type=LogAppendTime"
    }
    assert [finding for finding in check(broker, topics) if "absent" in finding] == []


def create_refused(broker: str, topics: Topics) -> str:
    with pytest.raises(TopicError) as caught:
        create(broker, topics, 1)
    return str(caught.value)


def test_another_number_of_partitions_is_refused_before_anything_is_made(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    admin.create_topics({topics.reports: {"num_partitions": 2, "replication_factor": 1}})
    assert wait_until(lambda: not admin.describe_topics([topics.reports])[0]["error_code"], 30)
    assert create_refused(broker, Topics(topics.prefix, 3)) == (
        f"topic {topics.reports} has 2 partitions, not 3, and their number never changes: "
        "use 2 (kafka.partitions), or another kafka.topic_prefix"
    )
    assert sum("absent" in finding for finding in check(broker, topics)) == 4


def test_one_that_differs_from_the_others_is_not_the_measure(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    admin.create_topics({topics.reports: {"num_partitions": 2, "replication_factor": 1}})
    admin.create_topics({topics.state: {"num_partitions": 1, "replication_factor": 1}})
    assert wait_until(
        lambda: not any(t["error_code"] for t in admin.describe_topics([topics.reports, topics.state])), 30
    )
    assert create_refused(broker, topics) == (
        f"topic {topics.state} has 1 partitions, not 2, and their number never changes: if Kafka made it by "
        "itself (auto.create.topics.enable), delete it and run deniable topics create; if not, use another "
        "kafka.topic_prefix"
    )


def test_what_the_broker_refuses_is_told(broker: str, topics: Topics, admin: KafkaAdminClient) -> None:
    with pytest.raises(TopicError, match=r"^topic \S+ cannot be made: .*replication factor of 3"):
        create(broker, topics, 3)
