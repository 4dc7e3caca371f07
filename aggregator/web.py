"""The worker's web server: the live page, estimates as JSON, metrics, health."""

import errno
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from aggregator.board import Board
from estimators.collection import Collection
from estimators.rappor import Rappor

HOST = "127.0.0.1"
PAGE = Path(__file__).with_name("page")
PAGE_FILES = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js"}
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
    registry : metrics.
    not_ready : gives the reasons why this worker is not ready; none when it is.
    """

    def __init__(
        self,
        collections: Mapping[int, Collection],
        board: Board,
        registry: CollectorRegistry,
        not_ready: Callable[[], list[str]],
    ) -> None:
        self.collections = {collection.name: collection for collection in collections.values()}
        self.board = board
        self.registry = registry
        self.not_ready = not_ready
        self._runner: web.AppRunner | None = None

    async def start(self, port: int) -> int:
        """Listen on this port (0: a free one); the port, or PortInUseError."""
        app = web.Application()
        app.router.add_get("/api/collections", self._collections)
        app.router.add_get("/api/estimates/{collection}", self._estimate)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthy)
        app.router.add_get("/readyz", self._ready)
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
        return web.FileResponse(PAGE / PAGE_FILES[request.path], headers=HEADERS)

    async def _collections(self, _: web.Request) -> web.Response:
        return _json([_about(collection) for collection in self.collections.values()])

    async def _estimate(self, request: web.Request) -> web.Response:
        name = request.match_info["collection"]
        if name not in self.collections:
            return _json({"error": "unknown collection"}, status=404)
        record = self.board.newest.get(name)
        if record is None:
            return web.Response(status=204, headers=HEADERS)  # a browser logs every 404 as an error
        return _json(record)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(self.registry), headers={**HEADERS, "Content-Type": CONTENT_TYPE_LATEST}
        )

    async def _healthy(self, _: web.Request) -> web.Response:
        return _json({"healthy": True})

    async def _ready(self, _: web.Request) -> web.Response:
        reasons = self.not_ready()
        return _json({"ready": not reasons, "reasons": reasons}, status=503 if reasons else 200)


def _about(collection: Collection) -> dict[str, object]:
    mechanism = collection.mechanism
    permanent = isinstance(mechanism, Rappor) and collection.memoize
    return {
        "name": collection.name,
        "mechanism": "rappor" if isinstance(mechanism, Rappor) else "k-rr",
        "values": len(collection.labels()),
        "window_seconds": collection.window_seconds,
        "grace_seconds": collection.grace_seconds,
        "minimum_reports": collection.minimum_reports,
        "epsilon": mechanism.epsilon,
        "epsilon_permanent": mechanism.epsilon_inf if isinstance(mechanism, Rappor) and permanent else None,
    }


def _json(value: object, status: int = 200) -> web.Response:
    body = msgspec.json.encode(value)
    return web.Response(body=body, status=status, content_type="application/json", headers=HEADERS)
