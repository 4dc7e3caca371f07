"""Addresses of workers that are none, and what answers there instead of one: each named in words."""

import socket
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from deniable.analysis.errors import WrongArgumentError
from tests.support.messages import PinMessages

pytest.importorskip("pyarrow", reason="the extra analysis is not installed")

import deniable
from deniable.analysis.errors import AnalysisError


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


@pytest.fixture
def greeting() -> Iterator[str]:
    """Address of a server that greets in another protocol."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def greet() -> None:
            client, _ = server.accept()
            with closing(client):
                client.sendall(b"220 mail\r\n")
                client.recv(4096)

        Thread(target=greet, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_password_of_an_address_is_not_repeated() -> None:
    with pytest.raises(WrongArgumentError, match="worker") as raised:
        deniable.read_estimates(collection="fruit", worker="http://me:hidden@x")
    assert "hidden" not in str(raised.value)


@pytest.mark.slow
def test_messages(
    pin_messages: PinMessages, refusing: str, greeting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [
        "ftp://x",
        "127.0.0.1:8321",
        "http://",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://127.0.0.1:x",
        "http://[::1",
        "http://a b",
        "http://x?y",
        "http://me:hidden@x",
        "http://127.0.0.1:9",
    ]

    def asked(scheme: str, address: str, body: bytes = b"") -> None:
        monkeypatch.setattr(Refusing, "body", body)
        try:
            deniable.read_estimates(collection="fruit", worker=f"{scheme}{address}")
        except AnalysisError as error:
            raise AnalysisError(str(error).replace(address, "HOST:PORT")) from error

    pin_messages(
        {
            f"the address {each}": partial(deniable.read_estimates, collection="fruit", worker=each)
            for each in wrong
        }
        | {
            "a refusal in JSON": lambda: asked(
                "http://", refusing, b'{"error":"unknown collection; there are: plan"}'
            ),
            "a refusal in HTML": lambda: asked("http://", refusing, b"<h1>\n Not found</h1>"),
            "a server without TLS": lambda: asked("https://", refusing),
            "a server of another protocol": lambda: asked("http://", greeting),
        }
    )
