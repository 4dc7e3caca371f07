"""Topics on three brokers: how many replicas, when they are refused, and what doctor says of them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import KafkaError

from deniable.cluster.cluster import Cluster
from deniable.cluster.topics.checks import TopicSetupError
from deniable.cluster.topics.plan import plan
from deniable.deploy.cluster.topics.setup import check, create
from deniable.protocol.topic_names import Topics
from tests.support.brokers.broker_with import BrokerWith
from tests.support.brokers.several import addresses, three_brokers
from tests.support.deploy.collection_texts import WHOLE, read
from tests.support.deploy.doctors import run
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.nightly]
BROKERS_OF_TWO = "min.insync.replicas=2"


@pytest.fixture(scope="module")
def brokers(kafka_jars: None) -> Iterator[list[BrokerWith]]:
    with three_brokers(BROKERS_OF_TWO) as started:
        yield started


def factors(servers: str, topics: Topics) -> set[int]:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        described = admin.describe_topics([each.name for each in plan(topics)])
    return {len(each["replica_nodes"]) for topic in described for each in topic["partitions"]}


def test_new_topics_have_three_replicas_and_can_be_written(
    brokers: list[BrokerWith], topic_prefix: str
) -> None:
    topics, cluster = Topics(topic_prefix, 2, takes_uploads=True), Cluster(addresses(brokers))
    create(cluster, topics, None)
    assert factors(cluster.bootstrap_servers, topics) == {3}
    assert check(cluster, topics) == []
    with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, acks="all") as producer:
        producer.send(topics.reports, b"record").get(30)


def test_a_number_in_the_file_wins_unless_nobody_could_write(
    brokers: list[BrokerWith], topic_prefix: str
) -> None:
    topics, cluster = Topics(topic_prefix, 2), Cluster(addresses(brokers))
    for factor, remedy in ((1, "set kafka.replication_factor: 3"), (4, "at most the number of brokers")):
        with pytest.raises(TopicSetupError) as refused:
            create(cluster, topics, factor)
        assert remedy in str(refused.value)
        assert "min.insync.replicas=1" not in str(refused.value)
        assert {each.what.rpartition(" ")[2] for each in check(cluster, topics)} == {"absent"}
    create(cluster, topics, 2)
    assert factors(cluster.bootstrap_servers, topics) == {2}


def test_doctor_warns_of_few_replicas_and_of_a_broker_that_is_down(
    brokers: list[BrokerWith], topic_prefix: str, tmp_path: Path
) -> None:
    def warnings(prefix: str, servers: str) -> list[str]:
        kafka = {"DENIABLE_KAFKA__TOPIC_PREFIX": prefix, "DENIABLE_KAFKA__BOOTSTRAP_SERVERS": servers}
        result = run(read(tmp_path / "deniable.yaml", WHOLE, **kafka))["replicas"]
        assert all(each.is_warning for each in result.findings)
        return [each.what for each in result.findings]

    servers, left = addresses(brokers), addresses(brokers[:2])
    safe, few = Topics(topic_prefix, 4), Topics(f"{topic_prefix}few-", 4)
    create(Cluster(servers), safe, None)
    create(Cluster(servers), few, 2)
    assert warnings(safe.prefix, servers) == []
    (finding,) = warnings(few.prefix, servers)
    assert finding.startswith(f"only 2 replicas of {few.collections}, ")
    with KafkaAdminClient(bootstrap_servers=left) as admin:
        brokers[2].kill()
        try:
            assert wait_until(lambda: in_sync(admin, safe) == {1, 2}, 120)
            (finding, *_) = warnings(safe.prefix, left)
        finally:
            brokers[2].start()
        assert finding.startswith("replicas out of sync in 36 partitions (")  # eight are Kafka's own
        assert wait_until(lambda: in_sync(admin, safe) == {1, 2, 3}, 120)


def test_topics_are_compared_while_a_broker_has_just_died(
    brokers: list[BrokerWith], topic_prefix: str, tmp_path: Path
) -> None:
    """The others still name it, and a client may ask it first."""
    servers, topics = addresses(brokers), Topics(topic_prefix, 4)
    create(Cluster(servers), topics, None)
    brokers[1].kill()
    try:
        assert [check(Cluster(servers), topics) for _ in range(5)] == [[]] * 5
        kafka = {"DENIABLE_KAFKA__TOPIC_PREFIX": topic_prefix, "DENIABLE_KAFKA__BOOTSTRAP_SERVERS": servers}
        read(tmp_path / "deniable.yaml", WHOLE)
        command = [sys.executable, "-m", "deniable", "topics", "check"]
        ended = subprocess.run(
            command, cwd=tmp_path, env=os.environ | kafka, capture_output=True, text=True, check=False
        )
    finally:
        brokers[1].start()
    assert (ended.returncode, ended.stdout) == (0, "all topics fit\n")
    assert ended.stderr.startswith("warning: 1 of 3 brokers cannot be used")
    with KafkaAdminClient(bootstrap_servers=addresses(brokers[:1])) as admin:
        assert wait_until(lambda: in_sync(admin, topics) == {1, 2, 3}, 120)


def in_sync(admin: KafkaAdminClient, topics: Topics) -> set[int]:
    """Return the brokers of replicas in sync; none while the client asks a broker that is down."""
    try:
        described = admin.describe_topics([each.name for each in plan(topics)])
    except KafkaError:
        return set()
    return {node for topic in described for each in topic["partitions"] for node in each["isr_nodes"]}
