"""One kept-alive HTTP connection to an edge, by http.client.

Rule 1: the request says nothing but the upload: no address, no version of this machine, no cookie; its
headers depend on the size of the body alone.
Rule 2: an answer belongs to the request before it. A connection on which anything is left to read after an
answer is given up: otherwise it could acknowledge the next upload.
Rule 3: each exchange ends at one deadline, however slowly the server sends, and reads a limited number of
bytes. Redirects are not followed.
"""

import http.client
import io
import select
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from deniable.cluster.credential_files import SecurityError, read_small
from deniable.config.settings.edge_address import EdgeAddress
from deniable.producers.errors import DeliveryError
from deniable.producers.transport.edge.answers import HttpAnswer

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

USER_AGENT = "deniable"
UPLOAD_TYPE = "application/vnd.deniable.reports"
REPORTS_PATH = "/v1/reports"
MOST_ANSWER_BYTES = 65_536


class EdgeConnection:
    """Connects when it is first used, and again after a failure. One thread uses it; any may `abort`.

    Parameters
    ----------
    edge : to connect to.
    connect_seconds : how long connecting may take.
    answer_seconds : how long one exchange may take after that.
    """

    def __init__(self, edge: EdgeAddress, connect_seconds: float, answer_seconds: float) -> None:
        self._edge = edge
        self._connect_seconds = connect_seconds
        self._answer_seconds = answer_seconds
        self._http: http.client.HTTPConnection | None = None
        self._socket: _TimedSocket | None = None
        self._is_aborted = False

    def post(self, upload: bytes) -> HttpAnswer:
        """Send an upload; return the answer.

        Raises
        ------
        DeliveryError if there is none in time, or it is not HTTP: the edge may have the upload.
        """
        headers = {"Content-Type": UPLOAD_TYPE, "Content-Length": str(len(upload))}
        return self._exchange("POST", REPORTS_PATH, headers, upload, MOST_ANSWER_BYTES)

    def get(self, path: str, most_bytes: int = MOST_ANSWER_BYTES, etag: str = "") -> HttpAnswer:
        """Ask for a page; return the answer with at most `most_bytes` + 1 bytes of its body.

        Parameters
        ----------
        path : of the protocol.
        most_bytes : that the caller wants to see.
        etag : of what the caller has; empty for nothing.

        Raises
        ------
        DeliveryError like `post`.
        """
        headers = {"If-None-Match": etag} if etag else {}
        return self._exchange("GET", path, headers, None, most_bytes)

    def close(self) -> None:
        """Disconnect; the next request connects again."""
        self._http = None
        if self._socket is not None:
            self._socket.end()
            self._socket = None

    def abort(self) -> None:
        """End an exchange of another thread soon, and allow no other."""
        self._is_aborted = True
        if (timed := self._socket) is not None:
            timed.abort()

    def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, most_bytes: int
    ) -> HttpAnswer:
        is_kept = self._http is not None
        try:
            return self._ask(method, path, headers, body, most_bytes)
        except (ConnectionError, http.client.HTTPException, ssl.SSLEOFError) as error:
            self.close()
            # A server closes idle connections at any time, perhaps just now: that says nothing about it.
            if not is_kept or self._is_aborted:
                raise DeliveryError(self._why(error)) from None
        except (OSError, ValueError) as error:
            self.close()
            raise DeliveryError(self._why(error)) from None
        try:
            return self._ask(method, path, headers, body, most_bytes)
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.close()
            raise DeliveryError(self._why(error)) from None

    def _ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, most_bytes: int
    ) -> HttpAnswer:
        if (
            self._socket is not None and self._socket.is_readable()
        ):  # closed by the server, or something is left
            self.close()
        if self._http is None or self._socket is None:
            self._connect()
        connected, timed = self._http, self._socket
        if connected is None or timed is None or self._is_aborted:
            raise ConnectionAbortedError
        timed.deadline = time.monotonic() + self._answer_seconds
        connected.putrequest(method, self._edge.base_path + path, skip_accept_encoding=True)
        connected.putheader("User-Agent", USER_AGENT)
        for name, value in headers.items():
            connected.putheader(name, value)
        connected.endheaders(body)
        response = connected.getresponse()
        if timed.has_ended:  # http.client takes a head that is cut short for a whole one
            raise ConnectionResetError
        content = response.read(most_bytes + 1)
        found = {name.lower(): value for name, value in response.getheaders()}
        # http.client has dropped the socket if the server wants it closed; after 1xx, another answer comes.
        if connected.sock is None or not response.isclosed() or response.status < 200:
            self.close()
        return HttpAnswer(response.status, found, content)

    def _connect(self) -> None:
        edge = self._edge
        context = tls_context(edge) if edge.is_secured else None
        deadline = time.monotonic() + self._connect_seconds
        raw = socket.create_connection((edge.host, edge.port), self._connect_seconds)
        try:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.settimeout(max(0.001, deadline - time.monotonic()))
            if context is not None:
                raw = context.wrap_socket(raw, server_hostname=edge.host)
        except BaseException:
            raw.close()
            raise
        self._socket = _TimedSocket(raw)
        self._http = http.client.HTTPConnection(edge.host, edge.port)
        self._http.default_port = 443 if edge.is_secured else 80  # else Host names the port
        self._http.auto_open = 0
        self._http.sock = self._socket

    def _why(self, error: Exception) -> str:
        return f"no edge answers at {self._edge.url}: {cause(error)}"


def tls_context(edge: EdgeAddress) -> ssl.SSLContext:
    """Return a context that trusts the edge's authorities; SecurityError if `ca_file` cannot be used."""
    if edge.ca_file is None:
        return ssl.create_default_context()
    text = read_small("edge_ca_file", edge.ca_file)
    try:
        return ssl.create_default_context(cadata=text.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise SecurityError(f"edge_ca_file {edge.ca_file} must hold certificates in PEM") from None


def cause(error: Exception) -> str:
    """Explain why an exchange failed, without any byte of the server's."""
    match error:
        case SecurityError():
            return str(error)
        case ssl.SSLCertVerificationError():
            return (
                f"its certificate is not trusted ({error.verify_message}); name its authority in edge_ca_file"
            )
        case ssl.SSLError():
            return "the TLS handshake fails; see that it speaks TLS there"
        case TimeoutError():
            return "no answer in time"
        case socket.gaierror():
            return "its name cannot be resolved"
        case ConnectionRefusedError():
            return "connection refused"
        case http.client.RemoteDisconnected() | ConnectionError():
            return "it closes the connection"
        case OSError() if error.strerror:
            return error.strerror
    return "what answers there does not speak HTTP"


class _TimedReader(io.RawIOBase):
    """Reads from a socket until its deadline."""

    def __init__(self, timed: "_TimedSocket") -> None:
        self._timed = timed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        return self._timed.receive(buffer)


class _TimedSocket:
    """What http.client uses of a socket, ending at one deadline.

    Attributes
    ----------
    deadline : of the present exchange, monotonic seconds.
    has_ended : whether the server has sent its last byte.
    """

    def __init__(self, connected: socket.socket) -> None:
        self.deadline = 0.0
        self.has_ended = False
        self._socket = connected

    def sendall(self, data: bytes) -> None:
        self._socket.settimeout(self._left())
        self._socket.sendall(data)

    def receive(self, buffer: "WriteableBuffer") -> int:
        self._socket.settimeout(self._left())
        received = self._socket.recv_into(buffer)
        self.has_ended = not received
        return received

    def is_readable(self) -> bool:
        """Whether there is something to read, or the server has closed it."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return bool(waiting.poll(0))

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self))

    def close(self) -> None:
        """Do nothing: http.client calls this before an answer's body is read."""

    def end(self) -> None:
        """Close the socket."""
        self._socket.close()

    def abort(self) -> None:
        """Let a waiting thread continue, with an error."""
        with suppress(OSError):
            # Not the method of an SSLSocket, which would go on without TLS.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _left(self) -> float:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
