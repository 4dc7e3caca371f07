"""Every mechanism on a real broker: the whole path by principals that may do what their role needs."""

import asyncio
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaAdminClient, KafkaProducer

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.probe import RefusedError, UnreachableError, probe
from deniable.cluster.permissions.roles import Role
from deniable.deploy.cluster.permissions import acls as acl_setup
from tests.scenarios.secured.test_rotation import Traffic
from tests.support.aggregator.kafka_connect import PAGE, connect_jars, connecting, properties, samples
from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.brokers.secured.deployments import SecuredDeployment, by_password
from tests.support.brokers.secured.identity_provider import (
    IdentityProvider,
    broker_settings,
    java_options,
)
from tests.support.brokers.secured.whole_path import ROLES, count_reports
from tests.support.messages import PinMessages
from tests.support.processes import wait_until

FUNCTIONS = "tests.support.brokers.secured.identity_provider"
pytestmark = [pytest.mark.broker, pytest.mark.all]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_reports_are_counted_by_password(
    secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str, mechanism: str
) -> None:
    def of(user: str, mechanism: str | None) -> SecuredDeployment:
        folder = tmp_path / user
        folder.mkdir()
        return by_password(secured_broker, folder, topic_prefix, user, mechanism)

    of("admin", None).create_topics()
    by_role = {}
    for role in ROLES:
        user = f"plain-{role.value}"
        if mechanism != "PLAIN":
            user = f"{topic_prefix}{role.value}"
            secured_broker.add_user(user)
        by_role[role] = of(user, mechanism)
    output = count_reports(secured_broker, by_role)
    for each in by_role.values():
        assert (each.folder / "password").read_text().strip() not in output
    assert "Traceback" not in output


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def token_broker(kafka_jars: None, provider: IdentityProvider) -> Iterator[SecuredBroker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_JVM_PERFORMANCE_OPTS", java_options(provider))
        with SecuredBroker(broker_settings(provider)) as broker:
            yield broker


def of_token(
    broker: SecuredBroker, folder: Path, prefix: str, user: str, **section: str
) -> SecuredDeployment:
    shutil.copy(broker.authority.certificate_file, folder / "ca.crt")
    section |= {"ca_file": "ca.crt", "mechanism": "OAUTHBEARER"}
    return SecuredDeployment(folder, broker.plain_servers, prefix, user, section)


def of_endpoint(
    broker: SecuredBroker, provider: IdentityProvider, folder: Path, prefix: str, user: str
) -> SecuredDeployment:
    return of_token(
        broker,
        folder,
        prefix,
        user,
        token_endpoint=provider.token_endpoint,
        client_id=user,
        client_secret_file="secret",
    )


def test_reports_are_counted_by_tokens(
    token_broker: SecuredBroker, provider: IdentityProvider, tmp_path: Path, topic_prefix: str
) -> None:
    """Those of the endpoint live for 6 s, so its clients log in again while they work."""
    by_role = {}
    for role in ROLES:
        folder = tmp_path / role.value
        folder.mkdir()
        user = f"{topic_prefix}{role.value}"
        (folder / "secret").write_text(provider.client_secret)
        (folder / "given").write_text(provider.token(user))
        if role is Role.AGGREGATOR:
            by_role[role] = of_token(token_broker, folder, topic_prefix, user, token_file="given")
        elif role is Role.READER:
            by_role[role] = of_token(
                token_broker, folder, topic_prefix, user, token_provider=f"{FUNCTIONS}:token_of_folder"
            )
        else:
            by_role[role] = of_endpoint(token_broker, provider, folder, topic_prefix, user)
    admin = tmp_path / "admin"
    admin.mkdir()
    by_password(token_broker, admin, topic_prefix).create_topics()
    provider.lifetime_seconds = 6.0
    output = count_reports(token_broker, by_role)
    provider.lifetime_seconds = 300.0
    assert provider.client_secret not in output
    assert "eyJ" not in output, "the begin of a token"
    assert "Traceback" not in output


def test_messages_about_tokens(
    token_broker: SecuredBroker,
    provider: IdentityProvider,
    tmp_path: Path,
    topic_prefix: str,
    pin_messages: PinMessages,
) -> None:
    """Each cause in one sentence with the remedy."""
    file = tmp_path / "token"
    by_file = of_token(token_broker, tmp_path, topic_prefix, "admin", token_file="token").cluster
    elsewhere = tmp_path / "endpoint"
    elsewhere.mkdir()
    (elsewhere / "secret").write_text("wrong")
    endpoint = of_endpoint(token_broker, provider, elsewhere, topic_prefix, "admin").cluster

    def refusal(cluster: Cluster, token: str = "", is_away: bool = False) -> str:
        file.write_text(token)
        with pytest.raises(UnreachableError if is_away else RefusedError) as caught:
            probe(cluster)
        assert isinstance(caught.value, RefusedError) != is_away
        said = str(caught.value).replace(cluster.bootstrap_servers, "ADDRESS")
        return said.replace(provider.token_endpoint, "ENDPOINT").replace(str(tmp_path), "TMP")

    file.write_text(provider.token("admin"))
    probe(by_file)
    messages = {
        "wrong audience": refusal(by_file, provider.token("admin", aud="another")),
        "wrong issuer": refusal(by_file, provider.token("admin", iss="https://other.test")),
        "wrong key": refusal(by_file, provider.token("admin", is_of_other_key=True)),
        "not a JWT": refusal(by_file, "opaque"),
        "expired": re.sub(
            r"\d+ s ago", "N s ago", refusal(by_file, provider.token("admin", exp=1), is_away=True)
        ),
        "not written yet": refusal(by_file, is_away=True),
        "wrong secret": refusal(endpoint),
    }
    (elsewhere / "secret").write_text(provider.client_secret)
    users = (f"user-{number}" for number in count())  # each asks anew

    def anew(**more: str) -> Cluster:
        of = of_endpoint(token_broker, provider, elsewhere, topic_prefix, next(users))
        return replace(of, security={**of.security, **more}).cluster

    for what, status, answer, is_away in (
        ("garbage", 200, b"<html>hunter2</html>", False),
        ("opaque tokens", 200, b'{"access_token": "hunter2"}', False),
        ("no tokens", 200, b'{"error": "hunter2"}', False),
        ("too much", 200, b"hunter2" * 100_000, False),
        ("a redirect", 307, b"", False),
        ("an unknown refusal", 403, b"hunter2", False),
        ("an error of its own", 500, b"hunter2", True),
    ):
        provider.status, provider.answer = status, answer
        messages[f"the provider answers {what}"] = refusal(anew(), is_away=is_away)
    for status in (200, 500):
        provider.status, provider.answer, provider.pause_seconds = status, b"hunter2" * 100, 0.2
        began = time.monotonic()
        messages[f"the provider answers {status} slowly"] = refusal(anew(), is_away=True)
        assert time.monotonic() - began < 15
    provider.status, provider.answer, provider.pause_seconds = 200, None, 0.0
    of_stranger = token_broker.stranger.issue("provider", server=True)
    with IdentityProvider(shown=token_broker.authority.issue("provider", server=True)) as secured:
        secured.use_keys_of(provider)
        (elsewhere / "secret").write_text(secured.client_secret)
        by_tls = {"token_endpoint": secured.token_endpoint}
        probe(anew(**by_tls, token_ca_file="ca.crt"))
        messages["the provider is not trusted"] = refusal(anew(**by_tls)).replace(
            secured.token_endpoint, "ENDPOINT"
        )
        secured.shown = of_stranger
        refused = refusal(anew(**by_tls, token_ca_file="ca.crt"))
        messages["the provider has another authority"] = refused.replace(secured.token_endpoint, "ENDPOINT")
    provider.stop()
    messages["the provider is down"] = refusal(anew(), is_away=True)
    provider.start()
    assert "hunter" not in str(messages)
    pin_messages({what: (lambda message=message: message) for what, message in messages.items()})


SOAK_SECONDS, LIFETIME_SECONDS = 600.0, 30.0
#: Of one producer and one worker with some ten connections each, which stay open; aiokafka closes idle ones.
MOST_CONNECTIONS_A_MINUTE = 30


def connections_to(port: int) -> set[str]:
    """Return the local ends of this machine's connections to a port."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    ends = [line.split()[1:4] for line in lines]
    return {local for local, remote, state in ends if remote.endswith(f":{port:04X}") and state == "01"}


@pytest.mark.nightly
@pytest.mark.timeout(2 * SOAK_SECONDS)
def test_tokens_of_30_seconds_cost_no_report_and_few_connections(
    token_broker: SecuredBroker, provider: IdentityProvider, tmp_path: Path, topic_prefix: str
) -> None:
    """Idle connections, too, log in again instead of being closed."""
    (tmp_path / "secret").write_text(provider.client_secret)
    deployment = of_endpoint(token_broker, provider, tmp_path, topic_prefix, "admin")
    deployment.create_topics()
    provider.lifetime_seconds = LIFETIME_SECONDS
    traffic = Traffic(deployment)
    port = int(token_broker.plain_servers.rpartition(":")[2])
    with traffic.flowing():
        seen, began, before = connections_to(port), time.monotonic(), 0
        asked = provider.requests
        while time.monotonic() - began < SOAK_SECONDS:
            time.sleep(0.2)
            seen |= connections_to(port)
            minute = int((time.monotonic() - began) / 60)
            if minute > before:
                print(f"minute {minute}: {len(seen)} connections, {provider.requests - asked} tokens")  # noqa: T201
                before = minute
        traffic.assert_nothing_is_lost()
    provider.lifetime_seconds = 300.0
    assert len(seen) < MOST_CONNECTIONS_A_MINUTE * SOAK_SECONDS / 60
    assert provider.requests - asked < 4 * SOAK_SECONDS / LIFETIME_SECONDS


def test_connections_log_in_again_within_a_transaction(
    token_broker: SecuredBroker, provider: IdentityProvider, tmp_path: Path, topic_prefix: str
) -> None:
    """The broker would end each of them after 5 s."""
    (tmp_path / "secret").write_text(provider.client_secret)
    provider.lifetime_seconds = 5.0
    deployment = of_endpoint(token_broker, provider, tmp_path, topic_prefix, "admin")
    deployment.create_topics()
    topic, settings = deployment.topics.estimates, deployment.cluster.client_settings()
    port = int(token_broker.plain_servers.rpartition(":")[2])

    async def send() -> tuple[set[str], set[str]]:
        async with AIOKafkaProducer(**settings, transactional_id=f"{topic_prefix}t", acks="all") as producer:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"first")
                first = connections_to(port)
                await asyncio.sleep(12)
                await producer.send_and_wait(topic, b"second")
                last = connections_to(port)
            return first, last

    before = connections_to(port)
    first, last = asyncio.run(send())
    assert first - before
    assert first - before <= last
    with KafkaProducer(**settings) as kafka:
        kafka.send(topic, b"third").get(10)
        first = connections_to(port)
        time.sleep(12)
        kafka.send(topic, b"fourth").get(10)
        assert first <= connections_to(port)
    provider.lifetime_seconds = 300.0


def test_a_provider_that_is_away_is_waited_for(
    token_broker: SecuredBroker, provider: IdentityProvider, tmp_path: Path, topic_prefix: str
) -> None:
    """By a worker that starts, and by one that runs until its token expires; nothing is lost."""
    (tmp_path / "secret").write_text(provider.client_secret)
    deployment = of_endpoint(token_broker, provider, tmp_path, topic_prefix, "admin")
    deployment.create_topics()
    provider.lifetime_seconds = 5.0
    provider.stop()
    with deployment.running("worker.log", "aggregate", "--web-port", "0") as worker:
        reason = f"token_endpoint {provider.token_endpoint} cannot be reached: Connection refused"
        assert wait_until(lambda: reason in deployment.output("worker.log"), 60)
        provider.start()
        deployment.wait_until_ready("worker.log")
        provider.stop()
        assert wait_until(lambda: "no new token" in deployment.output("worker.log"), 30)
        assert wait_until(lambda: "Kafka cannot be used;" in deployment.output("worker.log"), 60)
        provider.start()
        assert wait_until(lambda: "Kafka can be used again" in deployment.output("worker.log"), 90)
        lines = b"carrier\n" + b"AA\n" * 300
        sent = deployment.run("produce", "carrier", "--field", "carrier", "--no-clients", given=lines)
        assert sent.returncode == 0, sent.stderr
        assert deployment.run("replay").stdout == "difference: 0\n"
        assert worker.poll() is None
    provider.lifetime_seconds = 300.0
    assert "Traceback" not in deployment.output("worker.log")


@pytest.mark.nightly
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_kafka_connect_reads_with_the_properties_of_the_page(
    request: pytest.FixtureRequest,
    provider: IdentityProvider,
    tmp_path: Path,
    topic_prefix: str,
    mechanism: str,
) -> None:
    """As a reader with no other permissions."""
    connect_jars()
    is_by_token = mechanism == "OAUTHBEARER"
    broker = request.getfixturevalue("token_broker" if is_by_token else "secured_broker")
    admin = by_password(broker, tmp_path, topic_prefix)
    admin.create_topics()
    user = "plain-reader" if mechanism == "PLAIN" else f"{topic_prefix}reader"
    if mechanism == "SCRAM-SHA-512":
        broker.add_user(user)
    secret = provider.client_secret if is_by_token else broker.sasl_settings(user)["sasl_plain_password"]
    with KafkaAdminClient(**broker.admin_settings()) as client:
        acl_setup.allow(client, admin.topics, {Role.READER: [user]})
    general, connector, login = map(properties, samples("properties"))
    login["sasl.mechanism"] = mechanism
    login["ssl.truststore.location"] = str(broker.authority.certificate_file)
    rows = [re.split(r" *\| *", line) for line in PAGE.splitlines()]
    (module,) = (row[2].split("`")[1] for row in rows if len(row) > 3 and mechanism in row[1])
    names = ("clientId", "clientSecret") if is_by_token else ("username", "password")
    login["sasl.jaas.config"] = f'{module} required {names[0]}="{user}" {names[1]}="{secret}";'
    if is_by_token:
        (besides,) = (row[3].split("`")[1::2] for row in rows if len(row) > 3 and mechanism in row[1])
        texts = [each.replace("ENDPOINT", provider.token_endpoint) for each in besides]
        login |= properties("\n".join(texts[:2]))
        options = [texts[2].removeprefix("KAFKA_OPTS=")]
    servers = broker.sasl_servers if mechanism.startswith("SCRAM") else broker.plain_servers
    general |= {"bootstrap.servers": servers} | login
    general |= {f"consumer.{each}": value for each, value in login.items()}
    connector["topics"] = admin.topics.estimates
    connector["consumer.override.group.id"] = f"{topic_prefix}reader-connect"
    connector["file"] = str(tmp_path / "estimates.jsonl")
    with KafkaProducer(**admin.cluster.client_settings()) as kafka:
        kafka.send(admin.topics.estimates, b'{"final": true}').get(10)
    with connecting(tmp_path, general, connector, options if is_by_token else ()) as log:
        file = Path(connector["file"])
        assert wait_until(lambda: file.exists() and "final" in file.read_text(), 120), log.read_text()
