"""The real endpoints of a worker and of a producer, held against promtool and the catalogues."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from uuid import uuid4

import pytest
from prometheus_client.parser import text_string_to_metric_families

from deniable.aggregator.metrics import definitions as of_workers
from deniable.aggregator.metrics.change_metrics import FIGURES, MEAN_FIGURES
from deniable.producers.metrics import definitions as of_producers
from deniable.protocol.metric import Metric, declared_in
from tests.support.deployments import Deployment
from tests.support.needed import missing
from tests.support.processes import wait_until

#: Other tests have changes, a growing tree, and lists that lack frequent texts.
ELSEWHERE = (
    *FIGURES,
    *MEAN_FIGURES,
    of_workers.FOUND_TEXTS,
    of_workers.LIST_UNLISTED_TEXTS,
    of_workers.LIST_UNLISTED,
    of_workers.EPSILON_LIFETIME,  # of Bloom RAPPOR there is none: tests/aggregator/metrics has its sample
)
CLIENTS = 600
SETTLE_SECONDS = 120
NUMBER = """\
  - {name: delay, mechanism: number, minimum: 0, maximum: 100, epsilon: 4.0, window_seconds: 3600,
     grace_seconds: 10, budget: none}
"""
PAIR = """\
  - {name: carrier-origin, mechanism: k-rr-pair, epsilon: 4, window_seconds: 3600, grace_seconds: 10,
     fields: [{name: carrier, values: [AA]}, {name: origin, values: [JFK]}], budget: none}
"""
BUDGET = "{epsilon: 8, delta: 1e-6, period_seconds: 86400}"
CANARY = """\
  - {name: canary, mechanism: k-rr, size: 2, other: false, epsilon: 2.0, canary: true, window_seconds: 2,
     grace_seconds: 1, minimum_reports: 500, budget: none}
"""


def findings(metrics: str) -> str:
    """What `promtool check metrics` finds wrong; nothing, if all is well."""
    promtool = shutil.which("promtool")
    if promtool is None:
        missing("promtool is missing: it is in Debian's package prometheus")
    checked = subprocess.run([promtool, "check", "metrics"], input=metrics, capture_output=True, text=True)
    assert (checked.returncode == 0) == (not checked.stderr), checked.stderr
    return checked.stdout + checked.stderr


def test_promtool_finds_what_is_wrong() -> None:
    assert findings("# HELP lag_records Records.\n# TYPE lag_records gauge\nlag_records 1\n") == ""
    assert "milliseconds" in findings(
        "# HELP a_milliseconds A.\n# TYPE a_milliseconds gauge\na_milliseconds 1\n"
    )


def scraped(address: str) -> str:
    """What is served under an address of the form `http://host:port/…`."""
    with closing(HTTPConnection(address.split("/")[2], timeout=60)) as connection:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()


def reported(metrics: str, sample: str) -> bool:
    return re.search(f"^deniable_{sample}", metrics, re.MULTILINE) is not None


@pytest.fixture(scope="module")
def endpoints(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Metrics of a worker and a producer after estimates of five collections."""
    made = Deployment(tmp_path_factory.mktemp("metrics"), broker, f"test-{uuid4().hex[:12]}-")
    file = made.folder / "deniable.yaml"
    collections = file.read_text(encoding="utf-8").replace("budget: none", f"budget: {BUDGET}", 1)
    file.write_text(collections + NUMBER + PAIR + CANARY, encoding="utf-8")
    made.create_topics()
    lines = "".join(f"client-{i},{'AA' if i % 3 else 'B6'}\n" for i in range(CLIENTS))
    (made.folder / "flights.csv").write_text("who,carrier\n" + lines)
    produce = ["produce", "carrier", "--input", "flights.csv", "--field", "carrier", "--clients", "who"]
    with (
        made.running("worker.log", "aggregate", "--web-port", "0"),
        made.running("producer.log", *produce, "--follow", "--metrics-port", "0"),
        made.running("canary.log", "canary", "canary", "--reports", "5000"),
    ):
        for collection, line, fields in (
            ("place", b'{"where": "JFK"}\n', ["--field", "where"]),
            ("delay", b'{"minutes": 12}\n', ["--field", "minutes"]),
            (
                "carrier-origin",
                b'{"carrier": "AA", "origin": "JFK"}\n',
                ["--field", "carrier", "--second-field", "origin"],
            ),
        ):
            options = ("--format", "jsonl", *fields, "--no-clients")
            sent = made.run("produce", collection, *options, given=line * CLIENTS)
            assert sent.returncode == 0, sent.stderr
        worker = made.address("worker.log")
        has_metrics = wait_until(lambda: "metrics: " in made.output("producer.log"), 120)
        assert has_metrics, made.output("producer.log")
        producer = re.findall(r"^metrics: (\S+)$", made.output("producer.log"), re.MULTILINE)[0]
        shown = [
            r'estimate_reports\{collection="carrier"\}',
            r'estimate_reports\{collection="place"\}',
            r'estimate_quantile\{collection="delay",',
            r'estimate_independence_p_value\{collection="carrier-origin"\}',
            r'windows\{collection="carrier",state="final"\} [1-9]',
            r'budget_used_bound_ratio\{collection="carrier"\}',
            r'canary_chi_square\{collection="canary"\}',
        ]

        def missing_samples() -> list[str]:
            metrics = scraped(worker)
            return [each for each in shown if not reported(metrics, each)]

        has_all = wait_until(lambda: missing_samples() == [], SETTLE_SECONDS)
        assert has_all, (missing_samples(), *map(made.output, ("worker.log", "producer.log", "canary.log")))
        acknowledged = f'result="acknowledged"}} {CLIENTS}.0'
        assert wait_until(lambda: acknowledged in scraped(producer), SETTLE_SECONDS)
        yield scraped(worker), scraped(producer)


@pytest.mark.all
@pytest.mark.broker
def test_promtool_finds_nothing_wrong_and_no_client_is_revealed(endpoints: tuple[str, str]) -> None:
    assert [findings(metrics) for metrics in endpoints] == ["", ""]
    assert not any("client-" in metrics for metrics in endpoints)


@pytest.mark.all
@pytest.mark.broker
def test_served_metrics_equal_the_definitions(endpoints: tuple[str, str]) -> None:
    """Names, meanings and labels, and a sample of each metric; nothing changes or grows here."""
    for metrics, catalogue in zip(endpoints, (of_workers, of_producers), strict=True):
        samples = {
            (family.name, family.type, family.documentation, *sorted(sample.labels.keys() - {"le"}))
            for family in text_string_to_metric_families(metrics)
            for sample in family.samples
        }
        assert samples == {declared(metric) for metric in declared_in(catalogue) if metric not in ELSEWHERE}


def declared(metric: Metric) -> tuple[str, ...]:
    return (metric.exposed.removesuffix("_total"), metric.kind, metric.help, *sorted(metric.labels))


@pytest.mark.broker
def test_figures_of_a_budget_are_of_one_client(endpoints: tuple[str, str]) -> None:
    """Epsilon 3 of 8: two reports a day; only the first of each client was sent."""
    worker, producer = endpoints
    assert '\ndeniable_budget_epsilon_nats{collection="carrier"} 8.0\n' in worker
    assert '\ndeniable_budget_reports_bound{collection="carrier"} 2.0\n' in worker
    figures = dict(
        re.findall(r'^deniable_(\w+)\{collection="carrier"\} ([0-9.]+)$', worker + producer, re.MULTILINE)
    )
    used = {name: float(figures[name]) for name in ("budget_used_bound_ratio", "producer_budget_used_ratio")}
    assert 5 / 8 < used["budget_used_bound_ratio"] <= 6 / 8
    assert 2.9 / 8 < used["producer_budget_used_ratio"] <= 3 / 8
