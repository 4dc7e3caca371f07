"""Serve the metrics and health of a producer or relay, on loopback and to other machines."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from socket import AF_INET6
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import click
from prometheus_client import CollectorRegistry, make_wsgi_app


class QuietHandler(WSGIRequestHandler):
    """Logs no requests, and times out clients that send nothing."""

    timeout = 10.0

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class ProbeServer(ThreadingMixIn, WSGIServer):
    """Answers each request in a separate thread."""

    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without resolving the machine's name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


class ProbeServer6(ProbeServer):
    """The same at an IPv6 address."""

    address_family = AF_INET6


class MetricsSource(Protocol):
    """The source of metrics and health: a producer or relay."""

    @property
    def registry(self) -> CollectorRegistry:
        """The metrics that `/metrics` serves."""

    def reasons_not_ready(self) -> list[str]:
        """Return why `/readyz` answers 503; empty if it answers 200."""


@contextmanager
def served(port: int | None, source: MetricsSource, *, err: bool = False) -> Iterator[None]:
    """Serve `/metrics`, `/healthz` and `/readyz` on loopback, and print the address.

    Parameters
    ----------
    port : in [0, 65535], 0 for a free one; None to serve nothing.
    source : of metrics and health.
    err : True to print on stderr instead of stdout.

    Raises
    ------
    click.ClickException if the port cannot be used.
    """
    if port is None:
        yield
        return
    place = ("127.0.0.1", port)
    server = _listening(ProbeServer, place, f"port {port}", "--metrics-port (0: a free one)")
    click.echo(f"metrics: http://127.0.0.1:{server.server_port}/metrics", err=err)
    with _running(server, source):
        yield


@contextmanager
def probes_at(
    address: tuple[str, int] | None, source: MetricsSource, option: str = "--metrics-listen"
) -> Iterator[None]:
    """Serve the same at an address, such as one that other machines reach.

    Parameters
    ----------
    address : an IP address of this machine, and a port; None to serve nothing.
    source : of metrics and health.
    option : that chose the address.

    Raises
    ------
    click.ClickException if the address cannot be used.
    """
    if address is None:
        yield
        return
    host, port = address
    kind = ProbeServer6 if ip_address(host).version == 6 else ProbeServer
    with _running(_listening(kind, address, f"port {port} of {host}", option), source):
        yield


def _listening(kind: type[ProbeServer], address: tuple[str, int], place: str, option: str) -> ProbeServer:
    try:
        return kind(address, QuietHandler)
    except OSError as error:
        raise click.ClickException(
            f"{place} cannot be used: {error.strerror}; give another {option}"
        ) from None


@contextmanager
def _running(server: ProbeServer, source: MetricsSource) -> Iterator[None]:
    server.set_app(_application(source))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _application(source: MetricsSource) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    metrics: Callable[[dict[str, Any], Any], Iterable[bytes]] = make_wsgi_app(source.registry)

    def answer(environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        path = environment["PATH_INFO"]
        if path == "/metrics":
            return metrics(environment, start)
        status, body = _health(path, source)
        start(status, [("Content-Type", "application/json")])
        return [json.dumps(body).encode()]

    return answer


def _health(path: str, source: MetricsSource) -> tuple[str, dict[str, Any]]:
    match path:
        case "/healthz":
            return "200 OK", {"healthy": True}
        case "/readyz":
            reasons = source.reasons_not_ready()
            status = "503 Service Unavailable" if reasons else "200 OK"
            return status, {"ready": not reasons, "reasons": reasons}
    return "404 Not Found", {"error": "only /metrics, /healthz and /readyz are served"}
