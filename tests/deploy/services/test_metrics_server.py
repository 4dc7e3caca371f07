"""Metrics and health for other machines: served on request, nothing beside them; `ready` asks for them."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import click
import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry, Counter

from deniable.deploy.services.aggregate.command import aggregate
from deniable.deploy.services.aggregate.ready import ready
from deniable.deploy.services.metrics_server import probes_at, served
from tests.support.messages import PinMessages, refusal_of
from tests.support.processes import new_port

pytestmark = pytest.mark.slow


@dataclass
class FakeProducer:
    """Stands in for a producer."""

    reasons: list[str]
    registry: CollectorRegistry

    def reasons_not_ready(self) -> list[str]:
        return self.reasons


def source(*reasons: str) -> FakeProducer:
    made = FakeProducer(list(reasons), CollectorRegistry())
    Counter("packs", "Packs.", registry=made.registry).inc(3)
    return made


def get(host: str, port: int, path: str) -> tuple[int, str]:
    connection = HTTPConnection(host, port, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_producer_serves_three_paths_and_no_other(host: str) -> None:
    with probes_at((host, port := new_port()), source()):
        assert "packs_total 3.0" in get(host, port, "/metrics")[1]
        assert get(host, port, "/healthz") == (200, '{"healthy": true}')
        assert get(host, port, "/readyz") == (200, '{"ready": true, "reasons": []}')
        for path in ("/", "/metrics/", "/api/estimates/carrier", "/readyz/x"):
            assert get(host, port, path)[0] == 404
    with pytest.raises(ConnectionRefusedError):
        get(host, port, "/healthz")


def test_the_port_on_loopback_serves_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with served(0, source("packs wait")):
        port = int(capsys.readouterr().out.split(":")[3].split("/")[0])
        assert "packs_total 3.0" in get("127.0.0.1", port, "/metrics")[1]
        assert get("127.0.0.1", port, "/healthz")[0] == 200
        assert get("127.0.0.1", port, "/readyz") == (503, '{"ready": false, "reasons": ["packs wait"]}')
        assert get("127.0.0.1", port, "/nonsense")[0] == 404
        ended = CliRunner().invoke(ready, ["--address", f"127.0.0.1:{port}"])
        with pytest.raises(click.ClickException) as caught, served(port, source()):
            pass
    assert (ended.exit_code, ended.output) == (1, f"Error: 127.0.0.1:{port} is not ready: packs wait\n")
    assert caught.value.message == (
        f"port {port} cannot be used: Address already in use; give another --metrics-port (0: a free one)"
    )


def test_a_port_can_be_had_again_at_once() -> None:
    """A service that is started again must not wait for a minute."""
    port = new_port()
    for _ in range(2):
        with served(port, source()):
            assert get("127.0.0.1", port, "/healthz")[0] == 200


def test_metrics_address_goes_to_stderr_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    with served(0, source(), err=True):
        expected = capsys.readouterr()
    assert expected.out == ""
    assert re.fullmatch(r"metrics: http://127\.0\.0\.1:\d+/metrics\n", expected.err)


def test_nothing_is_served_unless_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with probes_at(None, source()), served(None, source()):
        assert not capsys.readouterr().out


def test_an_address_that_cannot_be_used_is_reported(pin_messages: PinMessages) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(click.ClickException) as caught, probes_at(("127.0.0.1", port), source()):
            pass
    pin_messages({"a port in use": lambda: caught.value.message.replace(str(port), "PORT")})


@pytest.mark.parametrize(
    "given", ["9100", ":9100", "localhost:9100", "0.0.0.0:0", "0.0.0.0:65536", "::1", "[::1]"]
)
def test_invalid_address_is_reported(given: str) -> None:
    ended = CliRunner().invoke(aggregate, ["--metrics-listen", given])
    assert ended.exit_code == 2
    assert "'--metrics-listen'" in ended.output
    assert f"'{given}'" in ended.output


def test_ready_says_yes() -> None:
    with probes_at(("::1", port := new_port()), source()):
        ended = CliRunner().invoke(ready, ["--address", f"[::1]:{port}"])
    assert (ended.exit_code, ended.output) == (0, "ready\n")


@contextmanager
def answering(status: int, body: bytes) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_ready_says_why_not(pin_messages: PinMessages) -> None:
    bodies = {
        "two reasons": b'{"ready": false, "reasons": ["a", "b"]}',
        "two reasons, one of them twice": b'{"ready": false, "reasons": ["a", "b", "a"]}',
        "no JSON": b"nonsense",
        "a list": b"[]",
    }
    messages = {}
    for what, body in bodies.items():
        with answering(503, body) as port:
            ended = CliRunner().invoke(ready, ["--address", f"127.0.0.1:{port}"])
        messages[what] = refusal_of(ended, 1).replace(str(port), "PORT")
    pin_messages({what: partial(str, message) for what, message in messages.items()})


def test_ready_accepts_only_a_true_answer(pin_messages: PinMessages) -> None:
    messages = set()
    for body in (b"# HELP packs Packs.", b"[]", b'{"ready": "yes"}', b"\xff"):
        with answering(200, body) as port:
            ended = CliRunner().invoke(ready, ["--address", f"127.0.0.1:{port}"])
        messages.add(refusal_of(ended, 1).replace(str(port), "PORT"))
    pin_messages({"the answer is not that of a worker": lambda: "".join(messages)})


def test_ready_says_when_nothing_answers() -> None:
    port = new_port()
    ended = CliRunner().invoke(ready, ["--address", f"127.0.0.1:{port}"])
    assert ended.exit_code == 1
    assert f"127.0.0.1:{port}: " in ended.output


def test_ready_loads_little() -> None:
    """A health check runs it every ten seconds: without numpy, scipy and clients of Kafka."""
    code = "import sys, deniable.deploy.services.aggregate.ready; print(*sys.modules)"
    expected = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "scipy", "kafka", "faust", "aiohttp"} & set(expected.split())
