"""An edge on loopback in a thread of the test, over Kafka in memory."""

import asyncio
import socket
import threading
from contextlib import contextmanager

import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage
from deniable.edge.sending.upload_writer import UploadWriter
from deniable.edge.server import Edge, EdgeSettings
from deniable.edge.signing_key import SigningKey
from tests.support.edge.fake_session import FakeKafka
from tests.support.edge.uploads import ALLOWANCES, DELIVERY_SECONDS
from tests.support.processes import wait_until

PARTITIONS = 4
KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(32)))


def settings(**changes):
    fields = {
        "cluster": Cluster("127.0.0.1:1"),
        "topic": "uploads",
        "partitions": PARTITIONS,
        "revision": 1,
        "allowances": ALLOWANCES,
        "delivery_seconds": DELIVERY_SECONDS,
        "key": KEY,
        "allow_origins": ("https://shop.example",),
        "uploads_per_minute": 0,
    }
    return EdgeSettings(**fields | changes)


class FakeEdge(Edge):
    """An edge whose writer appends to memory."""

    kafka: FakeKafka

    def _new_writer(self):
        self.kafka = FakeKafka()
        outage = Outage(self.settings.cluster, "uploads are refused")
        return UploadWriter(self.kafka.open, self.settings.partitions, self.counters, outage)


class ServedEdge:
    """The edge, its port, and ways to ask it."""

    def __init__(self, edge, port, loop):
        self.edge, self.port, self.loop = edge, port, loop

    def call(self, function, *arguments):
        """Run a function in the edge's thread; return its result."""

        async def run():
            return function(*arguments)

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    def wait(self, coroutine):
        """Run a coroutine in the edge's thread; return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    def connect(self):
        return Client(socket.create_connection(("127.0.0.1", self.port), timeout=20))

    def ask(self, request):
        """Send a request over a new connection; return status, headers and body."""
        with self.connect() as client:
            client.send(request)
            return client.answer(is_head=request.startswith(b"HEAD"))


class Client:
    """A connection that keeps what it has not read yet."""

    def __init__(self, connection):
        self.connection = connection
        self._held = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def send(self, data):
        self.connection.sendall(data)

    def answer(self, is_head=False):
        """Return the next answer: status, headers by lower-case name, body."""
        while b"\r\n\r\n" not in self._held:
            self._read()
        head, _, self._held = self._held.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        size = 0 if is_head else int(headers.get("content-length", 0))
        while len(self._held) < size:
            self._read()
        body, self._held = self._held[:size], self._held[size:]
        return int(first.split(" ", 2)[1]), headers, body

    def is_closed(self):
        """Whether the edge closes without another byte."""
        try:
            return self._held + self.connection.recv(65536) == b""
        except ConnectionError:
            return True

    def _read(self):
        data = self.connection.recv(65536)
        if not data:
            raise EOFError(f"the edge closed after {self._held!r}")
        self._held += data


@contextmanager
def served(**changes):
    """Serve an edge that takes uploads."""
    loop = uvloop.new_event_loop()
    edge = FakeEdge(settings(**changes))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        port = asyncio.run_coroutine_threadsafe(edge.open("127.0.0.1", 0), loop).result(10)
        found = ServedEdge(edge, port, loop)
        assert wait_until(lambda: found.call(edge.reasons_not_ready) == [])
        yield found
    finally:
        try:  # uvloop waits for ever for a socket that still listens
            asyncio.run_coroutine_threadsafe(edge.stop(1.0), loop).result(20)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()
