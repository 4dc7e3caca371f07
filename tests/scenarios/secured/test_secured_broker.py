"""The broker shared by security tests accepts known clients and allows nothing by default."""

import asyncio
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError
from kafka import KafkaAdminClient
from kafka.admin import ACLOperation, ResourcePattern, ResourceType
from kafka.errors import KafkaTimeoutError

from producers.errors import DeliveryError
from producers.transport.cluster import Cluster
from producers.transport.connection import connect
from producers.transport.security import Security
from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.brokers.secured.certificates import Issued
from tests.support.brokers.secured.closing import closing_connections

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_jars")]

Settings = dict[str, object]
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


def topics(settings: Settings) -> list[str]:
    with KafkaAdminClient(**settings, bootstrap_timeout_ms=5000) as client:
        return list(client.list_topics())


def topics_by_aiokafka(settings: Settings) -> list[str]:
    async def ask() -> list[str]:
        async with closing_connections():
            client = AIOKafkaAdminClient(**settings)
            try:
                await client.start()
                return list(await client.list_topics())
            finally:
                await client.close()

    return asyncio.run(ask())


def send(settings: Settings, topic: str) -> None:
    async def run() -> None:
        async with AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"record")

    asyncio.run(run())


def receive(settings: Settings, topic: str) -> bytes:
    async def run() -> bytes:
        async with AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest") as consumer:
            record = await asyncio.wait_for(consumer.getone(), 20)
            return bytes(record.value)

    return asyncio.run(run())


def refusal(settings: Settings, caplog: pytest.LogCaptureFixture) -> str:
    """Message or log of aiokafka on failure; `is let in` on success."""
    caplog.clear()
    try:
        topics_by_aiokafka(settings)
    except KafkaConnectionError as error:
        return f"{error}\n{caplog.text}"
    return "is let in"


@pytest.fixture
def topic(secured_broker: SecuredBroker, topic_prefix: str) -> str:
    name = f"{topic_prefix}reports"
    with KafkaAdminClient(**secured_broker.admin_settings()) as client:
        client.create_topics({name: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    return name


@pytest.mark.parametrize("ask", [topics, topics_by_aiokafka])
def test_admin_sees_all_by_password_and_by_certificate(
    secured_broker: SecuredBroker, topic: str, ask: Callable[[Settings], list[str]]
) -> None:
    assert topic in ask(secured_broker.admin_settings())
    assert topic in ask(secured_broker.ssl_settings(secured_broker.client_certificate("admin")))
    port = secured_broker.sasl_servers.rpartition(":")[2]
    assert topic in ask({**secured_broker.admin_settings(), "bootstrap_servers": f"localhost:{port}"})


@pytest.mark.parametrize(
    ("settings_of", "why"),
    [
        (lambda broker: broker.sasl_settings("nobody", "any"), "SaslAuthenticationFailed"),
        (lambda broker: broker.sasl_settings("admin", "wrong"), "SaslAuthenticationFailed"),
        (lambda broker: broker.ssl_settings(broker.stranger.issue("admin", client=True)), "closed"),
        (
            lambda broker: broker.ssl_settings(
                broker.authority.issue("admin", client=True, not_after=YESTERDAY)
            ),
            "closed",
        ),
        (lambda broker: broker.ssl_settings(None), "closed"),
        (lambda broker: {"bootstrap_servers": broker.sasl_servers}, "closed"),
        (lambda broker: {"bootstrap_servers": broker.ssl_servers}, "closed"),
        (lambda broker: {**broker.admin_settings(), "security_protocol": "SASL_PLAINTEXT"}, "closed"),
    ],
    ids=[
        "unknown user",
        "wrong password",
        "stranger",
        "expired",
        "no certificate",
        "plaintext to SASL",
        "plaintext to SSL",
        "password in plaintext",
    ],
)
def test_unknown_clients_are_refused(
    secured_broker: SecuredBroker,
    caplog: pytest.LogCaptureFixture,
    settings_of: Callable[[SecuredBroker], Settings],
    why: str,
) -> None:
    assert why in refusal(settings_of(secured_broker), caplog)


def test_known_clients_are_accepted(secured_broker: SecuredBroker, caplog: pytest.LogCaptureFixture) -> None:
    by_certificate = secured_broker.ssl_settings(secured_broker.client_certificate("admin"))
    for each in (secured_broker.admin_settings(), by_certificate):
        assert refusal(each, caplog) == "is let in"


def test_wrong_password_is_refused_by_kafka_python_too(secured_broker: SecuredBroker) -> None:
    settings = secured_broker.sasl_settings("admin", "wrong")
    with pytest.raises(KafkaTimeoutError):
        KafkaAdminClient(**settings, bootstrap_timeout_ms=500)


def test_producer_reports_why_it_is_refused(
    secured_broker: SecuredBroker, topic: str, topic_prefix: str
) -> None:
    user = f"{topic_prefix}user"
    password = secured_broker.add_user(user)

    def refused(password: str) -> str:
        security = Security(
            ca_file=secured_broker.authority.certificate_file, username=user, password=password
        )
        cluster = Cluster(secured_broker.sasl_servers, security)
        with pytest.raises(DeliveryError) as caught:
            connect(cluster, topic, 1, 2)
        return str(caught.value)

    kafka = secured_broker.sasl_servers
    assert refused("wrong") in (
        f"Kafka at {kafka}: authentication failed, the password is wrong or the user unknown",
        # The broker closed the connection right after its answer each time, before it was read.
        f"no Kafka broker answers at {kafka}: it closes the connection before the login; deniable doctor "
        "says why",
    )
    assert refused(password).startswith(f"topic {topic} cannot be found: not authorized, ")


def test_user_has_exactly_the_allowed_operations(
    secured_broker: SecuredBroker, topic: str, topic_prefix: str
) -> None:
    user = f"{topic_prefix}user"
    secured_broker.add_user(user)
    by_password = secured_broker.sasl_settings(user)
    by_certificate = secured_broker.ssl_settings(secured_broker.client_certificate(user))
    resource = ResourcePattern(ResourceType.TOPIC, topic)
    assert topics(by_password) == topics(by_certificate) == []
    with pytest.raises(TopicAuthorizationFailedError):
        send(by_password, topic)

    secured_broker.allow(user, resource, ACLOperation.WRITE)
    send(by_password, topic)
    assert topics(by_password) == topics(by_certificate) == [topic]
    with pytest.raises(TopicAuthorizationFailedError):
        receive(by_certificate, topic)
    secured_broker.allow(user, resource, ACLOperation.READ)
    assert receive(by_certificate, topic) == b"record"

    secured_broker.disallow(user)
    assert topics(by_password) == []


def test_changed_password_invalidates_the_old_one(
    secured_broker: SecuredBroker, topic_prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    user = f"{topic_prefix}user"
    former = secured_broker.add_user(user)
    secured_broker.change_password(user)
    assert refusal(secured_broker.sasl_settings(user), caplog) == "is let in"
    assert "SaslAuthenticationFailed" in refusal(secured_broker.sasl_settings(user, former), caplog)


def test_refused_changes_are_reported(secured_broker: SecuredBroker) -> None:
    with pytest.raises(RuntimeError, match=r"no password for : \{'': "):
        secured_broker.add_user("", "any")
    resource = ResourcePattern(ResourceType.CLUSTER, "no-cluster-is-called-so")
    with pytest.raises(RuntimeError, match="cannot be allowed"):
        secured_broker.allow("somebody", resource, ACLOperation.ALTER)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda broker: broker.stranger.issue("broker", server=True),
            "self-signed certificate in certificate chain",
        ),
        (lambda broker: broker.authority.issue("broker", server=True, not_after=YESTERDAY), "has expired"),
        (
            lambda broker: broker.authority.issue(
                "broker", server=True, addresses=("127.0.0.2",), names=("elsewhere.test",)
            ),
            "IP address mismatch",
        ),
    ],
    ids=["stranger", "expired", "another host"],
)
def test_bad_broker_certificate_is_reported_until_replaced(
    secured_broker: SecuredBroker,
    caplog: pytest.LogCaptureFixture,
    make: Callable[[SecuredBroker], Issued],
    why: str,
) -> None:
    by_certificate = secured_broker.ssl_settings(secured_broker.client_certificate("admin"))
    settings = (secured_broker.admin_settings(), by_certificate)
    with secured_broker.showing(make(secured_broker)):
        for each in settings:
            assert why in refusal(each, caplog)
    for each in settings:
        assert refusal(each, caplog) == "is let in"


def test_latest_estimates_survive_a_restart(
    secured_broker: SecuredBroker, topic: str, topic_prefix: str
) -> None:
    user = f"{topic_prefix}user"
    secured_broker.add_user(user)
    secured_broker.allow(user, ResourcePattern(ResourceType.TOPIC, topic), ACLOperation.DESCRIBE)
    settings = secured_broker.sasl_settings(user)
    by_certificate = secured_broker.ssl_settings(secured_broker.client_certificate(user))
    secured_broker.restart()
    assert topics(settings) == topics(by_certificate) == [topic]


def test_files_are_private_to_the_owner(secured_broker: SecuredBroker) -> None:
    assert secured_broker.folder is not None
    files = list((secured_broker.folder / "certificates").iterdir())
    assert len(files) > 5
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
