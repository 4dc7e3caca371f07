"""A server on loopback that gives the answers that a test wants, and keeps what it was asked."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler"], None]


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = field(repr=False)
    connection: int
    at: float


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's `answer` and `listed` say."""

    protocol_version = "HTTP/1.1"
    timeout = 30.0
    server: "Server"

    def do_GET(self) -> None:
        self._keep(b"")
        self.server.listed(self)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # the client hung up: not a request, for any server
            self.close_connection = True
            return
        self._keep(body)
        self.server.answer(self)

    def _keep(self, body: bytes) -> None:
        asked = Asked(
            self.command, self.path, dict(self.headers), body, self.client_address[1], time.monotonic()
        )
        with self.server.lock:
            self.server.asked.append(asked)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """What tests change: `answer` to uploads, `listed` to everything else."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.lock = threading.Lock()
        self.asked: list[Asked] = []
        self.answer: Answer = plain(204)
        self.listed: Answer = plain(404)

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that close are expected."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def uploads(self) -> list[Asked]:
        with self.lock:
            return [each for each in self.asked if each.method == "POST"]


@contextmanager
def fake_edge(port: int = 0) -> Iterator[Server]:
    """Run a server."""
    server = Server(port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def plain(status: int, body: bytes = b"", **headers: str) -> Answer:
    """Answer with a body; names of headers with _ for -."""

    def answer(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        if status not in (204, 304):
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if status not in (204, 304):
            handler.wfile.write(body)

    return answer


def in_json(status: int, content: Any, **headers: str) -> Answer:
    """Answer in JSON."""
    return plain(status, json.dumps(content).encode(), **headers)


def rejecting(status: int, reason: str) -> Answer:
    """Answer as an edge that rejects the only group."""
    return in_json(status, {"error": "no group can be counted: see the reasons", "rejected": [[0, reason]]})


def raw(*parts: bytes, pause: float = 0.0) -> Answer:
    """Send these bytes and close the connection."""

    def answer(handler: Handler) -> None:
        handler.close_connection = True
        try:
            for part in parts:
                handler.wfile.write(part)
                handler.wfile.flush()
                time.sleep(pause)
        except OSError:
            pass

    return answer


def in_turn(*answers: Answer) -> Answer:
    """Give these answers one after the other; the last one repeats."""
    left, lock = list(answers), threading.Lock()

    def answer(handler: Handler) -> None:
        with lock:
            now = left.pop(0) if len(left) > 1 else left[0]
        now(handler)

    return answer
