"""Load for an HTTP server: many keep-alive connections, one upload of one report a request.

python -m bench.devices.load JSON

Prints a line when the measurement begins and when it ends, then JSON: answers by status,
seconds, and latencies. A closed loop asks again once answered; with a rate,
requests leave by a timetable whatever the answers do, and latency counts from the time of the timetable.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass
from typing import cast

import numpy as np
import uvloop

from deniable.protocol.uploads.upload import Upload, UploadGroup, encode_upload

POOL = 20_000  # uploads with ids of their own, sent in turn


@dataclass(frozen=True)
class Target:
    """What is sent and where.

    Parameters
    ----------
    port : of the server on loopback.
    fingerprint, mechanism, width, window_seconds : of the collection.
    connections : open at once.
    seconds : of the measurement.
    warm_seconds : before it.
    rate : requests a second of all connections; 0 for a closed loop.
    is_varied : whether each request has another head than the one before it on its connection.
    """

    port: int
    fingerprint: int
    mechanism: int
    width: int
    window_seconds: int
    connections: int
    seconds: float
    warm_seconds: float = 2.0
    rate: float = 0.0
    is_varied: bool = False


def requests(target: Target) -> list[bytes]:
    """Return whole requests of one upload each."""
    start = int(time.time()) // target.window_seconds * target.window_seconds
    found = []
    for number in range(POOL):
        rows = bytes([number % 3])
        group = UploadGroup(target.fingerprint, target.mechanism, 0, start, 1, target.width, rows)
        body = encode_upload(Upload(os.urandom(16), (group,)))
        agent = f"bench {number}" if target.is_varied else "bench"
        head = (
            f"POST /v1/reports HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: {agent}\r\nAccept: */*\r\n"
            f"Content-Type: application/vnd.deniable.reports\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        found.append(head.encode() + body)
    return found


class LoadConnection(asyncio.Protocol):
    """Sends a request, waits for its answer."""

    def __init__(self, load: "Load") -> None:
        self._load = load
        self._transport: asyncio.Transport
        self._since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self._load.free(self)

    def send(self, since: float) -> None:
        """Send the next request, which was due at this time."""
        self._since = since
        self._transport.write(self._load.next_request())

    def data_received(self, data: bytes) -> None:
        """Count the answer; every one fits a segment."""
        self._load.answered(int(data[9:12]), time.perf_counter() - self._since)
        self._load.free(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it: a server under test must not close."""
        if not self._load.is_over:
            self._load.lost += 1


class Load:
    """The requests of one process."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lost = 0
        self.statuses: Counter[int] = Counter()
        self.latencies: list[float] = []
        self.is_measured = False
        self.is_over = False
        self._requests = requests(target)
        self._next = 0
        self._free: deque[LoadConnection] = deque()
        self._due: deque[float] = deque()

    def next_request(self) -> bytes:
        """Return the next request of the pool."""
        self._next = (self._next + 1) % POOL
        return self._requests[self._next]

    def free(self, connection: LoadConnection) -> None:
        """Use a connection that has its answer."""
        if self.is_over:
            return
        if not self.target.rate:
            connection.send(time.perf_counter())
        elif self._due:
            connection.send(self._due.popleft())
        else:
            self._free.append(connection)

    def due(self, moment: float) -> None:
        """Send a request of the timetable, now or as soon as a connection is free."""
        if self._free:
            self._free.popleft().send(moment)
        else:
            self._due.append(moment)

    def answered(self, status: int, seconds: float) -> None:
        """Count an answer."""
        if self.is_measured:
            self.statuses[status] += 1
            self.latencies.append(seconds)

    async def run(self) -> dict[str, object]:
        """Return what was measured."""
        loop, target = asyncio.get_running_loop(), self.target
        for _ in range(target.connections):
            await loop.create_connection(lambda: LoadConnection(self), "127.0.0.1", target.port)
        timetable = asyncio.create_task(self._keep_time()) if target.rate else None
        await asyncio.sleep(target.warm_seconds)
        _say("begins")
        self.is_measured, began = True, time.perf_counter()
        await asyncio.sleep(target.seconds)
        self.is_measured, seconds = False, time.perf_counter() - began
        _say("ends")
        self.is_over = True
        if timetable is not None:
            timetable.cancel()
        return self._figures(seconds)

    async def _keep_time(self) -> None:
        moment = time.perf_counter()
        while True:
            while moment <= time.perf_counter():
                self.due(moment)
                moment += 1 / self.target.rate
            await asyncio.sleep(0.001)

    def _figures(self, seconds: float) -> dict[str, object]:
        times = np.array(self.latencies)
        quantiles = np.quantile(times, (0.5, 0.99, 1)) if len(times) else np.zeros(3)
        return {
            "statuses": dict(self.statuses),
            "seconds": seconds,
            "lost": self.lost,
            **dict(zip(("p50", "p99", "max"), quantiles.tolist(), strict=True)),
        }


def main() -> None:
    """Run the load of one process."""
    target = Target(**json.loads(sys.argv[1]))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            figures = runner.run(Load(target).run())
        except ConnectionRefusedError:
            sys.exit(1)
    _say(json.dumps(figures))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
