"""A worker's web server on a real socket: raw bytes, requests of any path, query and headers.

The first byte of an input says what the others are: 0, all that is sent, whereupon the writing half is
closed; 1, a request line and headers, behind which the end of a request is put; others, what follows one of
PLACES in an address. To the latter two an answer must come.
"""

import asyncio
import logging
import re
import socket
import threading
from urllib.parse import quote

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import Joined, WindowsReading
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.web import past_windows
from deniable.aggregator.web.comparison_api import Comparer, Comparisons
from deniable.aggregator.web.past_windows import PastWindows
from deniable.aggregator.web.rollup_api import RollUps
from deniable.aggregator.web.server import WebServer
from deniable.analysis.comparison import check_comparable, compare_joined
from deniable.cluster.cluster import Cluster
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics
from tests.support.aggregator.builders import COLLECTIONS, DEPLOYMENT, T0, estimate_of

ANSWER_SECONDS = 10
STATUS = re.compile(rb"HTTP/\d\.\d (\d\d\d) ")
# aiohttp's own refusal of an Expect repeats it, which fails: before any handler or middleware of ours.
EXPECT_NO_UTF8 = re.compile(rb"\r?\nExpect:[^\r\n]*[\x80-\xff]", re.IGNORECASE)
PATHS = [
    *("/", "/page.js", "/api/collections", "/api/events", "/api/status", "/metrics", "/healthz", "/readyz"),
    f"/api/estimates/fruit?window_start={T0}",
    "/api/estimates/place",
    "/api/plan?collection=place&reports=1000",
    f"/api/rollup?collection=fruit&from={T0}&to={T0 + 100}",
    "/api/rollup?collection=fruit&from=2026-01-01T00:00:00Z&to=2026-01-01T00:10%2B00:00",
    f"/api/compare?collection=fruit&between={T0}/{T0 + 100}&and={T0 + 100}/{T0 + 200}&rate=0.1",
    "/api/events?collections=fruit,place",
]
PLACES = [
    *("/", "/api/", "/api/estimates/", "/api/estimates/fruit?", "/api/plan?", "/api/rollup?"),
    *("/api/compare?", "/api/events?"),
]
HOST = b"Host: localhost"
SEEDS = [
    *(f"\x01GET {path} HTTP/1.1\r\n".encode() + HOST for path in PATHS),
    *(f"\x00GET {path} HTTP/1.1\r\n".encode() + HOST + b"\r\n\r\n" for path in PATHS[:3]),
    b"\x01POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + b"\r\n\r\n4\r\nabcd\r\n0",
    b"\x01GET / HTTP/1.1\r\nRange: bytes=0-5,7-\r\nIf-Modified-Since: 0\r\nCookie: a=b\r\n" + HOST,
    b"\x01GET / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\nSec-Fetch-Site: x\r\n" + HOST,
    b"\x02page.js",
    b"\x03collections",
    b"\x04fruit",
    f"\x05window_start={T0}".encode(),
    b"\x06collection=place&reports=1000",
    f"\x07collection=fruit&from={T0}&to={T0 + 100}".encode(),
    b"\x07collection=fruit&from=2026-01-01T00:00:00Z&to=2026-01-01T00:10%2B00:00",
    f"\x08collection=fruit&between={T0}/{T0 + 100}&and=2026-01-01T01:00Z/2026-01-01T02:00Z&rate=0.1".encode(),
    b"\x09collections=fruit,place",
]


class _Tracebacks(logging.Handler):
    """Keeps what is logged with a traceback, or as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(self.format(record))


class Served:
    """A worker's server in a thread of its own, which ends with the process."""

    def __init__(self) -> None:
        self.tracebacks = _Tracebacks()
        logging.getLogger().addHandler(self.tracebacks)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.port = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(ANSWER_SECONDS)

    async def _start(self) -> int:
        past_windows.join_windows = _join_nothing
        history = EstimateHistory(COLLECTIONS.values())
        history.sought.clear()
        for collection in COLLECTIONS.values():
            history.take_estimate(estimate_of(collection))
        past = PastWindows(DEPLOYMENT)
        comparer = Comparer(check_comparable, compare_joined)
        routes = RollUps(past).routes() + Comparisons(past, comparer).routes()
        self.server = WebServer(COLLECTIONS, history, WorkerMetrics(COLLECTIONS), list, routes=routes)
        return await self.server.start(0)

    def answer(self, data: bytes, *, ends: bool) -> bytes:
        """The first line that comes back; empty where the server closes without."""
        with socket.create_connection(("127.0.0.1", self.port), ANSWER_SECONDS) as connection:
            try:
                connection.sendall(data)
                if ends:
                    connection.shutdown(socket.SHUT_WR)
                return _first_line(connection)
            except (ConnectionResetError, BrokenPipeError):  # it closed before all was sent
                return b""


async def _join_nothing(_: Cluster, __: Topics, collection: Collection, period: Period) -> Joined:
    return WindowsReading(collection, period, set()).joined()


def _first_line(connection: socket.socket) -> bytes:
    line = b""
    while b"\n" not in line and (more := connection.recv(4096)):
        line += more
    return line.partition(b"\n")[0]


outcomes: dict[str, int] = {}
_served: list[Served] = []


def check(data: bytes) -> None:
    """The answer is no 500, there is one where the request is whole, and nothing is logged as an error."""
    if not _served:
        _served.append(Served())
    served, is_raw = _served[0], not data or data[0] == 0
    line = served.answer(_sent(data), ends=is_raw)
    status = STATUS.match(line)
    shown = status[1].decode() if status else "none"
    outcomes[shown] = outcomes.get(shown, 0) + 1
    assert status or not line or is_raw, line
    assert status or data[:1] < b"\x02", "no answer"
    assert not status or int(status[1]) < 500 or EXPECT_NO_UTF8.search(_sent(data)), line
    assert not served.tracebacks.found, served.tracebacks.found


def _sent(data: bytes) -> bytes:
    rest = data[1:]
    if not data or data[0] == 0:
        return rest
    if data[0] == 1:
        return rest + b"\r\nConnection: close\r\n\r\n"
    place = PLACES[(data[0] - 2) % len(PLACES)]
    return f"GET {place}{quote(rest, safe='&=%?/+:;')} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
