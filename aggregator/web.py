"""The worker's web server: the live page, estimates and status as JSON, metrics, health."""

import asyncio
import errno
import time
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from pathlib import Path

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from aggregator.board import Board
from aggregator.metrics import WorkerMetrics
from estimators.collection import Collection

HOST = "127.0.0.1"
PAGE = Path(__file__).with_name("page")
PAGE_FILES = {
    "/": "index.html",
    **{f"/{name}": name for name in ("page.css", "page.js", "table.js", "format.js", "dom.js")},
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class PortInUseError(RuntimeError):
    """The web port cannot be listened on."""


class WebServer:
    """Serves on loopback until stopped.

    Parameters
    ----------
    collections : known collections by fingerprint.
    board : newest estimates.
    metrics : what this worker counts.
    not_ready : gives the reasons why this worker is not ready; none when it is.
    routes : what else is served.
    """

    def __init__(
        self,
        collections: Mapping[int, Collection],
        board: Board,
        metrics: WorkerMetrics,
        not_ready: Callable[[], list[str]],
        routes: Iterable[web.AbstractRouteDef] = (),
    ) -> None:
        self.collections = {collection.name: collection for collection in collections.values()}
        self.board = board
        self.metrics = metrics
        self.not_ready = not_ready
        self.routes = routes
        self._runner: web.AppRunner | None = None

    async def start(self, port: int) -> int:
        """Listen on this port (0: a free one); the port, or PortInUseError."""
        app = web.Application()
        app.on_response_prepare.append(_add_headers)
        app.router.add_get("/api/collections", self._collections)
        app.router.add_get("/api/estimates/{collection}", self._estimate)
        app.router.add_get("/api/status", self._status)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthy)
        app.router.add_get("/readyz", self._ready)
        app.router.add_routes(self.routes)
        for path in PAGE_FILES:
            app.router.add_get(path, self._page)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, port)
        try:
            await site.start()
        except OSError as error:
            await self.stop()
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortInUseError(f"port {port} is in use; give another --web-port (0: a free one)") from error
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _page(self, request: web.Request) -> web.StreamResponse:
        return web.FileResponse(PAGE / PAGE_FILES[request.path])

    async def _collections(self, _: web.Request) -> web.Response:
        return _json([_about(collection) for collection in self.collections.values()])

    async def _estimate(self, request: web.Request) -> web.Response:
        name = request.match_info["collection"]
        if name not in self.collections:
            return _json({"error": "unknown collection"}, status=404)
        record = self.board.newest.get(name)
        if record is None:
            return web.Response(status=204)  # a browser logs every 404 as an error
        return _json(record)

    async def _metrics(self, _: web.Request) -> web.Response:
        # In a thread: of thousands of series it takes longer than heartbeats should wait.
        body = await asyncio.to_thread(generate_latest, self.metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _status(self, _: web.Request) -> web.Response:
        """All that the page's head tells: is this worker ready, is what it shows stale, what was in vain."""
        reasons = self.not_ready()
        stale = self.board.stale(self.collections.values(), time.time())
        strays = self.metrics.strays.packs
        return _json({"ready": not reasons, "reasons": reasons, "stale": stale, "strays": strays})

    async def _healthy(self, _: web.Request) -> web.Response:
        return _json({"healthy": True})

    async def _ready(self, _: web.Request) -> web.Response:
        reasons = self.not_ready()
        return _json({"ready": not reasons, "reasons": reasons}, status=503 if reasons else 200)


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _about(collection: Collection) -> dict[str, object]:
    permanent = collection.epsilon_inf
    return {
        "name": collection.name,
        "mechanism": collection.mechanism.name,
        "values": collection.entries,
        "window_seconds": collection.window_seconds,
        "grace_seconds": collection.grace_seconds,
        "minimum_reports": collection.minimum_reports,
        "epsilon": collection.mechanism.epsilon,
        "epsilon_permanent": permanent if isfinite(permanent) else None,
    }


def _json(value: object, status: int = 200) -> web.Response:
    body = msgspec.json.encode(value)
    return web.Response(body=body, status=status, content_type="application/json")
