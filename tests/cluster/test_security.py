"""The section `kafka.security`: consistent fields, valid files, and secrets that are never shown."""

import asyncio
import logging
import os
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError as ConnectionFailed
from cryptography.hazmat.primitives import serialization
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from deniable.cluster.cluster import Cluster
from deniable.cluster.credential_files import MOST_BYTES, SecurityError
from deniable.cluster.security import CredentialsError, CurrentPassword, Security
from deniable.producers.errors import DeliveryError
from deniable.producers.transport.connection import connect
from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.brokers.secured.certificates import Authority, Issued
from tests.support.brokers.secured.closing import closing_connections
from tests.support.messages import PinMessages

HERE = Path("a-file")
PASSWORD = "correct horse ✓ battery"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority("authority", tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def issued(authority: Authority) -> Issued:
    return authority.issue("client", client=True)


@pytest.fixture(scope="module")
def encrypted_key(issued: Issued, tmp_path_factory: pytest.TempPathFactory) -> Path:
    key = serialization.load_pem_private_key(issued.key_file.read_bytes(), None)
    file = tmp_path_factory.mktemp("key") / "encrypted.key"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
    )
    return file


def refusal(security: Security) -> str:
    with pytest.raises(SecurityError) as caught:
        security.check()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_messages_about_fields(pin_messages: PinMessages) -> None:
    def both() -> Security:
        return Security(username="a", password=PASSWORD, password_file=HERE)

    pin_messages(
        {
            "a certificate without a key": lambda: Security(certificate_file=HERE),
            "a key without a certificate": lambda: Security(key_file=HERE),
            "a password of no key": lambda: Security(key_password_file=HERE),
            "a password of nobody": lambda: Security(password=PASSWORD),
            "a password file of nobody": lambda: Security(password_file=HERE),
            "no password": lambda: Security(username="a"),
            "a password and a password file": both,
            "an empty password": lambda: Security(username="a", password=""),
        }
    )
    for without in (lambda: Security(password=PASSWORD), lambda: Security(username="a")):
        with pytest.raises(CredentialsError):
            without()


def test_messages_about_usernames(pin_messages: PinMessages) -> None:
    """A password entered as user name must not appear in a log."""
    names = {
        "none": "",
        "a comma": "a,b",
        "an equals sign": "a=b",
        "a space": "a b",
        "another alphabet": "é",
        "a line feed": "a\n",
        "256 characters": "x" * 256,
        "a password": "p@ss w0rd!",
    }
    pin_messages({what: partial(Security, username=name, password=PASSWORD) for what, name in names.items()})


def test_files_are_first_read_for_a_connection(tmp_path: Path) -> None:
    security = Security(ca_file=tmp_path / "ca.pem")
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(SecurityError):
        security.client_settings()


def bad_files(folder: Path) -> Mapping[str, Path]:
    """Return files that every field refuses."""
    (folder / "empty").touch()
    (folder / "huge").write_bytes(bytes(MOST_BYTES + 1))
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    names = ("empty", "huge", "pipe", "loop")
    return {name: folder / name for name in names} | {"folder": folder, "device": Path("/dev/zero")}


@pytest.mark.slow
def test_messages_about_files(tmp_path: Path, authority: Authority, pin_messages: PinMessages) -> None:
    """A pipe without a writer does not block; what may be a secret is not shown."""
    for name in ("one", "two"):
        issued = authority.issue(name, client=True)
        issued.certificate_file.rename(tmp_path / f"{name}.crt")
        issued.key_file.rename(tmp_path / f"{name}.key")
    certificate, key, other = (tmp_path / name for name in ("one.crt", "one.key", "two.key"))
    bad, text = bad_files(tmp_path), tmp_path / "text"
    text.write_bytes(b"no PEM")
    fields: dict[str, Callable[[Path], Security]] = {
        "ca_file": lambda path: Security(ca_file=path),
        "certificate_file": lambda path: Security(certificate_file=path, key_file=key),
        "key_file": lambda path: Security(certificate_file=certificate, key_file=path),
        "password_file": lambda path: Security(username="a", password_file=path),
    }
    cases = {f"ca_file is bad: {what}": Security(ca_file=path) for what, path in bad.items()}
    cases |= {f"{field} is empty": secured(bad["empty"]) for field, secured in fields.items()}
    cases |= {
        "ca_file is absent": Security(ca_file=tmp_path / "absent"),
        "password_file is absent": Security(username="a", password_file=tmp_path / "hunter2"),
        "password_file is no name": Security(username="a", password_file=Path("x" * 300)),
        "ca_file is no PEM": Security(ca_file=text),
        "the key is of another certificate": Security(certificate_file=certificate, key_file=other),
    }
    pin_messages({what: security.check for what, security in cases.items()})
    for security in cases.values():
        refusal(security)
    for path in bad.values():
        assert len({refusal(secured(path)).removeprefix(field) for field, secured in fields.items()}) == 1


@pytest.mark.slow
def test_key_password_file_is_read_only_for_an_encrypted_key(
    tmp_path: Path, issued: Issued, encrypted_key: Path
) -> None:
    password, certificate = tmp_path / "password", issued.certificate_file

    def secured(key: Path, file: Path | None) -> Security:
        return Security(certificate_file=certificate, key_file=key, key_password_file=file)

    secured(issued.key_file, password).check()
    missing = refusal(secured(encrypted_key, None))
    assert f"key_file {encrypted_key}" in missing
    assert "key_password_file" in missing
    assert "key_password_file" in refusal(secured(encrypted_key, password))
    password.write_text(f"{PASSWORD}\r\nanother line", encoding="utf-8")
    secured(encrypted_key, password).check()
    for wrong in ("wrong", "x" * 1024):
        password.write_text(wrong)
        message = refusal(secured(encrypted_key, password))
        assert f"key_file {encrypted_key}" in message
        assert "key_password_file" in message
        assert wrong not in message


@pytest.mark.slow
def test_bad_certificate_or_key_is_reported(tmp_path: Path, issued: Issued) -> None:
    text = tmp_path / "text"
    for content in (
        b"no PEM",
        b"\xff\xfe",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ):
        text.write_bytes(content)
        assert refusal(Security(ca_file=text)).startswith(f"ca_file {text} ")
        for certificate, key in ((text, issued.key_file), (issued.certificate_file, text)):
            message = refusal(Security(certificate_file=certificate, key_file=key))
            assert message.startswith(f"certificate_file {certificate} and key_file {key} ")
    twice = Security(certificate_file=issued.certificate_file, key_file=issued.certificate_file)
    assert refusal(twice).startswith("certificate_file ")  # OpenSSL gives no reason


@pytest.mark.parametrize(
    "written", ["{}", "{}\n", "{}\r\n", "{}\nmore", "\ufeff{}\n"], ids=["bare", "LF", "CRLF", "more", "BOM"]
)
def test_password_is_the_current_first_line(tmp_path: Path, written: str) -> None:
    file = tmp_path / "password"
    security = Security(username="a", password_file=file)
    handed = CurrentPassword(security)
    for password in (PASSWORD, " with spaces "):
        file.write_text(written.format(password), encoding="utf-8")
        assert handed.encode() == security.current_password().encode() == password.encode()


def test_messages_about_password_files(tmp_path: Path, pin_messages: PinMessages) -> None:
    contents = {
        "the first line is empty": b"\nsecret",
        "all lines are empty": b"\r\n",
        "the first line is too long": b"s" * 1025,
        "the file is no text": b"s\xffcret",
    }
    file = tmp_path / "password"

    def check(content: bytes) -> None:
        file.write_bytes(content)
        Security(username="a", password_file=file).check()

    pin_messages({what: partial(check, content) for what, content in contents.items()})


def test_no_representation_shows_a_password() -> None:
    security = Security(username="a", password=PASSWORD)
    cluster = Cluster("127.0.0.1:1", security)
    settings = cluster.client_settings()
    for shown in (security, cluster, settings, settings["sasl_plain_password"], settings["ssl_context"]):
        for way in (repr, str, ascii, "{}".format, "%s".__mod__ if not isinstance(shown, dict) else str):
            assert "horse" not in way(shown)


def test_each_connection_reads_the_current_certificates(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(authority.certificate_file.read_bytes())
    context = Security(ca_file=file).client_settings()["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="kafka")
    file.write_text("replaced by something else")
    with pytest.raises(SecurityError, match="ca_file"):
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="kafka")


@pytest.mark.broker
def test_logs_of_all_levels_contain_no_password_or_key(
    secured_broker: SecuredBroker, topic_prefix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All loggers at DEBUG, and errors: neither passwords nor SCRAM messages that help to guess them."""
    user, file = f"{topic_prefix}user", tmp_path / "password"
    good, wrong = secured_broker.add_user(user), "a-wrong-password"
    certificate = secured_broker.client_certificate(user)
    for name in (None, "kafka", "aiokafka", "faust", "producers"):
        caplog.set_level(logging.DEBUG, logger=name)
    answers = []
    for password in (good, wrong):
        file.write_text(password)
        by_password = Security(
            ca_file=secured_broker.authority.certificate_file, username=user, password_file=file
        )
        by_certificate = Security(
            ca_file=secured_broker.authority.certificate_file,
            certificate_file=certificate.certificate_file,
            key_file=certificate.key_file,
        )
        for servers, security in (
            (secured_broker.sasl_servers, by_password),
            (secured_broker.ssl_servers, by_certificate),
        ):
            cluster = Cluster(servers, security)
            answers += [_ask(cluster, topic_prefix)]
    assert "aiokafka" in caplog.text
    assert "kafka.net" in caplog.text
    assert any("SaslAuthenticationFailed" in each for each in (caplog.text, *answers))
    key_lines = certificate.key_file.read_text().splitlines()[1:-1]
    for secret in (good, wrong, *key_lines, "c=biws,", "i=8192"):
        assert secret not in caplog.text
        assert all(secret not in each for each in answers)


def _ask(cluster: Cluster, topic: str) -> str:
    """Errors of each of our clients when the topic is absent or access is denied."""
    answers = []
    with pytest.raises(DeliveryError) as delivery:
        connect(cluster, topic, 1, 1.0)
    answers.append(str(delivery.value))
    try:
        KafkaAdminClient(**cluster.client_settings(), bootstrap_timeout_ms=1000).close()
    except KafkaError as error:
        answers.append(repr(error))

    async def start() -> None:
        async with closing_connections():
            producer = AIOKafkaProducer(**cluster.client_settings())
            try:
                await producer.start()
            finally:
                await producer.stop()

    try:
        asyncio.run(start())
    except ConnectionFailed as error:
        answers.append(repr(error))
    return "\n".join(answers)


def test_connections_verify_the_broker_by_tls_1_2_or_newer() -> None:
    context = Security(username="u", password="p").new_context()
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
