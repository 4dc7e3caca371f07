"""What all connections share: the handler, the writer, counters, the date, and the limit of connections."""

import asyncio
import time
from email.utils import formatdate
from typing import Protocol

from deniable.edge.intake.acceptance import CheckedUpload
from deniable.edge.metrics.counters import EdgeCounters
from deniable.edge.sending.upload_writer import UploadWriter
from deniable.edge.web.answers import render
from deniable.edge.web.requests import TAKEN, RequestHandler

TICK_SECONDS = 0.5
MOST_KEPT = 1000  # answers, of different origins


class OpenConnection(Protocol):
    """What the service asks of a connection."""

    def check(self, now: float) -> None:
        """End what takes too long, at this time of the loop's clock."""

    def stop(self) -> None:
        """Close it if nothing is asked."""

    def abort(self) -> None:
        """Close it at once."""


class HttpService:
    """The connections of one server.

    Parameters
    ----------
    handler : decides what is answered.
    writer : of uploads.
    counters : of this edge.
    most_connections : beyond which new ones are refused.
    """

    def __init__(
        self, handler: RequestHandler, writer: UploadWriter, counters: EdgeCounters, most_connections: int
    ) -> None:
        self.handler = handler
        self.writer = writer
        self.counters = counters
        self.loop = asyncio.get_running_loop()
        self.is_stopping = False
        self._most = most_connections
        self._connections: set[OpenConnection] = set()
        self._taken: dict[bytes, bytes] = {}
        self._date = b""
        self._set_date()

    def add(self, connection: OpenConnection) -> bool:
        """Take a new connection; return whether it may be used."""
        fits = len(self._connections) < self._most
        # One that is refused is kept too, until it is closed.
        self._connections.add(connection)
        self.counters.connections = len(self._connections)
        if not fits:
            self.counters.connections_refused += 1
        return fits

    def remove(self, connection: OpenConnection) -> None:
        """Forget a connection."""
        self._connections.discard(connection)
        self.counters.connections = len(self._connections)

    def shared_lines(self, origin: bytes) -> bytes:
        """Return the header lines of every answer now, each ended by CRLF."""
        return self._date + self.handler.origins.lines(origin)

    def taken(self, origin: bytes) -> bytes:
        """Return the bytes of a 204 on a connection that stays open; they are kept while the date is."""
        found = self._taken.get(origin)
        if found is None:
            found = render(TAKEN, self.shared_lines(origin), keeps=True)
            if len(self._taken) < MOST_KEPT:
                self._taken[origin] = found
        return found

    def count_rejected(self, checked: CheckedUpload) -> None:
        """Count the bad groups of an upload."""
        for _, reason in checked.rejected:
            self.counters.rejected[reason] += 1

    async def watch(self) -> None:
        """End connections that take too long, until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._set_date()
            now = self.loop.time()
            for connection in list(self._connections):
                connection.check(now)

    def _set_date(self) -> None:
        self._date = b"Date: " + formatdate(time.time(), usegmt=True).encode() + b"\r\n"
        self._taken.clear()

    async def stop(self, seconds: float) -> None:
        """Close idle connections, answer the others within this time, then close them."""
        self.is_stopping = True
        ends = self.loop.time() + seconds
        for connection in list(self._connections):
            connection.stop()
        while self._connections and self.loop.time() < ends:  # noqa: ASYNC110 - nobody else waits for it
            await asyncio.sleep(0.02)
        for connection in list(self._connections):
            connection.abort()
