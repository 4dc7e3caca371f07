"""`/api/rollup`: an estimate over many windows."""

from collections.abc import Sequence

import msgspec
from aiohttp import web

from aggregator.history.periods import Period, period_of
from aggregator.history.rollup import coverage_of, record_of, roll_up
from aggregator.history.window_reader import Joined
from aggregator.web.past_windows import PastWindows, refusal, with_hint
from estimators.collection import Collection

PARAMETERS = ("collection", "from", "to")


class RollUps:
    """Answers to `/api/rollup?collection=&from=&to=`.

    Parameters
    ----------
    past : where the windows come from.
    """

    def __init__(self, past: PastWindows) -> None:
        self.past = past

    def routes(self) -> list[web.AbstractRouteDef]:
        """Routes for the web server."""
        return [web.get("/api/rollup", self.answer)]

    async def answer(self, request: web.Request) -> web.Response:
        """The record; or 400, 404, 500 or 503 with the error."""
        unfit = [name for name in PARAMETERS if len(request.query.getall(name, [])) != 1]
        if unfit or len(request.query) != len(PARAMETERS):
            return refusal(400, "give collection, from and to, once each, and nothing else")
        collection = self.past.collections.get(request.query["collection"])
        if collection is None:
            return refusal(404, "unknown collection")
        try:
            period = period_of(request.query["from"], request.query["to"])
        except ValueError as error:
            return refusal(400, with_hint(error))
        return await self.past.answer(
            collection, [period], lambda joined: _body(collection, period, joined), "deniable rollup"
        )


def _body(collection: Collection, period: Period, windows: Sequence[Joined]) -> bytes:
    [joined] = windows
    result = roll_up(collection, joined)
    return msgspec.json.encode(record_of(collection, coverage_of(collection, period, joined), joined, result))
