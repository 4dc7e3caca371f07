"""Loopback ports to listen on."""

import errno
import secrets
import socket

from deploy.broker.errors import BrokerError

# Below the range that Linux gives to outgoing connections (32768 and up): a client that tries again and
# again to reach a stopped broker on a port of that range may be given that very port, connect to itself,
# and keep the broker from coming back.
LOWEST_PORT, HIGHEST_PORT = 20_000, 32_000


def require_free(port: int) -> None:
    """Check that a server can listen on this loopback port now.

    Raises
    ------
    BrokerError when it is in use, or closed to this user.
    """
    if not 1 <= port <= 65_535:
        raise BrokerError(f"port must be in [0, 65535], 0 for a free one, got {port}")
    try:
        _listen(port)
    except OSError as error:
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise BrokerError(f"port {port} {why}; give another one, or 0 for a free one") from error


def free_port(but: int = 0) -> int:
    """A random loopback port, not `but`, on which nothing listens now; another process may still take it."""
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
