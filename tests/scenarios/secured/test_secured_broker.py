"""The broker shared by security tests allows nothing by default; a producer reports why it is refused."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import TopicAuthorizationFailedError
from kafka import KafkaAdminClient
from kafka.admin import ACLOperation, ResourcePattern, ResourceType

from deniable.cluster.cluster import Cluster
from deniable.cluster.security import Security
from deniable.producers.errors import DeliveryError
from deniable.producers.transport.connection import connect
from tests.support.brokers.secured.broker import SecuredBroker

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_jars")]

Settings = dict[str, object]


def topics(settings: Settings) -> list[str]:
    with KafkaAdminClient(**settings) as client:
        return list(client.list_topics())


def send(settings: Settings, topic: str) -> None:
    async def run() -> None:
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"record")

    asyncio.run(run())


def receive(settings: Settings, topic: str) -> bytes:
    async def run() -> bytes:
        async with AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest") as consumer:
            record = await asyncio.wait_for(consumer.getone(), 120)
            return bytes(record.value)

    return asyncio.run(run())


@pytest.fixture
def topic(secured_broker: SecuredBroker, topic_prefix: str) -> str:
    name = f"{topic_prefix}reports"
    with KafkaAdminClient(**secured_broker.admin_settings()) as client:
        client.create_topics({name: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    return name


@pytest.mark.all
def test_user_has_exactly_the_allowed_operations(
    secured_broker: SecuredBroker, topic: str, topic_prefix: str
) -> None:
    """And a producer says which cause there is: a password that is wrong, or none of these operations."""
    user = f"{topic_prefix}user"
    password = secured_broker.add_user(user)
    by_password = secured_broker.sasl_settings(user)
    by_certificate = secured_broker.ssl_settings(secured_broker.client_certificate(user))
    resource = ResourcePattern(ResourceType.TOPIC, topic)
    kafka = secured_broker.sasl_servers

    def refused(password: str) -> str:
        authority = secured_broker.authority.certificate_file
        security = Security(ca_file=authority, username=user, password=password)
        with pytest.raises(DeliveryError) as caught:
            connect(Cluster(kafka, security), topic, 1, 5)
        return str(caught.value)

    assert topics(by_password) == topics(by_certificate) == []
    with pytest.raises(TopicAuthorizationFailedError):
        send(by_password, topic)
    assert refused(password).startswith(f"topic {topic} cannot be found: not authorized, ")
    assert refused("wrong") in (
        f"Kafka at {kafka}: authentication failed, the password is wrong, or the user unknown (brokers do "
        "not say which)",
        # The broker closed the connection right after its answer each time, before it was read.
        f"Kafka at {kafka} cannot be used: it closes the connection before the login; deniable doctor "
        "says why",
    )

    secured_broker.allow(user, resource, ACLOperation.WRITE)
    send(by_password, topic)
    assert topics(by_password) == topics(by_certificate) == [topic]
    with pytest.raises(TopicAuthorizationFailedError):
        receive(by_certificate, topic)
    secured_broker.allow(user, resource, ACLOperation.READ)
    assert receive(by_certificate, topic) == b"record"

    secured_broker.disallow(user)
    assert topics(by_password) == []
