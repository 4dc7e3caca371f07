"""Endpoints for programs: metrics, liveness, readiness."""

import asyncio
from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from deniable.aggregator.web.estimates_api import json_response


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
