"""Certificate and key of an edge: what is refused, and new files under a running edge."""

import socket
import ssl
from functools import partial
from pathlib import Path

import pytest

from deniable.edge.tls import TlsFiles, TlsFilesError
from tests.support.brokers.secured.certificates import Authority
from tests.support.edge.served import served
from tests.support.edge.uploads import post, upload
from tests.support.messages import PinMessages


@pytest.fixture
def authority(tmp_path):
    return Authority("authority", tmp_path / "authority")


def test_uploads_over_tls_and_a_new_certificate(authority, tmp_path):
    first, second = authority.issue("first", server=True), authority.issue("second", server=True)
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    certificate.write_bytes(first.certificate_file.read_bytes())
    key.write_bytes(first.key_file.read_bytes())
    with served(certificate_file=certificate, key_file=key) as edge:
        assert ask(edge, authority) == ("first", b"HTTP/1.1 204")
        certificate.write_bytes(second.certificate_file.read_bytes())
        key.write_bytes(second.key_file.read_bytes())
        edge.call(edge.edge._tls.refresh)
        assert ask(edge, authority) == ("second", b"HTTP/1.1 204")
        key.write_bytes(b"broken")
        with pytest.raises(TlsFilesError):
            edge.call(edge.edge._tls.refresh)
        assert ask(edge, authority) == ("second", b"HTTP/1.1 204")


def ask(edge, authority):
    """Return the certificate's common name and the beginning of the answer."""
    plain = socket.create_connection(("127.0.0.1", edge.port), timeout=10)
    with authority.context().wrap_socket(plain, server_hostname="127.0.0.1") as secured:
        secured.sendall(post(upload(), ["Connection: close"]))
        name = dict(each[0] for each in secured.getpeercert()["subject"])["commonName"]
        return name, secured.recv(4096)[:12]


def test_messages(authority: Authority, tmp_path: Path, pin_messages: PinMessages) -> None:
    for name in ("one", "two"):
        issued = authority.issue(name, server=True)
        issued.certificate_file.rename(tmp_path / f"{name}.crt")
        issued.key_file.rename(tmp_path / f"{name}.key")
    (tmp_path / "empty.crt").touch()
    pairs = {
        "the certificate is absent": ("absent.crt", "one.key"),
        "the key is of another certificate": ("one.crt", "two.key"),
        "the certificate is empty": ("empty.crt", "one.key"),
    }
    pin_messages(
        {what: partial(TlsFiles, *(tmp_path / each for each in pair)) for what, pair in pairs.items()}
    )


def test_plain_client_of_a_tls_port_is_closed(authority):
    issued = authority.issue("edge", server=True)
    with (
        served(certificate_file=issued.certificate_file, key_file=issued.key_file) as edge,
        edge.connect() as client,
    ):
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises((EOFError, ConnectionError, ssl.SSLError, UnicodeDecodeError)):
            client.answer()


def test_versions_before_tls_1_2_are_not_spoken(authority):
    made = authority.issue("edge", server=True)
    context = TlsFiles(made.certificate_file, made.key_file).context
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
