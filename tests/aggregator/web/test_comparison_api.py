"""`/api/compare` over real HTTP: the record, messages for refused requests, and bounded work."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest
from aiohttp import ClientSession

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.web import past_windows
from deniable.aggregator.web.comparison_api import Comparer, Comparisons
from deniable.aggregator.web.past_windows import PastWindows
from deniable.aggregator.web.server import WebServer
from deniable.analysis.comparison import JoinedPeriod as Side
from deniable.analysis.comparison import check_comparable, compare_joined, compare_periods
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import COLLECTIONS, DEPLOYMENT, FRUIT, T0
from tests.support.aggregator.scene import AIR_TIME
from tests.support.messages import PinMessages

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


@pytest.mark.slow
def test_messages(pin_messages: PinMessages, asked: list[Period], monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong questions are refused before anything is read."""

    def refused(query: Any) -> str:
        [(status, body)] = ask(query)
        assert not asked
        return f"HTTP {status}: {body['error']}"

    def too_few() -> str:
        async def join(_: object, __: object, ___: object, period: Period) -> Joined:
            return joined_of(period, 5)

        monkeypatch.setattr(past_windows, "join_windows", join)
        return refused(GOOD)

    changed = {
        "an unknown collection": {"collection": "<b>"},
        "an unknown parameter": {"step": "1"},
        "between without its end": {"between": "2026-01"},
        "between with words": {"between": "soon/later"},
        "rate is 0": {"rate": "0"},
        "rate is nan": {"rate": "nan"},
        "periods that overlap": {"and": GOOD["between"]},
        "a period shorter than a window": {"and": f"{T0 + 60}/{T0 + 69}"},
        "a period of too many windows": {"and": f"{T0 + 60}/{T0 + 450_080}"},
        "a collection of numbers": {"collection": "air-time"},
    }
    pin_messages(
        {
            "collection alone": partial(refused, {"collection": "fruit"}),
            "a repeated parameter": partial(refused, [*GOOD.items(), ("and", "1/2")]),
        }
        | {what: partial(refused, {**GOOD, **each}) for what, each in changed.items()}
        | {"too few reports": too_few}
    )
