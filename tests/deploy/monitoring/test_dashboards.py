"""Grafana's dashboards: files are current, queries can be answered, panels have descriptions."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import promql_parser

from deniable.aggregator.metrics import definitions as of_workers
from deniable.deploy.monitoring.dashboards.files import FOLDER, written
from deniable.deploy.monitoring.metrics_table import METRICS
from deniable.producers.metrics import definitions as of_producers
from deniable.protocol.metric import declared_in
from tests.support.deploy.promql import EVERYTHING, Query, labels_of, queries, samples
from tests.support.messages import PinMessages

SERIES = samples(METRICS)
QUERIES = tuple(queries(FOLDER))
DASHBOARDS = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
PANELS = [
    (name, panel)
    for name, dashboard in sorted(DASHBOARDS.items())
    for panel in dashboard["panels"]
    if panel["type"] != "row"
]


def variables(dashboard: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in dashboard["templating"]["list"]}


def of_panels(is_wrong: Callable[[str, dict[str, Any]], bool]) -> str:
    """Return the dashboards and titles of panels that break a rule, a line each."""
    assert PANELS
    return "\n".join(f"{name}: {panel['title']}" for name, panel in PANELS if is_wrong(name, panel))


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


def fault(query: Query) -> str | None:
    """What is wrong: it does not parse, or it or its legend names a metric or a label that does not exist."""
    try:
        labels = labels_of(promql_parser.parse(query.expression), SERIES) or set()
    except ValueError as error:
        return str(error)
    unknown = set(re.findall(r"{{(\w+)}}", query.legend)) - labels
    return f"the legend names {', '.join(sorted(unknown))}" if unknown else None


def test_queries_can_be_answered() -> None:
    """They parse, and name metrics of the catalogue and labels that they have; so do their legends."""
    assert QUERIES
    wrong = [f"{each.dashboard}, {each.panel}: {said}" for each in QUERIES if (said := fault(each))]
    assert wrong == [], "\n".join(wrong)


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


def test_a_legend_names_labels_that_exist() -> None:
    assert fault(Query("", "", "sum(deniable_lag_records)", "{{job}}")) == "the legend names job"
    assert fault(Query("", "", "sum(", ""))


def test_labels_of_a_result_are_known() -> None:
    expression = "histogram_quantile(0.5, sum by (le) (rate(deniable_estimate_seconds_bucket[1m]))) * 2"
    assert labels_of(promql_parser.parse(expression), SERIES) == set()
    assert labels_of(promql_parser.parse("time() - deniable_lag_records"), SERIES) == {
        "partition",
        "job",
    }
    without = "sum without (state) (deniable_windows) > 1"
    assert labels_of(promql_parser.parse(without), SERIES) == {"collection", "job"}


def test_panels_ask_a_question_and_have_a_unit() -> None:
    """The description begins with the question."""

    def lacks(_: str, panel: dict[str, Any]) -> bool:
        is_question = re.match(r"[A-Z][^.]*\?", panel["description"])
        return not (is_question and panel["fieldConfig"]["defaults"]["unit"] and panel["targets"])

    wrong = of_panels(lacks)
    assert wrong == "", wrong


def test_panels_ask_the_chosen_prometheus() -> None:
    """And name only variables of their dashboard."""
    known = {
        name: {*(f"${variable}" for variable in variables(dashboard)), "$__rate_interval", "$1"}
        for name, dashboard in DASHBOARDS.items()  # $1 of label_replace: no variable has a number for a name
    }

    def asks_another(name: str, panel: dict[str, Any]) -> bool:
        sources = [each["datasource"] for each in (panel, *panel["targets"])]
        named = {each for target in panel["targets"] for each in re.findall(r"\$\w+", target["expr"])}
        chosen = {"type": "prometheus", "uid": "${datasource}"}
        return any(source != chosen for source in sources) or not named <= known[name]

    wrong = of_panels(asks_another)
    assert wrong == "", wrong


def test_the_chosen_deployment_is_asked() -> None:
    """For every series of every query, and of every choice but that of the deployment."""
    wrong = []
    for name, dashboard in DASHBOARDS.items():
        found = variables(dashboard)
        choices = [found[label]["query"]["query"] for label in found.keys() - {"datasource", "job"}]
        shown = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
        assert choices, name
        assert shown, name
        for asked in [*choices, *shown]:
            series = re.findall(r"\bdeniable_\w+", asked)
            if not series or re.findall(r'\b(deniable_\w+)\{job=~"\$job"[,}]', asked) != series:
                wrong.append(f"{name}: {asked}")
    assert wrong == [], "\n".join(wrong)


def test_the_chosen_collections_are_asked() -> None:
    """For every series that has collections, but one that is divided by packs of all of them."""
    asked = {
        f"{query.dashboard}, {query.panel}: {name}": (name, 'collection=~"$collection"' in matchers)
        for query in queries(FOLDER, {})
        for name, matchers in re.findall(r"\b(deniable_\w+)\{([^}]*)}", query.expression)
    }
    wrong = [where for where, (name, narrowed) in asked.items() if narrowed != ("collection" in SERIES[name])]
    assert wrong == ["deniable: pipeline health, Reports in a pack: deniable_producer_reports_total"]


#: Shares of values, of `other` and of margins, and the ends of their intervals.
ENDS = r"\bdeniable_estimate_(?!below)\w+_ratio\b"


def test_ends_of_an_interval_are_those_of_the_record() -> None:
    """Nothing is added to an estimate or taken from it."""
    shares = [query for query in QUERIES if re.search(ENDS, query.expression)]
    only = r"max by \(\w+\) \(\w+\{[^}]*\}\)"
    changed = [query.expression for query in shares if not re.fullmatch(only, query.expression)]
    assert changed == [], "\n".join(changed)
    for end in ("low", "high"):
        name = f"deniable_estimate_{end}_ratio"
        assert {query.panel for query in shares if name in query.expression} == {"Estimates", "$value"}


def test_panels_have_unique_ids_and_do_not_overlap() -> None:
    wrong = []
    for name, dashboard in DASHBOARDS.items():
        panels = dashboard["panels"]
        places = [panel["gridPos"] for panel in panels]
        cells = [
            (place["x"] + across, place["y"] + down)
            for place in places
            for across in range(place["w"])
            for down in range(place["h"])
        ]
        assert cells, name
        if [panel["id"] for panel in panels] != list(range(1, len(panels) + 1)):
            wrong.append(f"{name}: ids")
        if len(set(cells)) != len(cells) or max(across for across, _ in cells) >= 24:
            wrong.append(f"{name}: places")
    assert wrong == [], "\n".join(wrong)


def test_choices_are_labels_of_metrics() -> None:
    wrong = []
    for name, dashboard in DASHBOARDS.items():
        found = variables(dashboard)
        assert found.pop("datasource")["query"] == "prometheus", name
        assert list(found)[:2] == ["job", "collection"], f"{name}: the one narrows the other"
        assert not found["job"].get("multi"), f"{name}: deployments have collections of the same names"
        for label, variable in found.items():
            query = variable["query"]["query"].replace("$collection", ".*").replace("$job", ".*")
            series, asked = re.fullmatch(r"label_values\((.*), (\w+)\)", query).groups()
            if asked != label or label not in labels_of(promql_parser.parse(series), SERIES):
                wrong.append(f"{name}: {label}")
    assert wrong == [], "\n".join(wrong)


def test_every_metric_is_on_a_dashboard() -> None:
    """Of workers and producers; relays have none yet."""
    shown = " ".join(query.expression for query in QUERIES)
    present = (*declared_in(of_workers), *declared_in(of_producers))
    missing = [m.exposed for m in present if not re.search(rf"\b{m.exposed}(_bucket)?\b", shown)]
    assert present
    assert missing == [], "\n".join(missing)


def test_queries_are_what_prometheus_is_asked(tmp_path: Path) -> None:
    target = {"expr": 'rate(a{collection=~"$collection"}[$__rate_interval])', "legendFormat": "{{b}}"}
    rows = [{"title": "row"}, {"title": "panel", "targets": [target]}]
    (tmp_path / "one.json").write_text(json.dumps({"title": "dashboard", "panels": rows}), encoding="utf-8")
    everything = Query("dashboard", "panel", 'rate(a{collection=~".*"}[1m])', "{{b}}")
    assert list(queries(tmp_path)) == [everything]
    chosen = queries(tmp_path, {**EVERYTHING, "$collection": "carrier"})
    assert [query.expression for query in chosen] == ['rate(a{collection=~"carrier"}[1m])']
