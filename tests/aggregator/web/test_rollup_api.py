"""`/api/rollup` over real HTTP: the record, messages for refused requests, and bounded work."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from aiohttp import ClientSession
from aiokafka.errors import KafkaConnectionError

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.views.former_estimates import FormerEstimates, TooManySharesError
from deniable.aggregator.web import past_windows, rollup_api
from deniable.aggregator.web.past_windows import MOST_WINDOWS, PastWindows
from deniable.aggregator.web.rollup_api import RollUps
from deniable.aggregator.web.server import HEADERS, WebServer
from deniable.aggregator.web.timing import DEFAULT, WebTiming
from deniable.estimators.mechanisms.krr import KRR
from tests.aggregator.history.test_rollup import joined_of
from tests.support.aggregator.builders import COLLECTIONS, DEPLOYMENT, FRUIT, T0
from tests.support.messages import PinMessages

Answer = tuple[int, dict[str, str], dict[str, Any]]
GOOD = {"collection": "fruit", "from": str(T0), "to": str(T0 + 60)}


def ask(*queries: dict[str, str] | list[tuple[str, str]], timing: WebTiming = DEFAULT) -> list[Answer]:
    """Send these requests to one server concurrently."""

    async def run() -> list[Answer]:
        metrics = WorkerMetrics(COLLECTIONS)
        history = EstimateHistory(COLLECTIONS.values())
        routes = RollUps(PastWindows(DEPLOYMENT, timing)).routes()
        server = WebServer(COLLECTIONS, history, metrics, list, routes=routes)
        port = await server.start(0)

        async def one(session: ClientSession, query: dict[str, str] | list[tuple[str, str]]) -> Answer:
            async with session.get("/api/rollup", params=query) as answer:
                return answer.status, dict(answer.headers), msgspec.json.decode(await answer.read())

        try:
            async with ClientSession(f"http://127.0.0.1:{port}") as session:
                return await asyncio.gather(*(one(session, query) for query in queries))
        finally:
            await server.stop()

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Period]]:
    """Joined windows; three windows are found."""
    found: list[tuple[str, Period]] = []

    async def join(_: object, __: object, collection: Any, period: Period) -> Joined:
        found.append((collection.name, period))
        return joined_of(collection, 1, 2, 4)

    monkeypatch.setattr(past_windows, "join_windows", join)
    return found


def join_instead(monkeypatch: pytest.MonkeyPatch, join: Callable[[], Awaitable[Joined]]) -> None:
    async def other(*_: object) -> Joined:
        return await join()

    monkeypatch.setattr(past_windows, "join_windows", other)


def test_roll_up_returns_the_record(asked: list[tuple[str, Period]]) -> None:
    [(status, headers, record)] = ask(GOOD)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert {name: headers.get(name) for name in HEADERS} == HEADERS
    assert asked == [("fruit", Period(T0, T0 + 60))]
    assert (record["collection"], record["coverage"]["windows"], record["coverage"]["expected"]) == (
        "fruit",
        3,
        6,
    )
    assert record["independent"]["reports"] == record["reports"] == 120


@pytest.mark.parametrize("others", [{}, {0xAB: 5}], ids=["one definition", "two"])
def test_estimates_under_former_parameters_are_read_where_there_are_any(
    monkeypatch: pytest.MonkeyPatch, others: dict[int, int]
) -> None:
    """Only if they are asked for, and if windows are of other parameters; here the topic has none of them."""
    read: list[FormerEstimates] = []

    async def found(_: object, __: object, reading: FormerEstimates) -> None:
        read.append(reading)

    async def join() -> Joined:
        return replace(joined_of(FRUIT, 1, 2, 4), others=others)

    monkeypatch.setattr(rollup_api, "read_former_estimates", found)
    join_instead(monkeypatch, join)
    [(_, _, plain)] = ask(GOOD)
    assert (read, "joined" in plain) == ([], False)
    [(status, _, record)] = ask({**GOOD, "former": "estimates"})
    assert status == 200
    joined = record.pop("joined")
    assert record == plain
    assert [each.period for each in read] == [Period(T0, T0 + 60)] * len(others)
    assert (joined and joined["unread"], joined and joined["values"]) == ((5, []) if others else (None, None))


@pytest.mark.slow
def test_estimates_that_take_too_long_or_are_too_many_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def join() -> Joined:
        return replace(joined_of(FRUIT, 1), others={0xAB: 5})

    async def never(*_: object) -> None:
        await asyncio.sleep(3600)

    async def many(*_: object) -> None:
        raise TooManySharesError("estimates must have at most 6 shares")

    join_instead(monkeypatch, join)
    for read in (never, many):
        monkeypatch.setattr(rollup_api, "read_former_estimates", read)
        [(status, _, record)] = ask({**GOOD, "former": "estimates"}, timing=WebTiming(read=0.1))
        assert (status, record["joined"]["unread"]) == (200, 5)
        assert record["joined"]["failure"]
        assert record["sequence"] is not None


def test_large_domain_returns_the_largest_values() -> None:
    wide = replace(FRUIT, mechanism=KRR.from_epsilon(3000, 5.0), values=(), other=False)
    joined = Joined(WindowCounts(np.full((1, 3000), 9), np.array([27_000]), 1, 0), {T0: 27_000}, [], {}, 0)
    answer = rollup_api._record(wide, Period(T0, T0 + 10), joined, None)
    record = msgspec.json.decode(msgspec.json.encode(answer))
    for kind in ("independent", "shared"):
        assert (len(record[kind]["values"]), record[kind]["omitted"]) == (2000, 1000)


def test_largest_period_is_accepted() -> None:
    [(status, _, record)] = ask({**GOOD, "to": str(T0 + 10 * MOST_WINDOWS)})
    assert (status, record["coverage"]["expected"]) == (200, MOST_WINDOWS)


@pytest.mark.slow
def test_roll_ups_run_one_at_a_time(pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slowly() -> Joined:
        await asyncio.sleep(2)  # the other two are refused at once
        return joined_of(FRUIT, 1)

    join_instead(monkeypatch, slowly)
    answers = ask(GOOD, GOOD, GOOD)
    assert sorted(status for status, _, _ in answers) == [200, 503, 503]
    refused = next(answer for answer in answers if answer[0] == 503)
    assert refused[1]["Retry-After"] == "5"
    pin_messages({"another roll-up is running": lambda: str(refused[2]["error"])})
    assert [ask(GOOD)[0][0] for _ in range(2)] == [200, 200]


@pytest.mark.parametrize("failure", [KafkaConnectionError("away"), OSError("refused")])
def test_unreachable_broker_is_reported(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    async def fail() -> Joined:
        raise failure

    join_instead(monkeypatch, fail)
    [(status, _, body)] = ask(GOOD)
    assert (status, [*body]) == (503, ["error"])


def test_reading_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never() -> Joined:
        await asyncio.sleep(3600)
        raise AssertionError

    join_instead(monkeypatch, never)
    assert [status for status, _, _ in ask(GOOD, timing=WebTiming(read=0.1))] == [503]


def test_inconsistent_counts_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def damaged() -> Joined:
        good = joined_of(FRUIT, 1)
        good.counts.counts[0, 0] = -1
        return good

    join_instead(monkeypatch, damaged)
    [(status, _, body)] = ask(GOOD)
    assert (status, [*body]) == (500, ["error"])


def test_messages(
    pin_messages: PinMessages, asked: list[tuple[str, Period]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong requests are refused before anything is read."""

    def refused(query: dict[str, str] | list[tuple[str, str]]) -> str:
        [(status, _, body)] = ask(query)
        assert not asked
        return f"HTTP {status}: {body['error']}"

    def unreachable() -> str:
        async def fail() -> Joined:
            raise OSError("refused")

        join_instead(monkeypatch, fail)
        return refused(GOOD)

    def damaged() -> str:
        async def join() -> Joined:
            good = joined_of(FRUIT, 1)
            good.counts.counts[0, 0] = -1
            return good

        join_instead(monkeypatch, join)
        return refused(GOOD)

    good = [*GOOD.items()]
    parameters = {
        "no parameters": [],
        "collection alone": [("collection", "fruit")],
        "from twice": [*good, ("from", "0")],
        "an unknown parameter": [*good, ("step", "1")],
        "until for to": [("collection", "fruit"), ("from", "0"), ("until", "60")],
        "former windows": [*good, ("former", "windows")],
        "former twice": [*good, ("former", "estimates"), ("former", "estimates")],
    }
    changed = {
        "an unknown collection": {"collection": "<b>"},
        "from is a word": {"from": "soon"},
        "to with a space for its plus sign": {"to": "2026-01-01T00:00:00 01:00"},
        "an empty period": {"to": str(T0)},
        "a period shorter than a window": {"to": str(T0 + 9)},
        "a period of too many windows": {"to": str(T0 + 10 * MOST_WINDOWS + 10)},
    }
    pin_messages(
        {what: partial(refused, query) for what, query in parameters.items()}
        | {what: partial(refused, {**GOOD, **each}) for what, each in changed.items()}
        | {"a broker that does not answer": unreachable, "counts that no estimate fits": damaged}
    )
