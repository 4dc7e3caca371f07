"""`deniable doctor` names why no connection can be used, and so does every other command."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from deniable.cluster.connection.probe import RefusedError, UnreachableError, probe
from deniable.cluster.logins import token_sources, tokens
from deniable.cluster.permissions.roles import Role
from deniable.cluster.security import Security
from deniable.config.file import Configuration
from deniable.deploy.cluster.doctor import examination
from deniable.deploy.cluster.doctor.case import Case, StepAnswer
from deniable.deploy.cluster.doctor.connection import authentication, expiry
from deniable.deploy.cluster.doctor.examination import Step, examine
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker
from tests.support.brokers.secured.certificates import Issued
from tests.support.deploy.collection_texts import WHOLE, read
from tests.support.deploy.doctors import PATIENT_SECONDS, Patient, run, shown

YESTERDAY = datetime.now(UTC) - timedelta(days=1)
SILENCE = "no answer within 2 s"
WRONG = "the password is wrong, or the user unknown (brokers do not say which)"

of_broker = pytest.mark.broker


@pytest.fixture
def patient(secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str) -> Patient:
    return Patient(secured_broker, tmp_path, topic_prefix)


def named(patient: Patient, security: Security | None, servers: str, step: str, cause: str) -> None:
    """The doctor and the probe of every other command name the cause, and nothing after it is tried."""
    configuration = patient.configuration(security, servers)
    is_silent = cause == SILENCE
    results = run(configuration, seconds=None if is_silent else PATIENT_SECONDS)
    assert shown(results) == f"{step}: {servers}: {cause}"
    names = list(results)
    assert {results[each].status for each in names[names.index(step) + 1 :]} == {"skipped"}, cause
    with pytest.raises(UnreachableError) as caught:
        probe(configuration.cluster, 2.0 if is_silent else PATIENT_SECONDS)
    assert "\n" not in str(caught.value)
    assert f"({servers}: {cause});" in str(caught.value)
    refused = cause not in (SILENCE, "Connection refused", "Name or service not known")
    assert isinstance(caught.value, RefusedError) is refused, cause


@of_broker
def test_clients_that_a_broker_refuses_are_told_why(patient: Patient, broker: str) -> None:
    secured = patient.broker
    trusting = Security(ca_file=secured.authority.certificate_file)

    def by_certificate(certificate: Issued, **more: str) -> Security:
        files = {"certificate_file": certificate.certificate_file, "key_file": certificate.key_file}
        return Security(ca_file=trusting.ca_file, **files, **more)

    expired = secured.authority.issue("admin", client=True, not_after=YESTERDAY)
    admin = patient.by_password(ADMIN)
    both = by_certificate(secured.client_certificate("admin"), username="admin", password="any")
    of_stranger = Security(ca_file=secured.stranger.certificate_file)
    sasl, tls = secured.sasl_servers, secured.ssl_servers
    for security, servers, step, cause in (
        (patient.by_password(ADMIN, "wrong"), sasl, "authentication", WRONG),
        (patient.by_password("nobody", "any"), sasl, "authentication", WRONG),
        (trusting, sasl, "authentication", "it requires a login, and we gave none"),
        (admin, secured.plain_servers, "authentication", "it does not accept SCRAM-SHA-512, but PLAIN"),
        (None, tls, "TLS", "it requires TLS, and we connected without"),
        (trusting, tls, "TLS", "it requires a client certificate, and we gave none"),
        (by_certificate(expired), tls, "TLS", f"our certificate expired on {YESTERDAY:%Y-%m-%d}"),
        (
            by_certificate(secured.stranger.issue("admin", client=True)),
            tls,
            "TLS",
            "it does not trust our certificate",
        ),
        (
            of_stranger,
            tls,
            "TLS",
            "its certificate is not trusted: self-signed certificate in certificate chain",
        ),
        (
            both,
            tls,
            "authentication",
            "that listener identifies clients by certificate, and we gave a user name",
        ),
        (admin, broker, "TLS", "it is a Kafka listener without TLS, and we connected with it"),
    ):
        named(patient, security, servers, step, cause)


@pytest.mark.all
@of_broker
def test_expired_certificate_of_a_broker_is_named(patient: Patient) -> None:
    broker = patient.broker
    with broker.showing(broker.authority.issue("broker", server=True, not_after=YESTERDAY)):
        cause = "its certificate, or its CA's, has expired"
        named(patient, patient.by_password(ADMIN), broker.sasl_servers, "TLS", cause)


@pytest.mark.nightly
@of_broker
def test_certificates_of_a_broker_are_judged(patient: Patient) -> None:
    broker = patient.broker
    admin, servers = patient.by_password(ADMIN), broker.sasl_servers
    elsewhere = {"addresses": ("127.0.0.2",), "names": ("elsewhere.test",)}
    with broker.showing(broker.authority.issue("broker", server=True, **elsewhere)):
        named(patient, admin, servers, "TLS", "its certificate is for another host name")
    soon = datetime.now(UTC) + timedelta(days=13, hours=1)
    with broker.showing(broker.authority.issue("broker", server=True, not_after=soon)):
        result = run(patient.as_admin())["TLS"]
    assert (result.status, len(result.findings)) == ("warning", 1)
    assert result.findings[0].what.endswith(f"its certificate expires on {soon:%Y-%m-%d}, in 13 days")
    late = soon + timedelta(days=2)
    with broker.showing(broker.authority.issue("broker", server=True, not_after=late)):
        assert run(patient.as_admin())["TLS"].status == "ok"
    localhost = f"localhost:{servers.rpartition(':')[2]}"
    with broker.showing(broker.authority.issue("broker", server=True, addresses=(), names=("localhost",))):
        results = run(patient.configuration(admin, localhost), seconds=10.0)  # later steps find no broker
    assert results["authentication"].status == "ok"
    (finding,) = results["brokers"].findings  # of the address that it advertises
    assert finding.what == f"{servers}: its certificate is for another host name"
    assert finding.remedy.endswith("so every client must reach it")


def test_when_a_certificate_expires() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    left = {
        timedelta(days=14): [],
        timedelta(days=1, hours=5): ["in 1 day"],
        timedelta(hours=5, minutes=1): ["in 5 hours"],
        timedelta(minutes=59): ["in less than an hour"],
    }
    found = {each: [f.what.rpartition(", ")[2] for f in expiry("it", now + each, now)] for each in left}
    assert found == left


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


@pytest.mark.all
@of_broker
def test_brokers_that_are_unreachable_or_silent_are_named(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = patient.by_password(ADMIN)
    with closed() as address:
        named(patient, admin, address, "connection", "Connection refused")
    with black_hole() as address:
        named(patient, admin, address, "connection", SILENCE)
    with silent() as address:
        named(patient, admin, address, "TLS", SILENCE)
    patient.broker.pause()
    try:
        named(patient, admin, patient.broker.sasl_servers, "TLS", SILENCE)
    finally:
        patient.broker.resume()
    named(patient, admin, "no-such-host.invalid:9093", "connection", "Name or service not known")
    asked = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [asked.wait(20)] * 0)
    try:
        named(patient, admin, "slow.test:9093", "connection", SILENCE)
    finally:
        asked.set()


@pytest.mark.all
@of_broker
def test_half_of_the_brokers_down_is_a_warning(patient: Patient) -> None:
    with closed() as down, silent() as mute:
        servers = f"{down},{mute},{patient.broker.sasl_servers}"
        configuration = patient.configuration(patient.by_password(ADMIN), servers)
        probe(configuration.cluster, PATIENT_SECONDS)
        results = run(configuration, seconds=10.0)
    assert [each.what for each in results["connection"].findings] == [f"{down}: Connection refused"]
    assert results["connection"].status == "warning"
    assert f"{mute}: no answer within 10 s" in [each.what for each in results["TLS"].findings]
    assert results["authentication"].status == "ok"
    assert results["authorization"].status == "ok"  # nobody waits for those that are down


@pytest.mark.slow
def test_a_slow_source_of_tokens_is_given_up_within_the_step_that_names_it() -> None:
    step = next(each for each in examination.STEPS if each.name == "authentication")
    assert token_sources.ANSWER_SECONDS < tokens.WAIT_SECONDS <= step.seconds - 0.3


def test_a_login_by_token_names_the_source_as_one(tmp_path: Path) -> None:
    def note(section: str) -> str:
        kafka = f"kafka: {{bootstrap_servers: 'kafka.example:9093', security: {section}}}\n"
        case = Case(read(tmp_path / "deniable.yaml", kafka + WHOLE), Role.AGGREGATOR, float)
        return authentication(case, 1.0).note

    by_file = note("{mechanism: OAUTHBEARER, token_file: t}")
    assert by_file == f"logged in with the token of token_file {tmp_path / 't'}"
    assert note("{username: a, password_file: p}") == "logged in as a"


def test_a_step_that_hangs_is_abandoned_and_one_without_time_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hanging = threading.Event()

    def hang(_: Case, __: float) -> StepAnswer:
        hanging.wait(PATIENT_SECONDS)
        return StepAnswer([])

    def statuses(total_seconds: float) -> Mapping[str, list[str]]:
        steps = (
            Step("hangs", hang, 0.2, ""),
            Step("needs it", hang, 0.2, "hangs"),
            Step("other", hang, 0.2, ""),
        )
        monkeypatch.setattr(examination, "STEPS", steps)
        case = Case(cast(Configuration, None), Role.AGGREGATOR, lambda: 0.0)
        results = examine(case, total_seconds)
        return {each.step: [each.status, *(found.what for found in each.findings)] for each in results}

    try:
        gave_up = ["failed", "no answer within 0.2 s"]
        assert statuses(PATIENT_SECONDS) == {"hangs": gave_up, "needs it": ["skipped"], "other": gave_up}
        late = ["failed", "no time was left for it"]
        assert statuses(0.4) == {"hangs": late, "needs it": ["skipped"], "other": late}
    finally:
        hanging.set()
    assert examination.TOTAL_SECONDS < 10 > max(step.seconds for step in examination.STEPS)
