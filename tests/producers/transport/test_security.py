"""The section `kafka.security`: consistent fields, valid files, and secrets that are never shown."""

import asyncio
import logging
import os
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError as ConnectionFailed
from cryptography.hazmat.primitives import serialization
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from producers.errors import DeliveryError
from producers.transport.cluster import Cluster
from producers.transport.connection import connect
from producers.transport.credential_files import MOST_BYTES, SecurityError
from producers.transport.security import CredentialsError, CurrentPassword, Security
from tests.support.secured.broker import SecuredBroker
from tests.support.secured.certificates import Authority, Issued
from tests.support.secured.closing import closing_connections

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


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"certificate_file": HERE}, "certificate_file and key_file belong together: give both or neither"),
        ({"key_file": HERE}, "certificate_file and key_file belong together: give both or neither"),
        ({"key_password_file": HERE}, "key_password_file needs key_file"),
        ({"password": PASSWORD}, "a password needs username"),
        ({"password_file": HERE}, "a password needs username"),
        ({"username": "a"}, "username needs either password_file, or a password in the environment"),
        (
            {"username": "a", "password": PASSWORD, "password_file": HERE},
            "username needs either password_file, or a password in the environment",
        ),
        ({"username": "a", "password": ""}, "the password must not be empty"),
    ],
)
def test_conflicting_fields_are_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        Security(**fields)  # type: ignore[arg-type] # any of the fields
    assert str(caught.value) == message
    assert isinstance(caught.value, CredentialsError) == message.startswith(("a password", "username"))


@pytest.mark.parametrize("name", ["", "a,b", "a=b", "a b", "é", "a\n", "x" * 256, "p@ss w0rd!"])
def test_refuses_unsupported_username_without_showing_it(name: str) -> None:
    """A password entered as user name must not appear in a log."""
    with pytest.raises(ValueError, match="username must have 1 to 255 characters of") as caught:
        Security(username=name, password=PASSWORD)
    assert str(caught.value) == (
        "username must have 1 to 255 characters of A-Z a-z 0-9 . _ @ + / : - (the given one is not shown: "
        f"it may be the password), got {len(name)} characters"
    )


def test_files_are_first_read_for_a_connection(tmp_path: Path) -> None:
    security = Security(ca_file=tmp_path / "ca.pem")
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(SecurityError):
        security.client_settings()


def bad_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Files that every field refuses, and the reason in its message."""
    (folder / "empty").touch()
    yield folder / "empty", "must have 1 to 1048576 bytes, got none"
    (folder / "huge").write_bytes(bytes(MOST_BYTES + 1))
    yield folder / "huge", "must have 1 to 1048576 bytes, got more"
    yield folder, "must be a regular file"
    os.mkfifo(folder / "pipe")
    yield folder / "pipe", "must be a regular file"
    yield Path("/dev/zero"), "must be a regular file"
    (folder / "loop").symlink_to(folder / "loop")
    yield folder / "loop", "cannot be read: Too many levels of symbolic links"


@pytest.mark.slow
def test_unusable_file_is_named(tmp_path: Path, issued: Issued) -> None:
    """A pipe without a writer does not block."""
    certificate, key = issued.certificate_file, issued.key_file
    for path, reason in bad_files(tmp_path):
        for field, security in (
            ("ca_file", Security(ca_file=path)),
            ("certificate_file", Security(certificate_file=path, key_file=key)),
            ("key_file", Security(certificate_file=certificate, key_file=path)),
            ("password_file", Security(username="a", password_file=path)),
        ):
            assert refusal(security) == f"{field} {path} {reason}"


def test_absent_file_is_named_unless_it_may_be_a_secret(tmp_path: Path, issued: Issued) -> None:
    absent = tmp_path / "hunter2"
    assert refusal(Security(ca_file=absent)) == f"ca_file {absent} cannot be read: No such file or directory"
    hidden = "does not name a file (not shown: it may be the password itself)"
    for path in (absent, Path("x" * 300)):
        assert refusal(Security(username="a", password_file=path)) == f"password_file {hidden}"


def test_key_password_file_is_read_only_for_an_encrypted_key(
    tmp_path: Path, issued: Issued, encrypted_key: Path
) -> None:
    password, certificate = tmp_path / "password", issued.certificate_file

    def secured(key: Path, file: Path | None) -> Security:
        return Security(certificate_file=certificate, key_file=key, key_password_file=file)

    secured(issued.key_file, password).check()
    assert refusal(secured(encrypted_key, None)) == (
        f"key_file {encrypted_key} is encrypted: give key_password_file"
    )
    assert refusal(secured(encrypted_key, password)).startswith("key_password_file does not name a file (")
    password.write_text(f"{PASSWORD}\r\nanother line", encoding="utf-8")
    secured(encrypted_key, password).check()
    for wrong in ("wrong", "x" * 1024):
        password.write_text(wrong)
        message = refusal(secured(encrypted_key, password))
        assert f"key_file {encrypted_key}" in message
        assert "key_password_file" in message
        assert wrong not in message


def test_bad_certificate_or_key_is_reported(tmp_path: Path, authority: Authority, issued: Issued) -> None:
    text = tmp_path / "text"
    for content in (
        b"no PEM",
        b"\xff\xfe",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ):
        text.write_bytes(content)
        assert refusal(Security(ca_file=text)) == f"ca_file {text} must have certificates in PEM"
        for certificate, key in ((text, issued.key_file), (issued.certificate_file, text)):
            message = refusal(Security(certificate_file=certificate, key_file=key))
            assert message.startswith(f"certificate_file {certificate} and key_file {key} must have PEM: ")
    twice = Security(certificate_file=issued.certificate_file, key_file=issued.certificate_file)
    assert refusal(twice).endswith("if it is encrypted")  # OpenSSL gives no reason
    other = authority.issue("client", client=True)
    assert refusal(Security(certificate_file=issued.certificate_file, key_file=other.key_file)) == (
        f"key_file {other.key_file} is not the key of certificate_file {issued.certificate_file}"
    )


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


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (b"\nsecret", "must have the password on its first line, 1 to 1024 bytes, got 0"),
        (b"\r\n", "must have the password on its first line, 1 to 1024 bytes, got 0"),
        (b"s" * 1025, "must have the password on its first line, 1 to 1024 bytes, got 1025"),
        (b"s\xffcret", "must be text in UTF-8"),
    ],
)
def test_file_without_a_password_is_reported(tmp_path: Path, written: bytes, reason: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(written)
    assert refusal(Security(username="a", password_file=file)) == f"password_file {file} {reason}"


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
    with pytest.raises(SecurityError, match="must have certificates"):
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
