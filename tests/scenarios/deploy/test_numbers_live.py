"""Grafana's panels of numbers on a real Prometheus that scrapes the estimates of two windows of a number."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, start_http_server

from deniable.aggregator.estimation.window_estimate import estimate, record_of
from deniable.aggregator.metrics.definitions import EDGES_SHOWN
from deniable.aggregator.metrics.estimate_metrics import EstimateMetrics
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.deploy.monitoring.dashboards.files import FOLDER
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import T0
from tests.support.deploy.prometheus_server import Prometheus, Span, program, scraping
from tests.support.deploy.promql import EVERYTHING, queries
from tests.support.processes import wait_until

AIR = Collection("air-time", SquareWave.from_epsilon(0, 640, 256, 4.0), window_seconds=10)
PANELS = ("Distribution", "Mean", "Quantiles", "Lower ends of the quantiles", "Upper ends of the quantiles")
REPORTS = 100_000
SCRAPED_SECONDS = 30

pytestmark = [pytest.mark.all, pytest.mark.timeout(180)]


class Watched(NamedTuple):
    """A Prometheus that has seen a window of low numbers, then one of high numbers."""

    prometheus: Prometheus
    first: Span
    second: Span


def record(window: int, numbers: slice) -> EstimateRecord:
    """The estimate of a window whose numbers are spread evenly over some steps, of expected counts."""
    truth = np.zeros(256)
    truth[numbers] = 1
    counts = np.rint(AIR.mechanism.channel @ (truth / truth.sum()) * REPORTS).astype(np.int64)
    counted = WindowCounts(counts[np.newaxis], np.array([counts.sum()]), 10, 0)
    return record_of(AIR, T0 + 10 * window, counted, estimate(AIR, counted), final=True)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    program()
    registry = CollectorRegistry()
    metrics = EstimateMetrics([AIR.name], registry)
    server, thread = start_http_server(0, "127.0.0.1", registry)
    folder = tmp_path_factory.mktemp("numbers")
    rules = folder / "rules"
    rules.mkdir()
    try:
        with scraping([f"127.0.0.1:{server.server_port}"], rules, folder) as prometheus:
            spans = [shown(prometheus, metrics, record(window, part)) for window, part in PARTS.items()]
            yield Watched(prometheus, *spans)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


#: Where the numbers of a window are: in the lowest quarter of the range, then in the highest.
PARTS = {0: slice(0, 64), 1: slice(192, 256)}


def shown(prometheus: Prometheus, metrics: EstimateMetrics, estimated: EstimateRecord) -> Span:
    """Show an estimate until it was scraped; return the time from then on, of a second."""
    metrics.show(estimated)
    starts = "max(deniable_estimate_window_start_timestamp_seconds)"

    def is_scraped() -> bool:
        now = time.time()
        return prometheus.numbers(starts, Span(now, now)) == [estimated.window_start]

    assert wait_until(is_scraped, SCRAPED_SECONDS)
    now = time.time()
    return Span(now, now)


def test_every_panel_of_numbers_returns_data(watched: Watched) -> None:
    asked = [query for query in queries(FOLDER) if query.panel in PANELS]
    assert {query.panel for query in asked} == set(PANELS)
    assert [q for q in asked if not watched.prometheus.numbers(q.expression, watched.second)] == []
    others = queries(FOLDER, {**EVERYTHING, "$collection": "another"})
    of_others = [query for query in others if query.panel in PANELS]
    assert not any(watched.prometheus.numbers(q.expression, watched.second) for q in of_others)


def test_a_column_of_the_heat_map_is_the_windows_distribution(watched: Watched) -> None:
    """As Grafana draws it: differences of the cumulative shares, in the order of their edges."""
    (query,) = [each for each in queries(FOLDER) if each.panel == "Distribution"]
    for span, is_low in ((watched.first, True), (watched.second, False)):
        series = watched.prometheus.ask("query", query=query.expression, time=span.end)["result"]
        assert [set(each["metric"]) for each in series] == [{"le"}] * EDGES_SHOWN
        below = sorted((float(each["metric"]["le"]), float(each["value"][1])) for each in series)
        assert [edge for edge, _ in below] == [20.0 * place for place in range(1, EDGES_SHOWN + 1)]
        shares = np.diff([share for _, share in below], prepend=0)
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1)
        quarters = shares.reshape(4, -1).sum(axis=1)
        assert quarters[0 if is_low else 3] > 0.9


def test_the_heat_map_is_one_to_grafana() -> None:
    """It is given cumulative buckets, and does not make buckets of its own of them."""
    dashboard = json.loads(Path(FOLDER, "estimates.json").read_text(encoding="utf-8"))
    (panel,) = [each for each in dashboard["panels"] if each["type"] == "heatmap"]
    (target,) = panel["targets"]
    assert panel["options"]["calculate"] is False
    assert (target["format"], target["legendFormat"]) == ("heatmap", "{{le}}")
