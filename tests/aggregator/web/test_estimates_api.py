"""Estimates and plans over HTTP: the requested window, and messages for invalid requests."""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession

from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.web.server import WebServer
from deniable.estimators.planning import expected_std_error
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, T0, changed, estimate_of
from tests.support.messages import PinMessages

NEWEST = changed(estimate_of(), revision=3)
OLDER = changed(estimate_of(), window_start=T0 - 10, final=True, reports=1000)


def get(path: str, *records: EstimateRecord, sought: Iterable[str] = ()) -> tuple[int, Any]:
    """Status and JSON of an answer by a worker with these estimates; None for an empty answer."""

    async def ask() -> tuple[int, Any]:
        history = EstimateHistory(COLLECTIONS.values())
        history.sought = set(sought)
        for record in records:
            history.take(encode_estimate(record))
        server = WebServer(COLLECTIONS, history, WorkerMetrics(COLLECTIONS), list)
        port = await server.start(0)
        try:
            async with ClientSession() as session, session.get(f"http://localhost:{port}{path}") as answer:
                body = await answer.read()
                assert not body or answer.headers["Content-Type"] == "application/json"
                return answer.status, msgspec.json.decode(body) if body else None
        finally:
            await server.stop()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("query", "expected"),
    [("", NEWEST), (f"?window_start={T0}", NEWEST), (f"?window_start={T0 - 10}", OLDER)],
)
def test_estimate_is_that_of_the_requested_window(query: str, expected: EstimateRecord) -> None:
    status, body = get(f"/api/estimates/fruit{query}", OLDER, estimate_of(), NEWEST)
    assert status == 200
    assert msgspec.convert(body, EstimateRecord) == expected


def test_history_has_the_newest_estimate_of_each_window() -> None:
    status, body = get("/api/history/fruit", OLDER, estimate_of(), NEWEST)
    assert status == 200
    assert [msgspec.convert(each, EstimateRecord) for each in body["estimates"]] == [OLDER, NEWEST]
    assert get("/api/history/place", NEWEST) == (200, {"estimates": []})


def test_history_refuses_what_the_newest_estimate_refuses() -> None:
    assert get("/api/history/vegetable")[0] == 404
    assert get("/api/history/fruit", sought=["fruit"])[0] == 503


def test_no_estimate_yet_is_no_content() -> None:
    assert get("/api/estimates/place", NEWEST) == (204, None)


@pytest.mark.parametrize("query", ["", f"?window_start={T0}"])
def test_unread_topic_is_not_reported_as_empty(query: str) -> None:
    """Nor is an older one; for a collection already found, the newest is returned."""
    assert get(f"/api/estimates/place{query}", NEWEST, sought=["place"])[0] == 503
    assert get(f"/api/estimates/fruit{query}", NEWEST, sought=["fruit"])[0] == 503
    assert get(f"/api/estimates/fruit{query}", NEWEST, sought=["place"])[0] == 200


@pytest.mark.parametrize(
    ("query", "records", "reports"),
    [("", [OLDER, NEWEST], 40), ("&reports=5000", [NEWEST], 5000), ("", [], FRUIT.minimum_reports)],
)
def test_plan_is_for_the_reports_of_the_newest_window(
    query: str, records: list[EstimateRecord], reports: int
) -> None:
    status, plan = get(f"/api/plan?collection=fruit{query}", *records)
    assert (status, plan["collection"], plan["reports"]) == (200, "fruit", reports)
    error = expected_std_error(FRUIT.mechanism, reports, candidates=3)
    assert plan["now"]["std_error"] == [pytest.approx(error)]


@pytest.mark.slow
def test_messages(pin_messages: PinMessages) -> None:
    def refused(path: str, *records: EstimateRecord, sought: Iterable[str] = ()) -> str:
        status, body = get(f"/api/{path}", *records, sought=sought)
        assert len(body["error"]) < 110
        return f"HTTP {status}: {body['error']}"

    starts = ["-1", "1.5", "x", "", "9" * 20, "%D9%A1"]
    reports = ["0", "-1", "x", "", "1e3", "1000000000000000001", "9" * 5000]
    paths = [
        "history/fruit?window_start=5",
        "estimates/fruit?window=5",
        "estimates/fruit?window_start=5&window_start=6",
        "estimates/%3Cscript%3E",
        "plan?collection=fruit&n=5",
        "plan?collection=fruit&collection=place",
        "plan?reports=7",
        "plan?collection=",
        "plan?collection=grape&reports=7",
    ]
    pin_messages(
        {
            f"window_start is {each!r}": partial(refused, f"estimates/fruit?window_start={each}")
            for each in starts
        }
        | {
            f"reports is {each[:20]!r}": partial(refused, f"plan?collection=fruit&reports={each}")
            for each in reports
        }
        | {each: partial(refused, each) for each in paths}
        | {
            "an unknown window": partial(refused, "estimates/fruit?window_start=7", OLDER, NEWEST),
            "a window before any is known": partial(refused, "estimates/fruit?window_start=7"),
            "a topic that is still read": partial(refused, "estimates/place", NEWEST, sought=["place"]),
        }
    )
