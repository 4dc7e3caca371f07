"""Estimates and plans over HTTP: the requested window, and messages for invalid requests."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession

from aggregator.metrics.worker_metrics import WorkerMetrics
from aggregator.records.estimate import EstimateRecord, encode_estimate
from aggregator.views.estimate_history import EstimateHistory
from aggregator.web.server import WebServer
from estimators.planning import expected_std_error
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, T0, changed, estimate_of

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
    assert get("/api/history/fruit?window_start=5") == (
        400,
        {"error": "it takes no parameters, got 'window_start'"},
    )


def test_no_estimate_yet_is_no_content() -> None:
    assert get("/api/estimates/place", NEWEST) == (204, None)


@pytest.mark.parametrize("query", ["", f"?window_start={T0}"])
def test_unread_topic_is_not_reported_as_empty(query: str) -> None:
    """Nor is an older one; for a collection already found, the newest is returned."""
    reason = "the topic of estimates is still being read; ask again in a moment"
    expected = (503, {"error": reason})
    assert get(f"/api/estimates/place{query}", NEWEST, sought=["place"]) == expected
    assert get(f"/api/estimates/fruit{query}", NEWEST, sought=["fruit"]) == expected
    assert get(f"/api/estimates/fruit{query}", NEWEST, sought=["place"])[0] == 200


@pytest.mark.parametrize("start", ["-1", "1.5", "x", "", "9" * 20, "%D9%A1"])
def test_invalid_window_start_is_refused(start: str) -> None:
    status, body = get(f"/api/estimates/fruit?window_start={start}", NEWEST)
    assert status == 400
    assert body["error"].startswith("window_start must be unix seconds, a whole number, got '")


@pytest.mark.parametrize(
    ("path", "names", "given"),
    [
        ("estimates/fruit?window=5", "window_start", "window"),
        ("estimates/fruit?window_start=5&window_start=6", "window_start", "window_start, window_start"),
        ("plan?collection=fruit&n=5", "collection and reports", "collection, n"),
        ("plan?collection=fruit&collection=place", "collection and reports", "collection, collection"),
    ],
)
def test_other_parameters_and_repeated_ones_are_refused(path: str, names: str, given: str) -> None:
    expected = {"error": f"parameters are {names}, each at most once, got '{given}'"}
    assert get(f"/api/{path}", NEWEST) == (400, expected)


def test_unknown_window_or_collection_is_not_found() -> None:
    asked = "/api/estimates/fruit?window_start=7"
    known = f"unknown window; known are 2, which start from {T0 - 10} to {T0}, unix seconds"
    assert get(asked, OLDER, NEWEST) == (404, {"error": known})
    assert get(asked) == (404, {"error": "unknown window; none is known yet"})
    assert get("/api/estimates/%3Cscript%3E") == (
        404,
        {"error": "unknown collection; there are: fruit, place"},
    )


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


@pytest.mark.parametrize("reports", ["0", "-1", "x", "", "1e3", "1000000000000000001", "9" * 5000])
def test_invalid_plan_is_refused(reports: str) -> None:
    status, body = get(f"/api/plan?collection=fruit&reports={reports}")
    assert status == 400
    assert body["error"].startswith("reports must be a whole number in [1, 1000000000000000000], got '")
    assert len(body["error"]) < 110


def test_plan_without_collection_is_refused() -> None:
    assert get("/api/plan?reports=7") == (400, {"error": "give a collection; there are: fruit, place"})


@pytest.mark.parametrize("query", ["?collection=", "?collection=grape&reports=7"])
def test_plan_of_an_unknown_collection_is_not_found(query: str) -> None:
    assert get(f"/api/plan{query}") == (404, {"error": "unknown collection; there are: fruit, place"})
