"""`/api/rollup`: an estimate over many windows, also across changes of parameters."""

import asyncio
from collections.abc import Sequence

import msgspec
from aiohttp import web
from aiokafka.errors import KafkaError

from deniable.aggregator.history.periods import Period, period_of
from deniable.aggregator.history.rollup import coverage_of, record_of, roll_up
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.views.former_estimates import (
    FormerEstimates,
    TooManySharesError,
    read_former_estimates,
)
from deniable.aggregator.views.joined_so_far import RollUpAcrossChanges, SharesAcrossChanges, join_so_far
from deniable.aggregator.web.past_windows import PastWindows, refusal, with_hint
from deniable.estimators.collection import Collection

PARAMETERS = ("collection", "from", "to")
FORMER = ("former", "estimates")


class RollUps:
    """Answers to `/api/rollup?collection=&from=&to=`, and to the same with `&former=estimates`.

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
        further = [each for each in request.query.items() if each[0] not in PARAMETERS]
        if unfit or further not in ([], [FORMER]):
            return refusal(
                400,
                "give collection, from and to, once each, with former=estimates or without, and nothing else",
            )
        collection = self.past.collections.get(request.query["collection"])
        if collection is None:
            return refusal(404, f"unknown collection; there are: {', '.join(self.past.collections)}")
        try:
            period = period_of(request.query["from"], request.query["to"])
        except ValueError as error:
            return refusal(400, with_hint(error))
        if further:
            return await self._across_changes(collection, period)
        return await self.past.answer(
            collection, [period], lambda joined: _body(collection, period, joined), "deniable rollup"
        )

    async def _across_changes(self, collection: Collection, period: Period) -> web.Response:
        """Read the estimates under former parameters too, if there are windows of these."""
        reading, failure = FormerEstimates(collection, period), ""

        async def read(joined: Sequence[Joined]) -> None:
            nonlocal failure
            if joined[0].others and collection.number is None:
                failure = await self._read(reading)

        return await self.past.answer(
            collection,
            [period],
            lambda joined: _joined_body(collection, period, joined, reading, failure),
            "deniable rollup",
            read,
        )

    async def _read(self, reading: FormerEstimates) -> str:
        """Return why they cannot be read; empty if they are."""
        cluster, topics, timing = self.past.deployment.cluster, self.past.deployment.topics, self.past.timing
        try:
            async with asyncio.timeout(timing.read):
                await read_former_estimates(cluster, topics, reading)
        except (KafkaError, OSError):  # TimeoutError too
            return f"estimates under former parameters cannot be read within {timing.read:g} s"
        except TooManySharesError as error:
            return str(error)
        return ""


def _body(collection: Collection, period: Period, windows: Sequence[Joined]) -> bytes:
    [joined] = windows
    result = roll_up(collection, joined)
    return msgspec.json.encode(record_of(collection, coverage_of(collection, period, joined), joined, result))


def _joined_body(
    collection: Collection, period: Period, windows: Sequence[Joined], reading: FormerEstimates, failure: str
) -> bytes:
    [joined] = windows
    result = roll_up(collection, joined)
    record = record_of(collection, coverage_of(collection, period, joined), joined, result)
    across = None
    if failure:
        across = SharesAcrossChanges([], sum(joined.others.values()), failure)
    elif joined.others and collection.number is None:
        across = join_so_far(collection, joined, result, reading.definitions())
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return msgspec.json.encode(RollUpAcrossChanges(**fields, joined=across))
