"""The worker's web server: the live page and its events, estimates and plans as JSON, metrics, health."""

import asyncio
import errno
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from deniable.aggregator.deployment import ClientLimits
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.web.estimates_api import EstimatesApi, json_response
from deniable.aggregator.web.page_events import PageFeed, about
from deniable.aggregator.web.server_sent_events import EventStreams
from deniable.aggregator.web.timing import DEFAULT, WebTiming
from deniable.estimators.collection import Collection
from deniable.estimators.errors import DeniableError

PAGE = Path(__file__).with_name("page")
#: Files of the page by path; its rooms are folders.
PAGE_FILES = {"/": "index.html"} | {
    f"/{each.relative_to(PAGE).as_posix()}": each.relative_to(PAGE).as_posix()
    for each in sorted(PAGE.rglob("*"))
    if each.suffix in (".css", ".js")
}
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}

HOST = "127.0.0.1"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Probes:
    """Answers `/metrics`, `/healthz` and `/readyz`.

    Parameters
    ----------
    registry : served at `/metrics`.
    reasons_not_ready : returns why this process is not ready; empty if it is.
    """

    def __init__(self, registry: CollectorRegistry, reasons_not_ready: Callable[[], list[str]]) -> None:
        self._registry = registry
        self._reasons_not_ready = reasons_not_ready

    def routes(self) -> list[web.RouteDef]:
        """Routes of the three endpoints."""
        return [
            web.get("/metrics", self._metrics),
            web.get("/healthz", self._healthy),
            web.get("/readyz", self._ready),
        ]

    async def _metrics(self, _: web.Request) -> web.Response:
        # In a thread: thousands of series take longer than heartbeats may wait.
        body = await asyncio.to_thread(generate_latest, self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _healthy(self, _: web.Request) -> web.Response:
        return json_response({"healthy": True})

    async def _ready(self, _: web.Request) -> web.Response:
        reasons = self._reasons_not_ready()
        return json_response({"ready": not reasons, "reasons": reasons}, status=503 if reasons else 200)


def origin_check(names: Iterable[str] = ()) -> Middleware:
    """Return a middleware that answers 421 to another host's name, 403 to another site's page.

    Parameters
    ----------
    names : allowed host names beside loopback's, without port.
    """
    listed = "|".join(map(re.escape, (*LOOPBACK_NAMES, *names)))
    allowed = re.compile(rf"({listed})(:\d{{1,5}})?", re.IGNORECASE)

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if allowed.fullmatch(request.headers.get("Host", "")) is None:
            raise web.HTTPMisdirectedRequest(
                text="ask for 127.0.0.1 or localhost; a proxy's name must be listed: --page-host NAME"
            )
        headers = request.headers
        if (
            headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
            and headers.get("Sec-Fetch-Dest") != "document"
        ):
            raise web.HTTPForbidden(text="a page of another site may link here, and ask for nothing")
        return await handler(request)

    return check


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Forbid browsers everything the page does not need."""
    response.headers.update(HEADERS)


def _is_error(record: logging.LogRecord) -> bool:
    """False for a malformed request: its bytes must not be logged.

    It is answered 400; or 500 if its Expect header is not UTF-8, which aiohttp's own answer repeats.
    """
    refused = (HttpProcessingError, UnicodeEncodeError)
    return not (record.exc_info and isinstance(record.exc_info[1], refused))


log = logging.getLogger(__name__)
log.addFilter(_is_error)


class PortInUseError(DeniableError, RuntimeError):
    """Cannot listen on an address."""


class WebServer:
    """Serves on loopback until stopped.

    Parameters
    ----------
    collections : by fingerprint.
    history : newest estimates of recent windows; pass each estimate it accepts to `page.show`.
    metrics : of this worker.
    reasons_not_ready : returns why this worker is not ready; empty if it is.
    limits : of the clients, by collection name.
    routes : further routes.
    page_hosts : names beside loopback's under which a proxy of this machine serves the page.
    timing : of the page's events, and of the stop.
    """

    def __init__(
        self,
        collections: Mapping[int, Collection],
        history: EstimateHistory,
        metrics: WorkerMetrics,
        reasons_not_ready: Callable[[], list[str]],
        limits: Mapping[str, ClientLimits] = MappingProxyType({}),
        routes: Iterable[web.AbstractRouteDef] = (),
        page_hosts: Iterable[str] = (),
        timing: WebTiming = DEFAULT,
    ) -> None:
        self.collections = {collection.name: collection for collection in collections.values()}
        self.history = history
        self.api = EstimatesApi(self.collections, history)
        self.metrics = metrics
        self.reasons_not_ready = reasons_not_ready
        self.routes = routes
        self._origin_check = origin_check(page_hosts)
        self.timing = timing
        self.probes = Probes(metrics.registry, reasons_not_ready)
        self.page = PageFeed(list(collections.values()), history, limits, self.status, timing)
        self.streams = EventStreams(self.page.feed, timing)
        # From memory: a browser asks for all at once, and each file read costs two turns of a thread.
        self._files = {name: (PAGE / name).read_bytes() for name in PAGE_FILES.values()}
        self._runners: list[web.AppRunner] = []
        self._pulse: asyncio.Task[None] | None = None

    async def start(self, port: int) -> int:
        """Listen on this port (0: a free one); return the port. Raises PortInUseError."""
        app = web.Application(middlewares=[self._origin_check])
        app.on_response_prepare.append(add_headers)
        app.on_shutdown.append(self._close_streams)
        app.router.add_get("/api/collections", self._collections)
        app.router.add_get("/api/estimates/{collection}", self.api.estimate)
        app.router.add_get("/api/events", self.streams.serve)
        app.router.add_get("/api/history/{collection}", self.api.kept)
        app.router.add_get("/api/plan", self.api.plan)
        app.router.add_get("/api/status", self._status)
        app.router.add_routes(self.probes.routes())
        app.router.add_routes(self.routes)
        for path in PAGE_FILES:
            app.router.add_get(path, self._page)
        port = await self._listen(app, HOST, port, "--web-port (0: a free one)")
        self._pulse = asyncio.create_task(self.page.run())
        return port

    async def open_probes(self, host: str, port: int) -> int:
        """Serve metrics and health, and nothing else, on this address too; return the port.

        It answers anyone who can reach it, under any host name: metrics hold estimates.

        Raises PortInUseError.
        """
        app = web.Application()
        app.on_response_prepare.append(add_headers)
        app.router.add_routes(self.probes.routes())
        return await self._listen(app, host, port, "--metrics-listen")

    async def _listen(self, app: web.Application, host: str, port: int, option: str) -> int:
        runner = web.AppRunner(
            app, access_log=None, logger=log, handler_cancellation=True, shutdown_timeout=self.timing.stop
        )
        self._runners.append(runner)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            await self.stop()
            if error.errno == errno.EADDRINUSE:
                raise PortInUseError(f"port {port} is in use; give another {option}") from error
            # Newer versions of asyncio skip an address that is not ours, and then have no errno.
            reason = os.strerror(error.errno or errno.EADDRNOTAVAIL)
            raise PortInUseError(
                f"port {port} of {host} cannot be used: {reason}; give another {option}"
            ) from error
        return int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening, and end the streams."""
        if self._pulse is not None:
            self._pulse.cancel()
            with suppress(asyncio.CancelledError):
                await self._pulse
            self._pulse = None
        while self._runners:
            await self._runners.pop().cleanup()

    def status(self) -> dict[str, object]:
        """Contents of the page's header: readiness, stale or missing estimates, rejected packs."""
        reasons = self.reasons_not_ready()
        collections = self.collections.values()
        return {
            "ready": not reasons,
            "reasons": reasons,
            "stale": self.history.stale(collections, time.time()),
            "waiting": [each.name for each in collections if not self.history.starts(each)],
            "sought": sorted(self.history.sought),
            "unattributed": dict(self.metrics.unattributed.packs),
        }

    async def _close_streams(self, _: web.Application) -> None:
        self.page.feed.close()

    async def _page(self, request: web.Request) -> web.StreamResponse:
        name = PAGE_FILES[request.path]
        return web.Response(
            body=self._files[name], content_type=MEDIA_TYPES[Path(name).suffix], charset="utf-8"
        )

    async def _collections(self, _: web.Request) -> web.Response:
        return json_response([about(collection) for collection in self.collections.values()])

    async def _status(self, _: web.Request) -> web.Response:
        return json_response(self.status())
