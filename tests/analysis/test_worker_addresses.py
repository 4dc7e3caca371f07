"""Addresses of workers that are none, and what answers there instead of one: each named in words."""

import socket
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar

import pytest

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

import deniable
from analysis.errors import AnalysisError, WrongArgumentError


class Refusing(BaseHTTPRequestHandler):
    """Answers 404 as a worker does, or as another server."""

    body: ClassVar[bytes] = b""

    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def refusing() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def said_of(address: str) -> str:
    with pytest.raises(AnalysisError) as raised:
        deniable.read_estimates(collection="fruit", worker=address)
    return str(raised.value)


@pytest.mark.parametrize(
    "address",
    [
        "ftp://x",
        "127.0.0.1:8321",
        "http://",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://127.0.0.1:x",
        "http://[::1",
        "http://a b",
        "http://x?y",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(WrongArgumentError) as raised:
        deniable.read_estimates(collection="fruit", worker=address)
    assert str(raised.value) == f"worker must be an address such as http://127.0.0.1:8321, got {address}"


def test_password_of_an_address_is_not_repeated() -> None:
    assert said_of("http://me:hidden@x") == "worker must be an address without user and password"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"error":"unknown collection; there are: plan"}', "unknown collection; there are: plan"),
        (b"<h1>\n Not found</h1>", "<h1> Not found</h1>"),
    ],
)
def test_sentence_of_a_refusal_is_shown(
    refusing: str, monkeypatch: pytest.MonkeyPatch, body: bytes, sentence: str
) -> None:
    monkeypatch.setattr(Refusing, "body", body)
    address = f"http://{refusing}"
    assert said_of(address) == (
        f"the worker at {address} answered 404 to {address}/api/history/fruit: {sentence}"
    )


def test_no_answer_is_reported_with_its_cause(refusing: str) -> None:
    assert said_of("http://127.0.0.1:9") == "no worker answers at http://127.0.0.1:9: Connection refused"
    assert said_of(f"https://{refusing}") == (
        f"no worker answers at https://{refusing}: it does not speak TLS; is the address one of http://"
    )


def test_server_of_another_protocol_is_named() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def greet() -> None:
            client, _ = server.accept()
            with closing(client):
                client.sendall(b"220 mail\r\n")
                client.recv(4096)

        Thread(target=greet, daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert said_of(address) == (
            f"no worker answers at {address}: it does not speak HTTP; is the address one of https://"
        )
