"""Links are cut by who connects to whom, and lose no byte: what waited arrives when they heal."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.chaos.processes.cluster.links import Cut, Links
from tests.support.processes import new_port

SILENT_SECONDS = 0.2
ONE, TWO = frozenset({1}), frozenset({2})


class Peers:
    """Connections through a proxy of broker 2, which sends back what it receives."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack, self.port, self.links = stack, new_port(), Links()
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.links.start()
        stack.callback(self.links.close)
        self.links.serve(self.port, 2, server.getsockname()[1])
        threading.Thread(target=_echo, args=(server, stack), daemon=True).start()

    def connect(self, client: str) -> socket.socket:
        """Connect as this client, and send the head of its first request."""
        peer = self.stack.enter_context(socket.create_connection(("127.0.0.1", self.port)))
        peer.sendall(struct.pack(">ihhih", 99, 18, 4, 1, len(client)) + client.encode())
        return peer


def _echo(server: socket.socket, stack: ExitStack) -> None:
    def serve(peer: socket.socket) -> None:
        with suppress(OSError):  # the test closes it
            while data := peer.recv(1000):
                peer.sendall(data)

    while True:
        try:
            peer = stack.enter_context(server.accept()[0])
        except OSError:
            return
        threading.Thread(target=serve, args=(peer,), daemon=True).start()


def answer(peer: socket.socket, size: int, seconds: float = 30.0) -> bytes:
    """Return so many bytes; none if they do not come in time."""
    peer.settimeout(seconds)
    try:
        return peer.recv(size, socket.MSG_WAITALL)
    except TimeoutError:
        return b""


@pytest.fixture
def peers() -> Iterator[Peers]:
    with ExitStack() as stack:
        yield Peers(stack)


@pytest.mark.parametrize(
    ("client", "cut", "is_cut"),
    [
        ("raft-client-1", Cut(ONE, TWO), True),
        ("1", Cut(ONE, TWO), True),
        ("broker-1-fetcher-0", Cut(ONE, TWO, only_fetches=True), True),
        ("raft-client-1", Cut(ONE, TWO, only_fetches=True), False),
        ("raft-client-3", Cut(ONE, TWO), False),
        ("1", Cut(TWO, ONE), False),
        ("2", Cut(TWO, TWO), False),
    ],
)
def test_cut_links_pass_nothing_until_they_heal(peers: Peers, client: str, cut: Cut, is_cut: bool) -> None:
    """A connection that is open, and one that begins during the cut."""
    size = 14 + len(client)
    opened = peers.connect(client)
    assert len(answer(opened, size)) == size
    peers.links.cut(cut)
    begun = peers.connect(client)
    opened.sendall(b"later")
    assert (answer(opened, 5, SILENT_SECONDS if is_cut else 30.0) == b"") == is_cut
    if is_cut:
        assert answer(begun, size, SILENT_SECONDS) == b""
        peers.links.cut()
        assert answer(opened, 5) == b"later"
    assert len(answer(begun, size)) == size
