"""Estimates and plans as JSON, for programs and for the page.

Rule: an error answer names the allowed values. No request computes more than one plan, one at a time.
"""

import asyncio
import re
import reprlib
from collections.abc import Mapping

import msgspec
from aiohttp import web

from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.web.what_if import plan
from deniable.estimators.collection import Collection
from deniable.estimators.planning import LARGEST_REPORTS

WHOLE = re.compile(r"[0-9]{1,19}")


class EstimatesApi:
    """`/api/estimates/COLLECTION`, `/api/history/COLLECTION` and `/api/plan`.

    Parameters
    ----------
    collections : by name.
    history : newest estimates of recent windows.
    """

    def __init__(self, collections: Mapping[str, Collection], history: EstimateHistory) -> None:
        self.collections = collections
        self.history = history
        self._planning = asyncio.Lock()

    async def estimate(self, request: web.Request) -> web.Response:
        """The newest estimate of the newest window, or of the one that starts at `window_start`."""
        collection = self.collections.get(request.match_info["collection"])
        if collection is None:
            return self._unknown_collection()
        if wrong := unfit(request, "window_start"):
            return refused(400, wrong)
        if collection.name in self.history.sought:
            return refused(503, "the topic of estimates is still being read; ask again in a moment")
        asked = request.query.get("window_start")
        if asked is None:
            record = self.history.record(collection)
            return json_response(msgspec.Raw(record)) if record else web.Response(status=204)
        if WHOLE.fullmatch(asked) is None:
            return refused(
                400, f"window_start must be unix seconds, a whole number, got {reprlib.repr(asked)}"
            )
        record = self.history.record(collection, int(asked))
        return json_response(msgspec.Raw(record)) if record else self._unknown_window(collection)

    async def kept(self, request: web.Request) -> web.Response:
        """The newest estimate of each window that this worker keeps, oldest first."""
        collection = self.collections.get(request.match_info["collection"])
        if collection is None:
            return self._unknown_collection()
        if wrong := unfit(request):
            return refused(400, wrong)
        if collection.name in self.history.sought:
            return refused(503, "the topic of estimates is still being read; ask again in a moment")
        records = [self.history.record(collection, start) for start in self.history.starts(collection)]
        return json_response({"estimates": [msgspec.Raw(each) for each in records if each]})

    async def plan(self, request: web.Request) -> web.Response:
        """Expected errors at each epsilon for `reports`, by default those of the newest window."""
        if wrong := unfit(request, "collection", "reports"):
            return refused(400, wrong)
        if "collection" not in request.query:
            return refused(400, f"give a collection; there are: {', '.join(self.collections)}")
        collection = self.collections.get(request.query["collection"])
        if collection is None:
            return self._unknown_collection()
        newest = self.history.newest.get(collection.name)
        default = newest.reports if newest else max(1, collection.minimum_reports)
        asked = request.query.get("reports", str(default))
        if WHOLE.fullmatch(asked) is None or not 1 <= int(asked) <= LARGEST_REPORTS:
            return refused(
                400, f"reports must be a whole number in [1, {LARGEST_REPORTS}], got {reprlib.repr(asked)}"
            )
        async with self._planning:
            return json_response(await asyncio.to_thread(plan, collection, int(asked)))

    def _unknown_collection(self) -> web.Response:
        return refused(404, f"unknown collection; there are: {', '.join(self.collections)}")

    def _unknown_window(self, collection: Collection) -> web.Response:
        starts = self.history.starts(collection)
        known = (
            f"known are {len(starts)}, which start from {starts[0]} to {starts[-1]}, unix seconds"
            if starts
            else "none is known yet"
        )
        return refused(404, f"unknown window; {known}")


def unfit(request: web.Request, *names: str) -> str:
    """Error for unknown or repeated query parameters; empty if there is none."""
    given = [name for name, _ in request.query.items()]
    if set(given) <= set(names) and len(given) == len(set(given)):
        return ""
    allowed = f"parameters are {', '.join(names)}, each at most once" if names else "it takes no parameters"
    return f"{allowed}, got {reprlib.repr(', '.join(given))}"


def json_response(value: object, status: int = 200) -> web.Response:
    """Answer with JSON."""
    body = msgspec.json.encode(value)
    return web.Response(body=body, status=status, content_type="application/json")


def refused(status: int, error: str) -> web.Response:
    """Answer with an error in JSON."""
    return json_response({"error": error}, status)
