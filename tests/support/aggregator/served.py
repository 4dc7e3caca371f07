"""A worker's web server in a separate thread, with estimates set by tests."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType, SimpleNamespace

import pytest

from deniable.aggregator.deployment import ClientLimits
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.records.share_change import ShareChange
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.views.latest_estimates import successor_due
from deniable.aggregator.web import server as web
from deniable.aggregator.web.server import WebServer
from deniable.aggregator.web.server_sent_events import EventStreams
from deniable.estimators.collection import Collection
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, estimate_of

DEADLINE_SECONDS = 60
FRESH = successor_due(estimate_of(), FRUIT)


def set_clock(monkeypatch: pytest.MonkeyPatch, now: float = FRESH) -> None:
    """Set the worker's clock, unix seconds, from which it computes whether figures are stale."""
    monkeypatch.setattr(web, "time", SimpleNamespace(time=lambda: now))


class Served:
    """The page of one worker."""

    def __init__(
        self,
        collections: Mapping[int, Collection] = COLLECTIONS,
        limits: Mapping[str, ClientLimits] | None = None,
    ) -> None:
        self.reasons: list[str] = []
        self.metrics = WorkerMetrics(collections)
        self.history = EstimateHistory(collections.values())
        self.history.sought.clear()
        self.server = WebServer(
            collections, self.history, self.metrics, lambda: list(self.reasons), limits or {}
        )
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def take(self, *records: EstimateRecord) -> None:
        """Show these records of the topic `estimates`."""

        async def take_all() -> None:
            for record in records:
                taken = self.history.take(encode_estimate(record))
                if taken is not None:
                    self.server.page.show(taken)

        asyncio.run_coroutine_threadsafe(take_all(), self._loop).result(DEADLINE_SECONDS)

    def change(
        self,
        collection: str,
        changes: Sequence[ShareChange],
        newest: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Show these changes of a collection's shares, with the figures of the newest final window."""
        self._loop.call_soon_threadsafe(self.server.page.show_changes, collection, changes, newest)

    @contextmanager
    def serving(self, port: int = 0) -> Iterator["Served"]:
        """Listen on this loopback port; 0 for a free one, see `port`."""
        self._thread.start()
        try:
            self.port = asyncio.run_coroutine_threadsafe(self.server.start(port), self._loop).result(
                DEADLINE_SECONDS
            )
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self.server.stop(), self._loop).result(DEADLINE_SECONDS)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    @property
    def streams(self) -> EventStreams:
        """The open streams."""
        return self.server.streams

    def fall_silent(self) -> None:
        """Send nothing to open pages by itself from now on, like a worker that hangs."""
        pulse = self.server._pulse
        assert pulse is not None

        async def cancel() -> None:
            pulse.cancel()

        asyncio.run_coroutine_threadsafe(cancel(), self._loop).result(DEADLINE_SECONDS)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"
