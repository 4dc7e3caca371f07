"""A TLS context that is made anew for each connection, from what the files hold then."""

import socket
import ssl
from collections.abc import Callable
from typing import Any

HANDSHAKE_SECONDS = 10.0


class CurrentContext(ssl.SSLContext):
    """Stands where Kafka's clients take a context; each connection gets one of its own.

    Parameters
    ----------
    make : makes a context from the files as they are now; OSError where they are of no use.
    """

    _make: Callable[[], ssl.SSLContext]

    def __new__(cls, make: Callable[[], ssl.SSLContext]) -> "CurrentContext":
        """Make the context that is never used itself, though clients look at it."""
        made = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made._make = make
        return made

    def wrap_bio(self, *arguments: Any, **keywords: Any) -> ssl.SSLObject:
        """For aiokafka, on asyncio, which bounds the handshake itself."""
        return self._make().wrap_bio(*arguments, **keywords)

    def wrap_socket(self, sock: socket.socket, *arguments: Any, **keywords: Any) -> ssl.SSLSocket:
        """For kafka-python, which waits for a handshake without end: it is done here, within 10 s."""
        blocking_seconds = sock.gettimeout()
        try:
            sock.settimeout(HANDSHAKE_SECONDS)
            keywords |= {"do_handshake_on_connect": True}
            wrapped = self._make().wrap_socket(sock, *arguments, **keywords)
        except BaseException:
            sock.close()  # nobody else does
            raise
        wrapped.settimeout(blocking_seconds)
        return wrapped
