"""Topics on a real broker: made once with the settings that the design rests on, checked with remedies."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from uuid import uuid4

import pytest
from aiokafka import TopicPartition as Source
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from deniable.aggregator.ledger import row_values
from deniable.cluster.cluster import Cluster
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.roles import Role
from deniable.cluster.reading.consumer import assigned_consumer
from deniable.cluster.topics.checks import TopicSetupError, require_reports, require_uploads
from deniable.cluster.topics.plan import plan
from deniable.deploy.cluster.topics import log_identity, setup
from deniable.deploy.cluster.topics.setup import create, present_log, require
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.protocol.topic_names import Topics
from tests.support.processes import wait_until
from tests.support.producers.topics import change

pytestmark = [pytest.mark.broker, pytest.mark.contract]


def check(cluster: Cluster, topics: Topics) -> list[str]:
    return [str(each) for each in setup.check(cluster, topics)]


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
    return sorted(topic.name for topic in plan(topics))


def test_topics_are_created_once_with_their_settings(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    assert [line.split()[1] for line in check(Cluster(broker), topics)] == [
        topic.name for topic in plan(topics)
    ]
    assert create(Cluster(broker), topics, 1) == names(topics)
    assert create(Cluster(broker), topics, 1) == []
    assert check(Cluster(broker), topics) == []
    for topic in plan(topics):
        resource = ConfigResource(ConfigResourceType.TOPIC, topic.name)
        found = admin.describe_configs([resource], config_filter="all")["topic"][topic.name]
        assert {key: found[key]["value"] for key in topic.settings} == dict(topic.settings)
    described = admin.describe_topics(names(topics))
    assert [len(topic["partitions"]) for topic in described] == [2] * 7
    compacted = {topic.name for topic in plan(topics) if topic.settings["cleanup.policy"] == "compact"}
    assert compacted == {topics.state, topics.counts, topics.collections}
    assert {topic.settings["message.timestamp.type"] for topic in plan(topics)} == {"LogAppendTime"}


def test_deployments_that_take_uploads_have_two_more_topics(broker: str) -> None:
    """A new `uploads` keeps the uploads of the longest window; workers need neither topic."""
    cluster, plain = Cluster(broker), Topics(f"test-{uuid4().hex[:12]}-", 2)
    topics = replace(plain, takes_uploads=True)
    long = Collection("long", KRR.from_epsilon(3, 1.0), window_seconds=86_400, grace_seconds=60)
    with KafkaAdminClient(bootstrap_servers=broker) as admin:
        try:
            assert topics.uploads not in create(cluster, plain, 1)
            absent = [line.split()[1] for line in check(cluster, topics)]
            assert absent == [topics.uploads, topics.rejected_uploads]
            assert require(cluster, topics) == require(cluster, plain)
            with pytest.raises(TopicSetupError, match=topics.uploads):
                require_uploads(cluster, topics, Role.RELAY, [long])
            assert create(cluster, topics, 1, [long]) == [topics.rejected_uploads, topics.uploads]
            require_uploads(cluster, topics, Role.RELAY, [long])
            require_uploads(cluster, topics, Role.EDGE, [long])
            kinds = {each.name: each.settings["message.timestamp.type"] for each in plan(topics)}
            assert [name for name, kind in kinds.items() if kind == "CreateTime"] == [topics.rejected_uploads]
            wrong = {"unclean.leader.election.enable": "true", "message.timestamp.type": "CreateTime"}
            change(admin, topics.uploads, wrong)
            with pytest.raises(TopicSetupError) as refused:
                require_uploads(cluster, topics, Role.RELAY, [long])
            assert [line.partition(" must ")[0] for line in str(refused.value).splitlines()] == [
                f"topic {topics.uploads}: message.timestamp.type",
                f"topic {topics.uploads}: unclean.leader.election.enable",
            ]
        finally:
            admin.delete_topics(names(topics))


def test_settings_beyond_limits_are_reported_with_unfit_ones(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    create(Cluster(broker), topics, 1)
    for name, wrong in (
        (topics.state, {"min.compaction.lag.ms": "86400001"}),
        (topics.counts, {"max.compaction.lag.ms": "1000", "cleanup.policy": "delete"}),
    ):
        change(admin, name, wrong)
    found = check(Cluster(broker), topics)
    assert [finding.partition(" must be ")[0] for finding in found] == [
        f"topic {topics.counts}: cleanup.policy",
        f"topic {topics.state}: min.compaction.lag.ms",
        f"topic {topics.counts}: max.compaction.lag.ms",
    ]


def test_absent_topic_among_others_is_created(broker: str, topics: Topics, admin: KafkaAdminClient) -> None:
    admin.create_topics({topics.estimates: {"num_partitions": 2, "replication_factor": 1}})
    (line,) = create_refused(broker, topics).splitlines()
    assert line.startswith(f"topic {topics.estimates}: message.timestamp.type ")
    assert [finding for finding in check(Cluster(broker), topics) if "absent" in finding] == []


def test_older_deployment_needs_only_topics_create(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    """As after an update: what was counted goes on, and nothing is to be rebuilt."""
    create(Cluster(broker), topics, 1)
    sources = [TopicPartition(topics.reports, partition) for partition in range(2)]
    with KafkaProducer(bootstrap_servers=broker) as kafka:
        for source in sources:
            kafka.send(source.topic, b"no pack", partition=source.partition)
    with closing(KafkaConsumer(bootstrap_servers=broker, group_id=topics.group)) as consumer:
        consumer.commit({source: OffsetAndMetadata(1, "", -1) for source in sources})
    admin.delete_topics([topics.windows])
    assert wait_until(lambda: topics.windows not in admin.list_topics(), 120)
    (shown,) = check(Cluster(broker), topics)
    with pytest.raises(TopicSetupError, match=f"^topic {topics.windows} ") as refused:
        require(Cluster(broker), topics)
    assert str(refused.value) == shown
    assert create(Cluster(broker), topics, 1) == [topics.windows]
    assert check(Cluster(broker), topics) == []


def create_refused(broker: str, topics: Topics) -> str:
    with pytest.raises(TopicSetupError) as caught:
        create(Cluster(broker), topics, 1)
    return str(caught.value)


def test_other_partition_number_is_refused_before_creation(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    admin.create_topics({topics.reports: {"num_partitions": 2, "replication_factor": 1}})
    assert wait_until(lambda: not admin.describe_topics([topics.reports])[0]["error_code"], 120)
    assert create_refused(broker, Topics(topics.prefix, 3)).startswith(f"topic {topics.reports} ")
    assert sum("absent" in finding for finding in check(Cluster(broker), topics)) == 6


def test_deviating_topic_is_not_the_reference(broker: str, topics: Topics, admin: KafkaAdminClient) -> None:
    admin.create_topics({topics.reports: {"num_partitions": 2, "replication_factor": 1}})
    admin.create_topics({topics.state: {"num_partitions": 1, "replication_factor": 1}})
    assert wait_until(
        lambda: not any(t["error_code"] for t in admin.describe_topics([topics.reports, topics.state])), 30
    )
    (line,) = create_refused(broker, topics).splitlines()
    assert line.startswith(f"topic {topics.state} ")


def test_brokers_refusal_is_reported(broker: str, topics: Topics, admin: KafkaAdminClient) -> None:
    with pytest.raises(
        TopicSetupError, match=r"^topic \S+ cannot be created: kafka.replication_factor must be at most"
    ) as caught:
        create(Cluster(broker), topics, 3)
    assert "the number of brokers, got 3 (" in str(caught.value)


def test_added_partitions_have_one_remedy(broker: str, topics: Topics, admin: KafkaAdminClient) -> None:
    create(Cluster(broker), topics, 1)
    admin.create_partitions({topics.reports: 3})
    grown = Topics(topics.prefix, 3)
    assert wait_until(lambda: len(admin.describe_topics([topics.reports])[0]["partitions"]) == 3, 120)
    (shown,) = check(Cluster(broker), topics)
    assert shown.startswith(f"{topics.reports} has 3 partitions ")
    for file in (topics, grown):
        assert check(Cluster(broker), file) == [shown]
        assert create_refused(broker, file) == shown
        with pytest.raises(TopicSetupError, match="^" + re.escape(shown) + "$"):
            require(Cluster(broker), file)
        with pytest.raises(TopicSetupError, match="3 partitions"):
            require_reports(Cluster(broker), file)
    admin.create_partitions({topic.name: 3 for topic in plan(topics) if topic.name != topics.reports})
    assert wait_until(
        lambda: all(len(t["partitions"]) == 3 for t in admin.describe_topics(names(topics))), 30
    )
    assert create(Cluster(broker), grown, 1) == []
    for file in (topics, grown):
        assert check(Cluster(broker), file) == [shown]
    log = log_identity.log_of(admin, grown)
    assert sorted(log_identity.notes(Cluster(broker), grown, 3, log)) == [
        0,
        1,
    ]  # no note of three beside those of two


def test_what_a_sender_compresses_is_stored_uncompressed(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    """Otherwise one record in a codec that workers do not know would end all of them."""
    create(Cluster(broker), topics, 1)
    with KafkaProducer(bootstrap_servers=broker, compression_type="zstd") as kafka:
        kafka.send(topics.reports, b"record" * 100, partition=0).get(30)

    async def read() -> bytes | None:
        source = Source(topics.reports, 0)
        async with assigned_consumer(Cluster(broker), [source]) as consumer:
            value: bytes | None = (await asyncio.wait_for(consumer.getone(), 30)).value
            return value

    assert asyncio.run(read()) == b"record" * 100


def test_a_deployment_with_settings_of_a_former_release_goes_on_and_is_told_what_to_run(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    create(Cluster(broker), topics, 1)
    former = {"compression.type": "producer", "unclean.leader.election.enable": "true"}
    for topic in plan(topics):
        change(admin, topic.name, former)
    log = require(Cluster(broker), topics)
    assert present_log(Cluster(broker), topics) == (log, [])
    assert create(Cluster(broker), topics, 1) == []
    found = setup.check(Cluster(broker), topics)
    assert all(each.is_warning for each in found)
    alter = f"kafka-configs.sh --bootstrap-server {broker} --alter --topic"
    setting = "unclean.leader.election.enable=false"
    assert [each.remedy for each in found] == [
        f"{alter} {topics.reports} --add-config compression.type=uncompressed",
        *(f"{alter} {topic.name} --add-config {setting}" for topic in plan(topics)),
    ]


def test_irrelevant_settings_end_no_worker(broker: str, topics: Topics, admin: KafkaAdminClient) -> None:
    create(Cluster(broker), topics, 1)
    for name in (topics.estimates, topics.reports):
        change(admin, name, {"message.timestamp.type": "CreateTime"})
    (finding,) = present_log(Cluster(broker), topics)[1]
    assert finding.what.startswith(f"topic {topics.reports}: message.timestamp.type ")


def test_recreated_log_is_a_finding(broker: str, topics: Topics, admin: KafkaAdminClient) -> None:
    create(Cluster(broker), topics, 1)
    admin.delete_topics([topics.reports])
    assert wait_until(lambda: topics.reports not in admin.list_topics(), 120)
    assert create(Cluster(broker), topics, 1) == [topics.reports]
    (finding,) = check(Cluster(broker), topics)
    assert finding.startswith(f"{topics.reports} ")
    with KafkaProducer(bootstrap_servers=broker) as kafka:  # as `replay --rebuild` does, where nobody counted
        for partition in range(topics.partitions):
            note = row_values.encode_genesis(present_log(Cluster(broker), topics)[0])
            kafka.send(topics.state, note, key=log_identity.KEY, partition=partition)
    assert check(Cluster(broker), topics) == []


def test_records_that_were_deleted_uncounted_are_a_finding(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    create(Cluster(broker), topics, 1)
    sources = [TopicPartition(topics.reports, partition) for partition in range(2)]
    with KafkaProducer(bootstrap_servers=broker) as kafka:
        for _ in range(5):
            for source in sources:
                kafka.send(source.topic, b"no pack", partition=source.partition)
    admin.delete_records({sources[0]: 5, sources[1]: 3})
    uncounted = check(Cluster(broker), topics)  # and nobody has counted anything
    assert [finding.partition(":")[0] for finding in uncounted] == [
        "partition 0 of the reports topic now starts at offset 5, but 0 is the next to count",
        "partition 1 of the reports topic now starts at offset 3, but 0 is the next to count",
    ]
    with closing(KafkaConsumer(bootstrap_servers=broker, group_id=topics.group)) as consumer:
        consumer.commit({source: OffsetAndMetadata(3, "", -1) for source in sources})
    assert check(Cluster(broker), topics) == [
        "partition 0 of the reports topic now starts at offset 5, but 3 is the next to count: 2 offsets were "
        "deleted uncounted. Raise the topic's retention; to go on without them, run deniable replay "
        "--accept-loss"
    ]


def test_ledgers_say_what_was_counted_when_kafka_has_forgotten_the_group(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    create(Cluster(broker), topics, 1)
    with KafkaProducer(bootstrap_servers=broker) as kafka:
        for _ in range(3):
            kafka.send(topics.reports, b"no pack", partition=1)
        for position in (2, 3):
            progress = row_values.encode_progress(row_values.LedgerProgress(position))
            kafka.send(topics.state, progress, key=log_identity.PROGRESS, partition=1)
    admin.delete_records({TopicPartition(topics.reports, 1): 3})
    assert check(Cluster(broker), topics) == []


def test_worker_watches_the_log_and_the_settings(
    broker: str, topics: Topics, admin: KafkaAdminClient
) -> None:
    create(Cluster(broker), topics, 1)
    log, findings = present_log(Cluster(broker), topics)
    assert (log.partitions, findings) == (2, [])
    change(admin, topics.state, {"cleanup.policy": "delete"})
    admin.delete_topics([topics.estimates])
    assert wait_until(lambda: topics.estimates not in admin.list_topics(), 120)
    assert present_log(Cluster(broker), topics) == (
        log,
        [
            Finding(
                f"topic {topics.state}: cleanup.policy must be compact, got delete",
                f"kafka-configs.sh --bootstrap-server {broker} --alter --topic {topics.state} "
                "--add-config cleanup.policy=compact",
            )
        ],
    )
