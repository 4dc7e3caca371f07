"""Quotas of producers on a real secured broker: set once, changed when asked, and felt."""

import re
import time
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ACLOperation, ResourcePattern, ResourceType

from deniable.deploy.cluster.permissions.quotas import DEFAULT_BYTES_PER_SECOND, limit, quota_of
from tests.support.brokers.secured.broker import SecuredBroker

pytestmark = pytest.mark.broker

BYTES_PER_SECOND = 50_000
BURST_SECONDS = 10  # Kafka's quota.window.num less one: what it lets pass before it slows down


@pytest.fixture
def user(secured_broker: SecuredBroker, topic_prefix: str) -> str:
    """Who may write to one topic."""
    name = f"{topic_prefix}producer"
    secured_broker.add_user(name)
    with KafkaAdminClient(**secured_broker.admin_settings()) as admin:
        admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    secured_broker.allow(name, ResourcePattern(ResourceType.TOPIC, name), ACLOperation.WRITE)
    return name


def throttled_seconds(broker: SecuredBroker, user: str, caplog: pytest.LogCaptureFixture) -> float:
    """Throttle time of a producer that sends more than a burst; all its records arrive."""
    with closing(KafkaProducer(**broker.sasl_settings(user), batch_size=200_000)) as kafka:
        sent = [kafka.send(user, bytes(100_000)) for _ in range(BYTES_PER_SECOND * BURST_SECONDS // 70_000)]
        for each in sent:
            each.get(timeout=120)
    shown = [re.search(r"throttled by broker \((\d+) ms\)", line) for line in caplog.messages]
    return sum(int(each[1]) for each in shown if each) / 1000


@pytest.mark.nightly
def test_who_sends_more_is_slowed_down_and_loses_nothing(
    secured_broker: SecuredBroker, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert throttled_seconds(secured_broker, user, caplog) == 0
    with KafkaAdminClient(**secured_broker.admin_settings()) as admin:
        limit(admin, [user], BYTES_PER_SECOND)
    assert throttled_seconds(secured_broker, user, caplog) > 0.5


def test_existing_quota_stays_until_another_is_requested(
    secured_broker: SecuredBroker, topic_prefix: str
) -> None:
    name = f"{topic_prefix}quota"
    with KafkaAdminClient(**secured_broker.admin_settings()) as admin:
        for asked, shown, found in (
            (None, [f"User:{name} sends at most 10,000,000 bytes a second to each broker"], 10_000_000),
            (None, [], DEFAULT_BYTES_PER_SECOND),
            (5000, [f"User:{name} sends at most 5,000 bytes a second to each broker"], 5000),
            (5000, [], 5000),
            (None, [], 5000),
            (0, [f"User:{name} sends without a quota"], None),
            (0, [], None),
        ):
            assert limit(admin, [name], asked) == shown
            deadline = time.monotonic() + 60  # a broker applies a change shortly after it has confirmed it
            while quota_of(admin, name) != found and time.monotonic() < deadline:
                time.sleep(0.05)
            assert quota_of(admin, name) == found
