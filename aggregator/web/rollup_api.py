"""`/api/rollup`: an estimate over many windows.

Rule: counting comes first. One roll-up at a time, of a bounded number of windows, in bounded time.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec
from aiohttp import web
from aiokafka.errors import KafkaError

from aggregator.deployment import Deployment
from aggregator.history.periods import Period, period_of
from aggregator.history.rollup import coverage_of, record_of, roll_up
from aggregator.history.window_reader import Joined, join_windows
from aggregator.web.estimates_api import refused
from aggregator.web.timing import DEFAULT, WebTiming
from estimators.collection import Collection

MOST_WINDOWS = 45_000  # a month of minutes
PARAMETERS = ("collection", "from", "to")


class RollUps:
    """Answers to `/api/rollup?collection=&from=&to=`.

    Parameters
    ----------
    deployment : of the windows.
    timing : of reading them.
    """

    def __init__(self, deployment: Deployment, timing: WebTiming = DEFAULT) -> None:
        self.deployment = deployment
        self.timing = timing
        self.collections = {each.name: each for each in deployment.collections.values()}
        self._busy = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="roll-up")

    def routes(self) -> list[web.AbstractRouteDef]:
        """Routes for the web server."""
        return [web.get("/api/rollup", self.answer)]

    async def answer(self, request: web.Request) -> web.Response:
        """The record; or 400, 404, 500 or 503 with the error."""
        unfit = [name for name in PARAMETERS if len(request.query.getall(name, [])) != 1]
        if unfit or len(request.query) != len(PARAMETERS):
            return _refusal(400, "give collection, from and to, once each, and nothing else")
        collection = self.collections.get(request.query["collection"])
        if collection is None:
            return _refusal(404, "unknown collection")
        if self._busy.locked():
            return _refusal(503, "another roll-up is running: try again when it has ended")
        async with self._busy:
            return await self._answer(collection, request.query)

    async def _answer(self, collection: Collection, query: Mapping[str, str]) -> web.Response:
        try:
            period = period_of(query["from"], query["to"])
            windows = period.windows(collection.window_seconds)
            if not 1 <= windows <= MOST_WINDOWS:
                raise ValueError(
                    f"from and to must hold 1 to {MOST_WINDOWS} whole windows of "
                    f"{collection.window_seconds} s, got {windows}; deniable rollup joins more"
                )
        except ValueError as error:
            plus = "; write the + of a zone as %2B" if "ISO 8601" in str(error) else ""
            return _refusal(400, f"{error}{plus}")
        try:
            async with asyncio.timeout(self.timing.read):
                cluster, topics = self.deployment.cluster, self.deployment.topics
                joined = await join_windows(cluster, topics, collection, period)
        except (KafkaError, OSError):  # TimeoutError too
            said = f"the windows cannot be read within {self.timing.read:g} s: try deniable rollup"
            return _refusal(503, said)
        loop = asyncio.get_running_loop()
        try:
            body = await loop.run_in_executor(self._thread, _body, collection, period, joined)
        except (ValueError, ArithmeticError) as error:
            return _refusal(500, f"no estimate fits the counts: {error}")
        return web.Response(body=body, content_type="application/json")


def _body(collection: Collection, period: Period, joined: Joined) -> bytes:
    result = roll_up(collection, joined)
    return msgspec.json.encode(record_of(collection, coverage_of(collection, period, joined), joined, result))


def _refusal(status: int, what: str) -> web.Response:
    refusal = refused(status, what)
    if status == 503:
        refusal.headers["Retry-After"] = "5"
    return refusal
