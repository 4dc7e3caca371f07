"""Answers that need final windows of the past, read from their topic.

Rule: counting comes first. One answer at a time, from a bounded number of windows, in bounded time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from aiohttp import web
from aiokafka.errors import KafkaError

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import Joined, join_windows
from deniable.aggregator.web.estimates_api import refused
from deniable.aggregator.web.timing import DEFAULT, WebTiming
from deniable.estimators.collection import Collection
from deniable.estimators.errors import DeniableError

MOST_WINDOWS = 45_000  # a month of minutes


class PastQuestion(NamedTuple):
    """What is asked about final windows.

    Parameters
    ----------
    collection : of the windows.
    periods : to read, each of 1 to MOST_WINDOWS whole windows.
    compute : the body from the joined windows of each period. Raises DeniableError with what the caller can
        change, such as a longer period; ValueError or ArithmeticError if no estimate fits the counts.
    command : that answers where this cannot, for the error.
    further : reads what else the computation needs, once the windows are there.
    """

    collection: Collection
    periods: Sequence[Period]
    compute: Callable[[Sequence[Joined]], bytes]
    command: str
    further: Callable[[Sequence[Joined]], Awaitable[None]] | None = None


class PastWindows:
    """Joins the windows of periods, and computes an answer from them in a thread of its own.

    Parameters
    ----------
    deployment : of the windows.
    timing : of reading them.
    """

    def __init__(self, deployment: Deployment, timing: WebTiming = DEFAULT) -> None:
        self.deployment = deployment
        self.timing = timing
        self._collections = {each.name: each for each in deployment.collections.values()}
        self._busy = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="past-windows")

    def collection(self, name: str) -> Collection:
        """Return the collection of this name; LookupError with those that there are."""
        if name not in self._collections:
            raise LookupError(f"unknown collection; there are: {', '.join(self._collections)}")
        return self._collections[name]

    def route(self, path: str, question_of: Callable[[web.Request], PastQuestion]) -> web.RouteDef:
        """Answer requests with JSON; or 400, 404, 422, 500 or 503 with the error.

        Parameters
        ----------
        path : of the requests.
        question_of : returns what is asked; raises ValueError, or LookupError for an unknown collection.
        """

        async def answer(request: web.Request) -> web.Response:
            try:
                question = question_of(request)
                _check_length(question)
            except ValueError as error:
                # A plus sign in an address is a blank.
                hint = "; write the + of a zone as %2B" if "ISO 8601" in str(error) else ""
                return refusal(400, f"{error}{hint}")
            except LookupError as error:
                return refusal(404, str(error))
            if self._busy.locked():
                return refusal(503, "another roll-up is running: try again when it has ended")
            async with self._busy:
                return await self._answer(question)

        return web.get(path, answer)

    async def _answer(self, question: PastQuestion) -> web.Response:
        cluster, topics, seconds = self.deployment.cluster, self.deployment.topics, self.timing.read
        collection, periods = question.collection, question.periods
        try:
            async with asyncio.timeout(seconds):
                joined = [await join_windows(cluster, topics, collection, period) for period in periods]
        except (KafkaError, OSError):  # TimeoutError too
            return refusal(503, f"the windows cannot be read within {seconds:g} s: try {question.command}")
        if question.further is not None:
            await question.further(joined)
        try:
            body = await asyncio.get_running_loop().run_in_executor(self._thread, question.compute, joined)
        except DeniableError as error:
            return refusal(422, str(error))
        except (ValueError, ArithmeticError) as error:
            return refusal(500, f"no estimate fits the counts: {error}")
        return web.Response(body=body, content_type="application/json")


def _check_length(question: PastQuestion) -> None:
    seconds = question.collection.window_seconds
    for period in question.periods:
        windows = period.windows(seconds)
        if not 1 <= windows <= MOST_WINDOWS:
            remedy = f"{question.command} joins more" if windows else "give a longer period"
            raise ValueError(
                f"a period must hold 1 to {MOST_WINDOWS} whole windows of {seconds} s, got {windows}; "
                f"{remedy}"
            )


def refusal(status: int, what: str) -> web.Response:
    """Answer with an error in JSON; one that passes says when to ask again."""
    response = refused(status, what)
    if status == 503:
        response.headers["Retry-After"] = "5"
    return response
