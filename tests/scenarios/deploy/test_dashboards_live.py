"""Dashboards and rules on a real Prometheus that scrapes workers and producer of the real demo."""

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from deploy.broker.child_processes import last_lines, spawn, stop
from deploy.monitoring.dashboards.files import FOLDER
from deploy.monitoring.dashboards.queries import EVERYTHING, queries
from tests.support.deploy.prometheus_server import Prometheus, Span, program, scraping
from tests.support.processes import wait_until

RULES = FOLDER.parent / "prometheus"
START_SECONDS, DEMO_SECONDS = 90, 240  # 60 to 100 s in all on an idle machine
PROCESSES = 3  # two workers and a producer
DEVICES, OF_DEVICES = "deniable: devices", "deniable_(edge|relay)_"  # see test_devices_live
# Exported after an alarm only; nothing bounds Bloom RAPPOR, the demo's only permanent responses, for ever.
ABSENT = re.compile("deniable_((share|mean)_change|epsilon_lifetime)")

pytestmark = [pytest.mark.broker, pytest.mark.all, pytest.mark.timeout(600)]


class Watched(NamedTuple):
    """A Prometheus that has seen a demo from its first report to its verdict."""

    prometheus: Prometheus
    span: Span


def addresses(log: Path) -> list[str]:
    """Addresses at which workers and producer serve metrics, `host:port`, as the demo has printed so far."""
    message = log.read_text(encoding="utf-8")
    return re.findall(r"^metrics: http://([\d.:]+)/metrics$", message, re.MULTILINE)


@pytest.fixture(scope="module")
def watched(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """The demo, run to its end under the eyes of a Prometheus, which still answers."""
    program()
    folder = tmp_path_factory.mktemp("demo")
    log = folder / "demo.log"
    demo = spawn([sys.executable, "-m", "deploy", "demo", "--once"], log)
    try:
        assert wait_until(lambda: len(addresses(log)) >= PROCESSES, START_SECONDS), last_lines(log)
        with scraping(addresses(log), RULES, folder) as prometheus:
            began = time.time()
            assert demo.wait(DEMO_SECONDS) == 0, last_lines(log)
            yield Watched(prometheus, Span(began, time.time()))
    finally:
        stop([demo])


def test_every_process_is_scraped(watched: Watched) -> None:
    assert max(watched.prometheus.numbers("sum(up)", watched.span)) == PROCESSES


def test_every_query_returns_data(watched: Watched) -> None:
    """No panel of a healthy deployment is empty: events that have not happened are exported as 0.

    Except changes of shares and means, which have series of single values, and those after an alarm only, and
    the bound for values that change.
    """
    of_others = [each for each in queries(FOLDER) if each.dashboard != DEVICES]
    asked = [each for each in of_others if not ABSENT.search(each.expression)]
    empty = [query for query in asked if not watched.prometheus.numbers(query.expression, watched.span)]
    count = f"{len(asked) - len(empty)} of {len(asked)} queries returned data"
    print(f"\n{count}")  # noqa: T201 - the count is what this test is for
    assert empty == [], count


def test_every_choice_has_values(watched: Watched) -> None:
    """What Grafana offers for `$collection` and `$value`."""
    for path in FOLDER.glob("*.json"):
        for variable in json.loads(path.read_text(encoding="utf-8"))["templating"]["list"]:
            if variable["type"] == "query":
                query = variable["query"]["query"]
                for name, text in EVERYTHING.items():
                    query = query.replace(name, text)
                asked = re.fullmatch(r"label_values\((.*), (\w+)\)", query)
                assert asked, query
                assert watched.prometheus.label_values(asked[2], asked[1], watched.span), (path.name, query)


def test_every_rule_is_evaluated_and_recorded_series_have_data(watched: Watched) -> None:
    rules = watched.prometheus.rules()
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}
    recorded = {
        rule["name"]: rule["query"]
        for rule in rules
        if rule["type"] == "recording" and not re.search(OF_DEVICES, rule["name"])
    }
    empty = [name for name, query in recorded.items() if not watched.prometheus.numbers(query, watched.span)]
    assert recorded
    assert empty == []


def test_no_alert_fires(watched: Watched) -> None:
    """All is well in a demo. Alerts that wait for longer than it takes are tried by promtool.

    Flights do change over a year: their mean time is found to in one or two of ten demos, and rightly.
    """
    firing = 'ALERTS{alertstate="firing",alertname!~"Deniable(Share|Mean)Changed"}'
    assert watched.prometheus.label_values("alertname", firing, watched.span) == []


def test_query_that_a_panel_would_not_show_is_found(watched: Watched) -> None:
    """Misspelt metrics, labels that match nothing, quotients of nothing, and what is not PromQL."""
    broken = (
        "max(deniable_lags)",
        'max(deniable_lag_records{partition="none"})',
        "deniable_resyncs_total * 0 / 0",
    )
    assert [watched.prometheus.numbers(each, watched.span) for each in broken] == [[], [], []]
    with pytest.raises(ValueError, match=r"parse error: .*"):
        watched.prometheus.numbers("max(", watched.span)
