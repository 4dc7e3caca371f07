"""Clients that keep to no rule: slow, cut and enormous requests, beside those of good clients."""

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from tests.chaos.load.drafts import Drafts

ANSWER_SECONDS = 15.0
SLOW_SECONDS = 3.0  # less than the 10 s that an edge gives a request
HEAD = (
    "POST /v1/reports HTTP/1.1\r\nHost: edge\r\nContent-Type: application/vnd.deniable.reports\r\n"
    "Content-Length: {}\r\n\r\n"
)


class RudeClient(threading.Thread):
    """Sends bad requests until `stopped`, and notes answers that are not the documented ones.

    Parameters
    ----------
    ports : of the edges, on loopback.
    drafts : uploads to send.
    seed : of its choices.
    """

    def __init__(self, ports: Sequence[int], drafts: Drafts, seed: int) -> None:
        super().__init__(daemon=True)
        self.ports, self.drafts = ports, drafts
        self.chance = random.Random(seed)
        self.stopped = threading.Event()
        self.requests = self.unavailable = 0  # of good clients
        self.refusals = 0  # with a documented status
        self.misanswered: Counter[str] = Counter()
        self.error: BaseException | None = None

    def run(self) -> None:
        acts: list[Callable[[socket.socket], None]] = [
            *(self._cut, self._leave, self._dribble, self._stall, self._boast, self._flood, self._babble)
        ]
        try:
            while not self.stopped.wait(0.05):
                with suppress(OSError):
                    address = ("127.0.0.1", self.chance.choice(self.ports))
                    with socket.create_connection(address, ANSWER_SECONDS) as connection:
                        self.chance.choice(acts)(connection)
        except BaseException as error:
            self.error = error
            raise

    def _cut(self, connection: socket.socket) -> None:
        """Close in the middle of a body: the upload must not count."""
        body = self.drafts.waste().body
        connection.sendall(_head(body) + body[: self.chance.randrange(len(body))])

    def _leave(self, connection: socket.socket) -> None:
        """Close before the answer: the upload may count."""
        body = self.drafts.draw().body
        connection.sendall(_head(body) + body)

    def _dribble(self, connection: socket.socket) -> None:
        """Send slowly, but in time."""
        draft = self.drafts.draw()
        data = _head(draft.body) + draft.body
        for first in range(0, len(data), len(data) // 9):
            connection.sendall(data[first : first + len(data) // 9])
            time.sleep(SLOW_SECONDS / 10)
        draft.is_told = self._expect(connection, (200, 204, 503, 400)) in (200, 204)

    def _stall(self, connection: socket.socket) -> None:
        """Begin a request, and never end it."""
        body = self.drafts.waste().body
        connection.sendall(_head(body) + body[:7])
        self._expect(connection, (408,))

    def _boast(self, connection: socket.socket) -> None:
        connection.sendall(HEAD.format(10**12).encode() + bytes(1000))
        self._expect(connection, (413,))

    def _flood(self, connection: socket.socket) -> None:
        """Send a megabyte that the head does not announce."""
        body = self.drafts.waste().body[:-4] + bytes(4)
        with suppress(OSError):
            connection.sendall(_head(body) + body + bytes(1_000_000))
        self._expect(connection, (400,))

    def _babble(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.sendall(HEAD.format(9).encode()[:-2] + b"X-Canary: 1\r\n" * 2000)
        self._expect(connection, (431,))

    def _expect(self, connection: socket.socket, statuses: Sequence[int]) -> int:
        """Return the status of the answer; 0 if the edge died or closed before it was read."""
        answer = connection.recv(4096)
        status = int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0
        self.refusals += status in statuses
        if status not in (*statuses, 0):
            self.misanswered[f"{status} instead of {statuses}"] += 1
        return status


def _head(body: bytes) -> bytes:
    return HEAD.format(len(body)).encode()
