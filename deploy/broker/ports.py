"""Loopback ports to listen on."""

import errno
import secrets
import socket

from deniable.deploy.broker.errors import BrokerError

# Below Linux's range of ports for outgoing connections (32768 and up): a client that keeps connecting to a
# stopped broker's port in that range may get that very port, connect to itself and keep the broker from
# coming back.
LOWEST_PORT, HIGHEST_PORT = 20_000, 32_000


def require_free(port: int) -> None:
    """Check that a server can listen on this loopback port now.

    Raises
    ------
    BrokerError if it is in use or this user may not listen there.
    """
    if not 1 <= port <= 65_535:
        raise BrokerError(f"port must be in [0, 65535], 0 for a free one, got {port}")
    try:
        _listen(port)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise BrokerError(f"port {port} {why}; give another one, or 0 for a free one") from error


def free_port(but: int = 0) -> int:
    """Return a random free loopback port other than `but`; another process may still take it."""
    while True:
        port = LOWEST_PORT + secrets.randbelow(HIGHEST_PORT - LOWEST_PORT)
        if port == but:
            continue
        try:
            _listen(port)
        except OSError:
            continue
        return port


def _listen(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        # As Kafka does; it ignores connections in TIME_WAIT, not a server that listens.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
