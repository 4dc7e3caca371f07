"""Estimates and plans as JSON, for programs and for the page.

Rule: what is asked wrongly is answered with what would be right; nothing asked takes more than one window's
computing, one request at a time.
"""

import asyncio
import re
from collections.abc import Mapping

import msgspec
from aiohttp import web

from aggregator.history import History
from aggregator.plan import plan
from estimators.collection import Collection
from estimators.planning import LARGEST_REPORTS

WHOLE = re.compile(r"[0-9]{1,19}")


class EstimatesApi:
    """`/api/estimates/COLLECTION` and `/api/plan`.

    Parameters
    ----------
    collections : known collections by name.
    history : newest estimates of the last windows.
    """

    def __init__(self, collections: Mapping[str, Collection], history: History) -> None:
        self.collections = collections
        self.history = history
        self._planning = asyncio.Lock()

    async def estimate(self, request: web.Request) -> web.Response:
        """The newest estimate of the newest window, or of the one that starts at `window_start`."""
        collection = self.collections.get(request.match_info["collection"])
        if collection is None:
            return self._unknown_collection()
        if collection.name in self.history.sought:
            return refused(503, "the topic of estimates is still being read; ask again in a moment")
        asked = request.query.get("window_start")
        if asked is None:
            record = self.history.record(collection)
            return json_response(msgspec.Raw(record)) if record else web.Response(status=204)
        if WHOLE.fullmatch(asked) is None:
            return refused(400, "window_start must be unix seconds, a whole number")
        record = self.history.record(collection, int(asked))
        return json_response(msgspec.Raw(record)) if record else self._unknown_window(collection)

    async def plan(self, request: web.Request) -> web.Response:
        """What to expect at each epsilon of `reports`, by default those of the collection's newest window."""
        collection = self.collections.get(request.query.get("collection", ""))
        if collection is None:
            return self._unknown_collection()
        newest = self.history.newest.get(collection.name)
        default = newest.reports if newest else max(1, collection.minimum_reports)
        asked = request.query.get("reports", str(default))
        if WHOLE.fullmatch(asked) is None or not 1 <= int(asked) <= LARGEST_REPORTS:
            return refused(400, f"reports must be a whole number in [1, {LARGEST_REPORTS}]")
        async with self._planning:
            return json_response(await asyncio.to_thread(plan, collection, int(asked)))

    def _unknown_collection(self) -> web.Response:
        return refused(404, f"unknown collection; there are: {', '.join(self.collections)}")

    def _unknown_window(self, collection: Collection) -> web.Response:
        starts = self.history.starts(collection)
        known = (
            f"{len(starts)} are known, from {starts[0]} to {starts[-1]}" if starts else "none is known yet"
        )
        return refused(404, f"unknown window; {known}")


def json_response(value: object, status: int = 200) -> web.Response:
    """Answer with JSON."""
    body = msgspec.json.encode(value)
    return web.Response(body=body, status=status, content_type="application/json")


def refused(status: int, error: str) -> web.Response:
    """Say in JSON what is wrong."""
    return json_response({"error": error}, status)
