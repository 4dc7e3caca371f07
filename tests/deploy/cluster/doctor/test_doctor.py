"""`deniable doctor` names why no connection can be used, within 10 s, and so does every other command."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deploy.cluster.connection.probe import PROBE_SECONDS, RefusedError, UnreachableError, probe
from deploy.cluster.doctor.connection import expiry
from producers.transport.security import Security
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker
from tests.support.brokers.secured.certificates import Issued
from tests.support.deploy.doctors import RUN_SECONDS, Patient, run, shown

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_jars")]

YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
def patient(secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str) -> Patient:
    return Patient(secured_broker, tmp_path, topic_prefix)


def by_certificate(broker: SecuredBroker, certificate: Issued) -> Security:
    authority, key = broker.authority.certificate_file, certificate.key_file
    return Security(ca_file=authority, certificate_file=certificate.certificate_file, key_file=key)


def trusting(broker: SecuredBroker) -> Security:
    return Security(ca_file=broker.authority.certificate_file)


def named(
    patient: Patient,
    security: Security | None,
    servers: str,
    step: str,
    cause: str,
    probe_seconds: float = PROBE_SECONDS,
) -> None:
    """The doctor and the probe of every other command name the cause, and nothing after it is tried."""
    configuration = patient.configuration(security, servers)
    results = run(configuration)
    assert shown(results) == f"{step}: {servers}: {cause}"
    names = list(results)
    assert {results[each].status for each in names[names.index(step) + 1 :]} == {"skipped"}
    began = time.monotonic()
    with pytest.raises(UnreachableError) as caught:
        probe(configuration.cluster, probe_seconds)
    assert time.monotonic() - began < RUN_SECONDS
    assert "\n" not in str(caught.value)
    if "no answer within" not in cause:
        assert f"({servers}: {cause});" in str(caught.value)
        refused = cause not in ("Connection refused", "Name or service not known")
        assert isinstance(caught.value, RefusedError) is refused


WRONG = "the password is wrong, or the user unknown (brokers do not say which)"


@pytest.mark.parametrize(
    ("security", "cause"),
    [
        (lambda patient: patient.by_password(ADMIN, "wrong"), WRONG),
        (lambda patient: patient.by_password("nobody", "any"), WRONG),
        (
            lambda patient: trusting(patient.broker),
            "it requires a user name and a password, and we gave none",
        ),
    ],
    ids=["wrong password", "unknown user", "no user name"],
)
def test_who_is_not_known_by_password(
    patient: Patient, security: Callable[[Patient], Security], cause: str
) -> None:
    named(patient, security(patient), patient.broker.sasl_servers, "authentication", cause)


@pytest.mark.parametrize(
    ("security", "cause"),
    [
        (lambda broker: None, "it requires TLS, and we connected without"),
        (trusting, "it requires a client certificate, and we gave none"),
        (
            lambda broker: by_certificate(
                broker, broker.authority.issue("admin", client=True, not_after=YESTERDAY)
            ),
            f"our certificate expired on {YESTERDAY:%Y-%m-%d}",
        ),
        (
            lambda broker: by_certificate(broker, broker.stranger.issue("admin", client=True)),
            "it does not trust our certificate",
        ),
        (
            lambda broker: Security(ca_file=broker.stranger.certificate_file),
            "its certificate is not trusted: self-signed certificate in certificate chain",
        ),
    ],
    ids=["plaintext", "no certificate", "expired", "of a stranger", "untrusted CA"],
)
def test_tls_mismatches_are_explained(
    patient: Patient, security: Callable[[SecuredBroker], Security | None], cause: str
) -> None:
    broker = patient.broker
    named(patient, security(broker), broker.ssl_servers, "TLS", cause)


def test_user_name_at_a_certificate_listener_is_explained(patient: Patient) -> None:
    certificate = patient.broker.client_certificate("admin")
    both = Security(
        ca_file=patient.broker.authority.certificate_file,
        certificate_file=certificate.certificate_file,
        key_file=certificate.key_file,
        username="admin",
        password="any",
    )
    cause = "that listener identifies clients by certificate, and we gave a user name"
    named(patient, both, patient.broker.ssl_servers, "authentication", cause)


def test_tls_to_a_port_without(patient: Patient, broker: str) -> None:
    cause = "it is a Kafka listener without TLS, and we connected with it"
    named(patient, patient.by_password(ADMIN), broker, "TLS", cause)


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (
            lambda broker: broker.authority.issue("broker", server=True, not_after=YESTERDAY),
            "its certificate, or its CA's, has expired",
        ),
        (
            lambda broker: broker.authority.issue(
                "broker", server=True, addresses=("127.0.0.2",), names=("elsewhere.test",)
            ),
            "its certificate is for another host name",
        ),
    ],
    ids=["expired", "hostname mismatch"],
)
def test_problems_of_the_brokers_certificate_are_explained(
    patient: Patient, make: Callable[[SecuredBroker], Issued], cause: str
) -> None:
    with patient.broker.showing(make(patient.broker)):
        named(patient, patient.by_password(ADMIN), patient.broker.sasl_servers, "TLS", cause)


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (timedelta(days=14), None),
        (timedelta(days=1, hours=5), "in 1 day"),
        (timedelta(hours=5, minutes=1), "in 5 hours"),
        (timedelta(minutes=59), "in less than an hour"),
    ],
)
def test_when_a_certificate_expires(left: timedelta, message: str | None) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    found = [each.what.rpartition(", ")[2] for each in expiry("it", now + left, now)]
    assert found == ([] if message is None else [message])


def test_a_certificate_that_expires_soon_is_a_warning(patient: Patient) -> None:
    soon = datetime.now(UTC) + timedelta(days=13, hours=1)
    configuration = patient.as_admin()
    with patient.broker.showing(patient.broker.authority.issue("broker", server=True, not_after=soon)):
        result = run(configuration)["TLS"]
    assert (result.status, len(result.findings)) == ("warning", 1)
    assert result.findings[0].what.endswith(f"its certificate expires on {soon:%Y-%m-%d}, in 13 days")
    late = soon + timedelta(days=2)
    with patient.broker.showing(patient.broker.authority.issue("broker", server=True, not_after=late)):
        assert run(configuration)["TLS"].status == "ok"


def test_a_listener_without_scram(patient: Patient) -> None:
    security, servers = patient.by_password(ADMIN), patient.broker.plain_servers
    named(patient, security, servers, "authentication", "it does not accept SCRAM-SHA-512")


@contextmanager
def silent() -> Iterator[str]:
    """Takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def black_hole() -> Iterator[str]:
    """Answers nothing, not even that it is closed: its queue is full."""
    with ExitStack() as opened:
        server = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def closed() -> Iterator[str]:
    """An address where nothing listens, kept from others."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize(
    ("where", "step", "cause"),
    [
        (closed, "connection", "Connection refused"),
        (black_hole, "connection", "no answer within 2 s"),
        (silent, "TLS", "no answer within 2 s"),
    ],
    ids=["closed", "black hole", "silent"],
)
def test_silent_or_unreachable_broker_is_named(
    patient: Patient, where: Callable[[], AbstractContextManager[str]], step: str, cause: str
) -> None:
    with where() as address:
        named(patient, patient.by_password(ADMIN), address, step, cause)


def test_a_paused_broker(patient: Patient) -> None:
    patient.broker.pause()
    try:
        servers = patient.broker.sasl_servers
        named(patient, patient.by_password(ADMIN), servers, "TLS", "no answer within 2 s", probe_seconds=1.0)
    finally:
        patient.broker.resume()


def test_a_name_that_does_not_resolve(patient: Patient) -> None:
    cause = "Name or service not known"
    named(patient, patient.by_password(ADMIN), "no-such-host.invalid:9093", "connection", cause)


def test_dns_that_does_not_answer(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [asked.wait(20)] * 0)
    try:
        cause = "no answer within 2 s"
        named(patient, patient.by_password(ADMIN), "slow.test:9093", "connection", cause, probe_seconds=1.0)
    finally:
        asked.set()


def test_half_of_the_brokers_down_is_a_warning(patient: Patient) -> None:
    with closed() as down, silent() as mute:
        servers = f"{down},{mute},{patient.broker.sasl_servers}"
        configuration = patient.configuration(patient.by_password(ADMIN), servers)
        probe(configuration.cluster)
        results = run(configuration)
    assert [each.what for each in results["connection"].findings] == [f"{down}: Connection refused"]
    assert results["connection"].status == "warning"
    assert f"{mute}: no answer within 2 s" in [each.what for each in results["TLS"].findings]
    assert results["authentication"].status == "ok"
    assert results["authorization"].status == "ok"  # nobody waits for those that are down


def test_advertised_address_missing_from_the_certificate(patient: Patient) -> None:
    broker = patient.broker
    servers = f"localhost:{broker.sasl_servers.rpartition(':')[2]}"
    configuration = patient.configuration(patient.by_password(ADMIN), servers)
    with broker.showing(broker.authority.issue("broker", server=True, addresses=(), names=("localhost",))):
        results = run(configuration)
    assert results["authentication"].status == "ok"
    assert [each.what for each in results["brokers"].findings] == [
        f"{broker.sasl_servers}: its certificate is for another host name"
    ]
    assert results["brokers"].findings[0].remedy.endswith("so every client must reach it")
