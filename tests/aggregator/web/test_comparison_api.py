"""`/api/compare` over real HTTP: the record, messages for refused requests, and bounded work."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from aiohttp import ClientSession

from aggregator.history.periods import Period
from aggregator.history.window_reader import Joined
from aggregator.metrics.worker_metrics import WorkerMetrics
from aggregator.records.window_counts import WindowCounts
from aggregator.views.estimate_history import EstimateHistory
from aggregator.web import past_windows
from aggregator.web.comparison_api import Comparer, Comparisons
from aggregator.web.past_windows import PastWindows
from aggregator.web.server import WebServer
from analysis.comparison import JoinedPeriod as Side
from analysis.comparison import check_comparable, compare_joined, compare_periods
from estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import COLLECTIONS, DEPLOYMENT, FRUIT, T0
from tests.support.aggregator.scene import AIR_TIME

Answer = tuple[int, dict[str, Any]]
FIRST, SECOND = Period(T0, T0 + 60), Period(T0 + 60, T0 + 120)
GOOD = {
    "collection": "fruit",
    "between": f"{FIRST.start}/{FIRST.end}",
    "and": f"{SECOND.start}/{SECOND.end}",
}
NUMBERS = {AIR_TIME.fingerprint: AIR_TIME}


def joined_of(period: Period, reports: int = 10_000) -> Joined:
    """Return counts of a period in which the later one has more apples."""
    shares = [0.5, 0.2, 0.2, 0.1] if period == FIRST else [0.6, 0.15, 0.15, 0.1]
    counts = np.array([[round(share * reports) for share in shares]], np.int64)
    return Joined(WindowCounts(counts, counts.sum(axis=1), 1, 0), {period.start: reports}, [], {}, 0)


def ask(*queries: dict[str, str] | list[tuple[str, str]]) -> list[Answer]:
    """Send these requests to one server, one after the other."""

    async def run() -> list[Answer]:
        collections = COLLECTIONS | NUMBERS
        past = PastWindows(DEPLOYMENT._replace(collections=collections))
        routes = Comparisons(past, Comparer(check_comparable, compare_joined)).routes()
        history = EstimateHistory(collections.values())
        server = WebServer(collections, history, WorkerMetrics(collections), list, routes=routes)
        port = await server.start(0)
        answers = []
        try:
            async with ClientSession(f"http://127.0.0.1:{port}") as session:
                for query in queries:
                    async with session.get("/api/compare", params=query) as answer:
                        answers.append((answer.status, msgspec.json.decode(await answer.read())))
        finally:
            await server.stop()
        return answers

    return asyncio.run(run())


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Period]:
    """Joined windows, without a topic."""
    found: list[Period] = []

    async def join(_: object, __: object, ___: object, period: Period) -> Joined:
        found.append(period)
        return joined_of(period)

    monkeypatch.setattr(past_windows, "join_windows", join)
    return found


def test_answer_is_the_record_of_the_command(asked: list[Period]) -> None:
    [(status, record)] = ask({**GOOD, "rate": "0.1"})
    sides = [Side(period, joined_of(period)) for period in (FIRST, SECOND)]
    expected = msgspec.json.decode(msgspec.json.encode(compare_periods(FRUIT, sides[0], sides[1], 0.1)))
    assert (status, record) == (200, expected)
    assert asked == [FIRST, SECOND]
    assert dict(zip(record["values"], record["significant"], strict=True))["apple"]


def test_large_domain_returns_the_smallest_p_values() -> None:
    """In the order of the values; the others count in the test all the same."""
    wide = replace(FRUIT, mechanism=KRR.from_epsilon(3000, 5.0), values=(), other=False)
    counts = [np.full((1, 3000), 100, np.int64) for _ in range(2)]
    counts[1][0, 2500:] += 100
    sides = [Joined(WindowCounts(each, each.sum(axis=1), 1, 0), {T0: 1}, [], {}, 0) for each in counts]
    whole = compare_joined(wide, [FIRST, SECOND], sides, 0.05, 3000)
    cut = compare_joined(wide, [FIRST, SECOND], sides, 0.05, 600)
    assert (len(cut.values), cut.omitted, whole.omitted) == (600, 2400, 0)
    assert cut.values == sorted(cut.values, key=int)
    assert sum(cut.significant) == sum(whole.significant) > 0
    assert max(cut.p_value) <= sorted(whole.p_value)[600]


@pytest.mark.parametrize(
    ("query", "status", "expected"),
    [
        ({**GOOD, "collection": "<b>"}, 404, "unknown collection; there are: fruit, place, air-time"),
        ({"collection": "fruit"}, 400, "give collection, between and and; missing: between, and"),
        ({**GOOD, "step": "1"}, 400, "parameters are collection and between and and and rate, each at most"),
        ([*GOOD.items(), ("and", "1/2")], 400, "parameters are collection"),
        ({**GOOD, "between": "2026-01"}, 400, "between must be START/END, each in ISO 8601 or unix seconds"),
        ({**GOOD, "between": "soon/later"}, 400, "from must be whole seconds from 1970 to 9999"),
        ({**GOOD, "rate": "0"}, 400, "rate must be a number in [1e-09, 0.5], got '0'"),
        ({**GOOD, "rate": "nan"}, 400, "rate must be a number in [1e-09, 0.5], got 'nan'"),
        ({**GOOD, "and": GOOD["between"]}, 400, "the periods must not overlap"),
        (
            {**GOOD, "and": f"{T0 + 60}/{T0 + 69}"},
            400,
            "the period must hold at least 1 whole window of 10 s",
        ),
        (
            {**GOOD, "and": f"{T0 + 60}/{T0 + 450_080}"},
            400,
            "a period must hold 1 to 45000 whole windows of 10 s",
        ),
        (
            {**GOOD, "collection": "air-time"},
            400,
            "compare needs shares of values, and air-time is of numbers",
        ),
    ],
)
def test_wrong_question_is_refused_before_anything_is_read(
    query: Any, status: int, expected: str, asked: list[Period]
) -> None:
    [(found, body)] = ask(query)
    assert (found, asked) == (status, [])
    assert body["error"].startswith(expected)


def test_too_few_reports_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def join(_: object, __: object, ___: object, period: Period) -> Joined:
        return joined_of(period, 5)

    monkeypatch.setattr(past_windows, "join_windows", join)
    [(status, body)] = ask(GOOD)
    assert status == 422
    assert "fewer than minimum_reports = 6; give a longer period" in body["error"]
