"""`/api/rollup`: an estimate over many windows, also across changes of parameters."""

import asyncio
from collections.abc import Sequence

import msgspec
from aiohttp import web
from aiokafka.errors import KafkaError

from deniable.aggregator.history.periods import Period, period_of
from deniable.aggregator.history.rollup import RollUpRecord, coverage_of, record_of, roll_up
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.views.former_estimates import (
    FormerEstimates,
    TooManySharesError,
    read_former_estimates,
)
from deniable.aggregator.views.joined_so_far import RollUpAcrossChanges, SharesAcrossChanges, join_so_far
from deniable.aggregator.web.past_windows import PastQuestion, PastWindows
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
        return [self.past.route("/api/rollup", self._question)]

    def _question(self, request: web.Request) -> PastQuestion:
        query = request.query
        unfit = [name for name in PARAMETERS if len(query.getall(name, [])) != 1]
        more = [each for each in query.items() if each[0] not in PARAMETERS]
        if unfit or more not in ([], [FORMER]):
            raise ValueError(
                "give collection, from and to, once each, with former=estimates or without, and nothing else"
            )
        collection = self.past.collection(query["collection"])
        period = period_of(query["from"], query["to"])
        reading = FormerEstimates(collection, period) if more else None

        async def read_former(joined: Sequence[Joined]) -> None:
            if reading is not None and _has_former(collection, joined[0]):
                await self._read(reading)

        def compute(joined: Sequence[Joined]) -> bytes:
            return msgspec.json.encode(_record(collection, period, joined[0], reading))

        return PastQuestion(collection, [period], compute, "deniable rollup", read_former)

    async def _read(self, reading: FormerEstimates) -> None:
        """Read the estimates under former parameters, or note why they cannot be read."""
        cluster, topics, timing = self.past.deployment.cluster, self.past.deployment.topics, self.past.timing
        try:
            async with asyncio.timeout(timing.read):
                await read_former_estimates(cluster, topics, reading)
        except (KafkaError, OSError):  # TimeoutError too
            reading.failure = f"estimates under former parameters cannot be read within {timing.read:g} s"
        except TooManySharesError as error:
            reading.failure = str(error)


def _has_former(collection: Collection, joined: Joined) -> bool:
    """Whether there are windows under former parameters, whose shares may be joined."""
    return bool(joined.others) and collection.number is None


def _record(
    collection: Collection, period: Period, joined: Joined, reading: FormerEstimates | None
) -> RollUpRecord:
    """Return a roll-up; joined with what was read under former parameters, if these were asked for."""
    result = roll_up(collection, joined)
    record = record_of(collection, coverage_of(collection, period, joined), joined, result)
    if reading is None:
        return record
    across = None
    if reading.failure:
        across = SharesAcrossChanges([], sum(joined.others.values()), reading.failure)
    elif _has_former(collection, joined):
        across = join_so_far(collection, joined, result, reading.definitions())
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    return RollUpAcrossChanges(**fields, joined=across)
