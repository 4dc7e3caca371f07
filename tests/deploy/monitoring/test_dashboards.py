"""Grafana's dashboards: files are current, queries can be answered, panels have descriptions."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import promql_parser
import pytest

from aggregator.metrics import definitions as of_workers
from deploy.monitoring.dashboards.files import FOLDER, written
from deploy.monitoring.dashboards.queries import EVERYTHING, Query, queries
from deploy.monitoring.metrics_table import METRICS
from producers.metrics import definitions as of_producers
from producers.metrics.metric import declared_in
from tests.support.deploy.promql import labels_of, samples
from tests.support.messages import PinMessages

SERIES = samples(METRICS)
QUERIES = tuple(queries(FOLDER))
DASHBOARDS = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
PANELS = [
    pytest.param(name, panel, id=f"{name}: {panel['title']}")
    for name, dashboard in sorted(DASHBOARDS.items())
    for panel in dashboard["panels"]
    if panel["type"] != "row"
]


def variables(dashboard: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in dashboard["templating"]["list"]}


def test_the_files_are_current() -> None:
    """`make dashboards` writes them."""
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()} == written()


def test_uids_stay() -> None:
    """Links and bookmarks hold them."""
    assert {name: dashboard["uid"] for name, dashboard in DASHBOARDS.items()} == {
        "health.json": "deniable-health",
        "estimates.json": "deniable-estimates",
        "privacy.json": "deniable-privacy",
        "devices.json": "deniable-devices",
    }


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"{query.dashboard}, {query.panel}")
def test_a_query_can_be_answered(query: Query) -> None:
    """It parses, and names metrics of the catalogue and labels that they have; so does its legend."""
    labels = labels_of(promql_parser.parse(query.expression), SERIES)
    assert set(re.findall(r"{{(\w+)}}", query.legend)) <= (labels or set())


def test_messages(pin_messages: PinMessages) -> None:
    expressions = {
        "a metric is misspelt": "sum(deniable_lags)",
        "a histogram without its suffix": "deniable_estimate_seconds",
        "a label that a metric lacks": 'deniable_lag_records{topic="a"}',
        "by a label that a metric lacks": "max by (collection) (deniable_lag_records)",
        "without a label that a metric lacks": "sum without (le) (deniable_lag_records)",
        "a quantile without buckets": "histogram_quantile(0.5, sum(deniable_estimate_seconds_bucket))",
        "two sides with different labels": "deniable_lag_records / deniable_packs_total",
        "an operator that no dashboard needs": "deniable_lag_records or deniable_stalled",
    }
    pin_messages(
        {
            what: partial(labels_of, promql_parser.parse(expression), SERIES)
            for what, expression in expressions.items()
        }
    )


def test_labels_of_a_result_are_known() -> None:
    expression = "histogram_quantile(0.5, sum by (le) (rate(deniable_estimate_seconds_bucket[1m]))) * 2"
    assert labels_of(promql_parser.parse(expression), SERIES) == set()
    assert labels_of(promql_parser.parse("time() - deniable_lag_records"), SERIES) == {
        "partition",
        "job",
    }
    without = "sum without (state) (deniable_windows) > 1"
    assert labels_of(promql_parser.parse(without), SERIES) == {"collection", "job"}


@pytest.mark.parametrize(("name", "panel"), PANELS)
def test_panel_asks_a_question_and_has_a_unit(name: str, panel: dict[str, Any]) -> None:
    assert re.match(r"[A-Z][^.]*\?", panel["description"]), "the question that it answers"
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["targets"], name


@pytest.mark.parametrize(("name", "panel"), PANELS)
def test_panel_of_one_metric_shows_what_the_catalogue_says(name: str, panel: dict[str, Any]) -> None:
    """Meaning and remedy, unless the panel only counts the series of a metric."""
    shown = " ".join(target["expr"] for target in panel["targets"])
    metrics = [metric for metric in METRICS if re.search(rf"\b{metric.exposed}(_bucket)?\b", shown)]
    if len(metrics) == 1:
        assert metrics[0].help in panel["description"]
    assert metrics, name


@pytest.mark.parametrize(("name", "panel"), PANELS)
def test_a_panel_asks_the_chosen_prometheus(name: str, panel: dict[str, Any]) -> None:
    asked = [panel, *panel["targets"]]
    assert [each["datasource"] for each in asked] == [{"type": "prometheus", "uid": "${datasource}"}] * len(
        asked
    )
    known = {f"${variable}" for variable in variables(DASHBOARDS[name])} | {"$__rate_interval"}
    known |= {"$1"}  # of label_replace; no variable has a number for a name
    assert all(set(re.findall(r"\$\w+", target["expr"])) <= known for target in panel["targets"])


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_chosen_deployment_is_asked(name: str) -> None:
    """For every series of every query, and of every choice but that of the deployment."""
    dashboard = DASHBOARDS[name]
    found = variables(dashboard)
    choices = [found[label]["query"]["query"] for label in found.keys() - {"datasource", "job"}]
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    for asked in [*choices, *shown]:
        series = re.findall(r"\bdeniable_\w+", asked)
        assert re.findall(r'\b(deniable_\w+)\{job=~"\$job"[,}]', asked) == series != [], asked


#: Shares of values, of `other` and of margins, and the ends of their intervals.
ENDS = r"\bdeniable_estimate_(?!below)\w+_ratio\b"


def test_ends_of_an_interval_are_those_of_the_record() -> None:
    """Nothing is added to an estimate or taken from it."""
    shares = [query for query in QUERIES if re.search(ENDS, query.expression)]
    assert all(re.fullmatch(r"max by \(\w+\) \(\w+\{[^}]*\}\)", query.expression) for query in shares)
    for end in ("low", "high"):
        name = f"deniable_estimate_{end}_ratio"
        assert {query.panel for query in shares if name in query.expression} == {"Estimates", "$value"}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_unique_ids_and_do_not_overlap(name: str) -> None:
    panels = DASHBOARDS[name]["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    places = [panel["gridPos"] for panel in panels]
    cells = [
        (place["x"] + across, place["y"] + down)
        for place in places
        for across in range(place["w"])
        for down in range(place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(across for across, _ in cells) < 24


@pytest.mark.parametrize("name", DASHBOARDS)
def test_choices_are_labels_of_metrics(name: str) -> None:
    found = variables(DASHBOARDS[name])
    assert found.pop("datasource")["query"] == "prometheus"
    assert list(found)[:2] == ["job", "collection"], "the one narrows the other"
    assert not found["job"].get("multi"), "deployments have collections and partitions of the same names"
    for label, variable in found.items():
        query = variable["query"]["query"].replace("$collection", ".*").replace("$job", ".*")
        series, asked = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()
        assert asked == label
        assert label in labels_of(promql_parser.parse(series), SERIES)


def test_every_metric_is_on_a_dashboard() -> None:
    """Of workers and producers; relays have none yet."""
    shown = " ".join(query.expression for query in QUERIES)
    present = (*declared_in(of_workers), *declared_in(of_producers))
    assert [m.exposed for m in present if not re.search(rf"\b{m.exposed}(_bucket)?\b", shown)] == []


def test_queries_are_what_prometheus_is_asked(tmp_path: Path) -> None:
    target = {"expr": 'rate(a{collection=~"$collection"}[$__rate_interval])', "legendFormat": "{{b}}"}
    rows = [{"title": "row"}, {"title": "panel", "targets": [target]}]
    (tmp_path / "one.json").write_text(json.dumps({"title": "dashboard", "panels": rows}), encoding="utf-8")
    everything = Query("dashboard", "panel", 'rate(a{collection=~".*"}[1m])', "{{b}}")
    assert list(queries(tmp_path)) == [everything]
    chosen = queries(tmp_path, {**EVERYTHING, "$collection": "carrier"})
    assert [query.expression for query in chosen] == ['rate(a{collection=~"carrier"}[1m])']
