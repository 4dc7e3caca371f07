"""Clients that speak HTTP: each keeps what it was told, and repeats an upload until it is told."""

import heapq
import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from tests.chaos.load.drafts import INVALID, Draft, Drafts

ANSWER_SECONDS = 20.0
AGAIN_SECONDS = 0.5  # after an answer that asks to come again, or none
PATH = "/v1/reports"
HEADERS = {"Content-Type": "application/vnd.deniable.reports"}
TOLD = (200, 204)
UNAVAILABLE = 503


class Client(threading.Thread):
    """Uploads until `stopped`, then sends what still waits once more.

    Parameters
    ----------
    ports : of the edges, on loopback.
    drafts : uploads to send.
    uploads_per_second : 0: as fast as it is answered.
    invalid : share of invalid uploads, in [0, 1].
    later_seconds : after which some uploads are sent once more.
    seed : of its choices.
    """

    def __init__(
        self,
        ports: Sequence[int],
        drafts: Drafts,
        uploads_per_second: float,
        invalid: float,
        later_seconds: float,
        seed: int,
    ) -> None:
        super().__init__(daemon=True)
        self.ports, self.drafts, self.invalid = ports, drafts, invalid
        self.uploads_per_second, self.later_seconds = uploads_per_second, later_seconds
        self.chance = random.Random(seed)
        self.stopped = threading.Event()
        self.requests = 0
        self.unavailable = 0  # answers of status 503
        self.refusals = 0  # of invalid uploads, with the documented status
        self.misanswered: Counter[str] = Counter()
        self.error: BaseException | None = None
        self._connections: dict[int, http.client.HTTPConnection] = {}
        self._later: list[tuple[float, int, Draft]] = []

    def run(self) -> None:
        try:
            began, sent = time.monotonic(), 0
            while not self.stopped.is_set():
                sent += 1
                if self.uploads_per_second:
                    self.stopped.wait(began + sent / self.uploads_per_second - time.monotonic())
                self._send_next()
                while self._later and self._later[0][0] <= time.monotonic():
                    self._send(heapq.heappop(self._later)[2], self.chance.choice(self.ports))
            for _, _, draft in list(self._later):
                self._send(draft, self.chance.choice(self.ports))
        except BaseException as error:
            self.error = error
            raise
        finally:
            for each in self._connections.values():
                each.close()

    def _send_next(self) -> None:
        chance = self.chance
        if self.invalid and chance.random() < self.invalid:
            spoil, status = chance.choice(INVALID)
            self._post(chance.choice(self.ports), spoil(self.drafts.waste()))
            found = self._answer()[0]
            self.refusals += found == status
            if found not in (status, 0, UNAVAILABLE):
                self.misanswered[f"{found} instead of {status}"] += 1
            return
        draft, port = self.drafts.draw(), chance.choice(self.ports)
        kind = chance.random()
        if kind < 0.05:
            self._send_at_once(draft)
            return
        self._send(draft, port)
        if kind < 0.15:
            self._send(draft, chance.choice([other for other in self.ports if other != port] or [port]))
        elif kind < 0.2:
            self._come_again(draft, chance.uniform(0.3, 1.2) * self.later_seconds)

    def _send(self, draft: Draft, port: int) -> None:
        self._post(port, draft.body)
        self._note(draft, *self._answer())

    def _send_at_once(self, draft: Draft) -> None:
        """Send one upload to all edges before any of them has answered."""
        open_ones = []
        for port in self.ports:
            self._post(port, draft.body)
            open_ones.append(self._asked)
        for asked in open_ones:
            self._asked = asked
            self._note(draft, *self._answer())

    def _note(self, draft: Draft, status: int, body: bytes) -> None:
        """Keep what an answer tells; come again if it tells nothing."""
        if status in TOLD:
            draft.is_told = True
        elif status in (0, 429, UNAVAILABLE):
            if not draft.is_told and not self.stopped.is_set():
                self._come_again(draft, AGAIN_SECONDS)
        else:
            with suppress(ValueError, KeyError):
                if (reason := json.loads(body)["rejected"][0][1]) == "too_late":
                    return
                self.misanswered[reason] += 1
                return
            self.misanswered[str(status)] += 1

    def _come_again(self, draft: Draft, seconds: float) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, id(draft), draft))

    def _post(self, port: int, body: bytes) -> None:
        """Send a request; `_answer` reads what comes."""
        connection = self._connections.get(port)
        if connection is None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
            self._connections[port] = connection
        self._asked: http.client.HTTPConnection | None = connection
        try:
            connection.request("POST", PATH, body, HEADERS)
        except (OSError, http.client.HTTPException):
            # A refused body may be answered before it is sent as a whole.
            if connection.sock is None:
                connection.close()
                self._asked = None

    def _answer(self) -> tuple[int, bytes]:
        """Return status and body; status 0 if there was no answer."""
        status, body, connection = 0, b"", self._asked
        if connection is not None:
            try:
                answer = connection.getresponse()
                status, body = answer.status, answer.read()
                if status == UNAVAILABLE:
                    self.unavailable += 1
                    if not (answer.getheader("Retry-After") or "").isdigit():
                        self.misanswered["503 without Retry-After"] += 1
            except (OSError, http.client.HTTPException):
                connection.close()
        self.requests += 1
        return status, body
