"""The demo on a real broker comes out right; a real Prometheus that scrapes it fills dashboards and rules."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from deniable.deploy.broker.child_processes import last_lines
from deniable.deploy.monitoring.dashboards.files import FOLDER
from tests.support.deploy.prometheus_server import Prometheus, Span, program, scraping
from tests.support.deploy.promql import EVERYTHING, queries
from tests.support.deploy.short_demo import FLIGHTS
from tests.support.paths import REPOSITORY
from tests.support.processes import descendants, wait_until

RULES = FOLDER.parent / "prometheus"
DEMO_SECONDS = 540  # a minute on an idle machine
PROCESSES = 3  # two workers and a producer
DEVICES, OF_DEVICES = "deniable: devices", "deniable_(edge|relay)_"  # see test_devices_live
# Exported after an alarm only; nothing bounds Bloom RAPPOR, the demo's only permanent responses, for ever.
ABSENT = re.compile("deniable_((share|mean)_change|epsilon_lifetime)")

pytestmark = [pytest.mark.broker, pytest.mark.all, pytest.mark.timeout(600)]


class Watched(NamedTuple):
    """A demo that has ended, and a Prometheus that has seen it from its first report to its verdict."""

    output: str
    children: set[int]  # ids of its processes
    prometheus: Prometheus | None  # which still answers; None: not installed
    span: Span


def addresses(log: Path) -> list[str]:
    """Addresses at which workers and producer serve metrics, `host:port`, as the demo has printed so far."""
    message = log.read_text(encoding="utf-8")
    return re.findall(r"^metrics: http://([\d.:]+)/metrics$", message, re.MULTILINE)


@pytest.fixture(scope="module")
def watched(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("demo")
    log = folder / "demo.log"
    command = [sys.executable, "-m", "tests.support.deploy.short_demo", "demo", "--once"]
    with ExitStack() as stack:
        stderr = stack.enter_context(log.open("w"))
        demo = stack.enter_context(
            subprocess.Popen(
                [*command, "--bootstrap-servers", broker],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                cwd=REPOSITORY,
            )
        )
        stack.callback(demo.kill)
        assert wait_until(lambda: len(addresses(log)) >= PROCESSES or demo.poll() is not None, DEMO_SECONDS)
        assert demo.poll() is None, last_lines(log)
        prometheus = None
        if shutil.which("prometheus"):
            prometheus = stack.enter_context(scraping(addresses(log), RULES, folder))
        began, children = time.time(), descendants(demo.pid)
        output, _ = demo.communicate(timeout=DEMO_SECONDS)
        assert demo.returncode == 0, last_lines(log) + output
        yield Watched(output, children, prometheus, Span(began, time.time()))


@pytest.fixture
def prometheus(watched: Watched) -> Prometheus:
    if watched.prometheus is None:
        program()  # skips
    assert watched.prometheus is not None
    return watched.prometheus


def test_demo_counts_exactly_and_leaves_no_process(watched: Watched) -> None:
    assert len(watched.children) == 4  # two workers, an edge, a relay
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in watched.children))
    lines = watched.output.rstrip().splitlines()
    assert lines[-1] == "demo: ok"
    assert "difference: 0" in watched.output
    assert watched.output.count(f"{FLIGHTS:,} reports") == 4
    assert re.search(r"^canary: chi-square of [1-9]\d* final windows, largest ", watched.output, re.MULTILINE)
    (by_devices,) = re.findall(r"^([\d,]+) of the reports came over HTTP", watched.output, re.MULTILINE)
    assert (
        5 / 4 * FLIGHTS < int(by_devices.replace(",", "")) <= 6 / 4 * FLIGHTS + 6
    )  # five or six of a flight


def test_every_process_is_scraped(watched: Watched, prometheus: Prometheus) -> None:
    assert max(prometheus.numbers("sum(up)", watched.span)) == PROCESSES


def test_every_query_returns_data(watched: Watched, prometheus: Prometheus) -> None:
    """No panel of a healthy deployment is empty: events that have not happened are exported as 0.

    Except changes of shares and means, which have series of single values, and those after an alarm only, and
    the bound for values that change.
    """
    of_others = [each for each in queries(FOLDER) if each.dashboard != DEVICES]
    asked = [each for each in of_others if not ABSENT.search(each.expression)]
    empty = [query for query in asked if not prometheus.numbers(query.expression, watched.span)]
    count = f"{len(asked) - len(empty)} of {len(asked)} queries returned data"
    print(f"\n{count}")  # noqa: T201 - the count is what this test is for
    assert empty == [], count


def test_every_choice_has_values(watched: Watched, prometheus: Prometheus) -> None:
    """What Grafana offers for `$collection` and `$value`."""
    for path in FOLDER.glob("*.json"):
        for variable in json.loads(path.read_text(encoding="utf-8"))["templating"]["list"]:
            if variable["type"] == "query":
                query = variable["query"]["query"]
                for name, text in EVERYTHING.items():
                    query = query.replace(name, text)
                asked = re.fullmatch(r"label_values\((.*), (\w+)\)", query)
                assert asked, query
                assert prometheus.label_values(asked[2], asked[1], watched.span), (path.name, query)


def test_every_rule_is_evaluated_and_recorded_series_have_data(
    watched: Watched, prometheus: Prometheus
) -> None:
    rules = prometheus.rules()
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}
    recorded = {
        rule["name"]: rule["query"]
        for rule in rules
        if rule["type"] == "recording" and not re.search(OF_DEVICES, rule["name"])
    }
    empty = [name for name, query in recorded.items() if not prometheus.numbers(query, watched.span)]
    assert recorded
    assert empty == []


def test_no_alert_fires(watched: Watched, prometheus: Prometheus) -> None:
    """All is well in a demo. Alerts that wait for longer than it takes are tried by promtool.

    Flights do change over a year: their mean time is found to in one or two of ten demos, and rightly.
    """
    firing = 'ALERTS{alertstate="firing",alertname!~"Deniable(Share|Mean)Changed"}'
    assert prometheus.label_values("alertname", firing, watched.span) == []


def test_query_that_a_panel_would_not_show_is_found(watched: Watched, prometheus: Prometheus) -> None:
    """Misspelt metrics, labels that match nothing, quotients of nothing, and what is not PromQL."""
    broken = (
        "max(deniable_lags)",
        'max(deniable_lag_records{partition="none"})',
        "deniable_resyncs_total * 0 / 0",
    )
    assert [prometheus.numbers(each, watched.span) for each in broken] == [[], [], []]
    with pytest.raises(ValueError, match=r"parse error: .*"):
        prometheus.numbers("max(", watched.span)
