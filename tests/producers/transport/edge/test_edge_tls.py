"""An edge behind TLS: its certificate must be of the configured authority and for its name."""

import re
import ssl
from pathlib import Path

import pytest

from deniable.config.settings.edge_address import EdgeAddress
from deniable.producers.errors import DeliveryError
from deniable.producers.transport.edge.connection import EdgeConnection
from tests.support.brokers.secured.certificates import Authority
from tests.support.edge.fake_edge import fake_edge
from tests.support.messages import PinMessages


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority("edge-ca", tmp_path_factory.mktemp("ca"))


def posted(url, ca_file):
    connection = EdgeConnection(EdgeAddress(url, ca_file), 5.0, 5.0)
    try:
        return [connection.post(b"upload").status for _ in range(2)]
    finally:
        connection.close()


@pytest.fixture
def secured(authority):
    """Run a fake edge with a certificate for these names."""

    def wrap(server, **named):
        issued = authority.issue("edge", server=True, **named)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(issued.certificate_file, issued.key_file)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return f"https://localhost:{server.server_port}"

    return wrap


def test_trusted_edge_gets_uploads_over_one_connection(secured, authority):
    with fake_edge() as server:
        url = secured(server)
        assert posted(url, authority.certificate_file) == [204, 204]
        assert len({each.connection for each in server.uploads()}) == 1


def test_edges_that_are_not_trusted_get_nothing(secured, authority, tmp_path):
    other = Authority("other-ca", tmp_path / "other")
    with fake_edge() as server:
        url = secured(server)
        for ca_file in (None, other.certificate_file):
            with pytest.raises(DeliveryError, match=url):
                posted(url, ca_file)
    with fake_edge() as server:
        url = secured(server, addresses=(), names=("elsewhere.example",))
        with pytest.raises(DeliveryError, match=url):
            posted(url, authority.certificate_file)
    assert server.asked == []


def test_messages(secured, authority: Authority, tmp_path: Path, pin_messages: PinMessages) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")

    def refused(url: str, ca_file: Path | None) -> str:
        with pytest.raises(DeliveryError) as caught:
            posted(url, ca_file)
        return re.sub(r":\d+\b", ":PORT", str(caught.value))

    with fake_edge() as tls, fake_edge() as plain:
        url, other = secured(tls), f"https://127.0.0.1:{plain.server_port}"
        pin_messages(
            {
                "the authority is another one": lambda: refused(url, None),
                "the server speaks no TLS": lambda: refused(other, authority.certificate_file),
                "the file of authorities is absent": lambda: refused(other, tmp_path / "absent.pem"),
                "the file of authorities is no PEM": lambda: refused(other, tmp_path / "bad.pem"),
            }
        )
    assert plain.asked == tls.asked == []
