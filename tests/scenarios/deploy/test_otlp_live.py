"""A worker exports by OTLP what it serves at `/metrics`: to us, and through a real collector."""

from pathlib import Path
from urllib.request import urlopen
from uuid import uuid4

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytest.importorskip("opentelemetry.sdk", reason="the extra otlp is not installed")

from tests.support.aggregator.otel_collector import collecting
from tests.support.aggregator.otlp import OtlpRequests, OtlpSamples, metrics_of, otlp_requests, samples_of

pytestmark = [pytest.mark.broker, pytest.mark.slow]

VALUES = ["AA"] * 300 + ["B6"] * 150 + ["9E"] * 50
#: Constant once the window is final.
ESTIMATES = ("deniable_estimate_frequency_ratio", "deniable_estimate_low_ratio", "deniable_estimate_reports")


@pytest.fixture
def deployment(broker: str, tmp_path: Path) -> Deployment:
    found = Deployment(tmp_path, broker, f"test-{uuid4().hex[:12]}-")
    found.create_topics()
    return found


def exported(
    deployment: Deployment, endpoint: int, came: OtlpRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Count 500 reports with a worker that exports each half second, until `came` has their estimate."""
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "500")
    (deployment.folder / "carrier.csv").write_text("\n".join(["carrier", *VALUES]) + "\n")
    options = ("--web-port", "0", "--otlp", f"http://127.0.0.1:{endpoint}")
    with deployment.running("worker.log", "aggregate", *options):
        deployment.wait_until_ready("worker.log")
        sent = deployment.run(
            "produce", "carrier", "--input", "carrier.csv", "--field", "carrier", "--no-clients"
        )
        assert sent.returncode == 0, sent.stderr
        address = deployment.address("worker.log")

        def is_alike() -> bool:
            scraped, found = estimates(address), newest(came)
            return len(scraped) == 7 and {each: found.get(each) for each in scraped} == scraped

        assert wait_until(is_alike, 60), (estimates(address), deployment.output("worker.log"))
        assert counted(newest(came)) == len(VALUES)


def estimates(address: str) -> OtlpSamples:
    with urlopen(f"{address}metrics", timeout=30) as answer:  # noqa: S310 - on loopback
        families = [*text_string_to_metric_families(answer.read().decode())]
    samples = [each for family in families if family.name in ESTIMATES for each in family.samples]
    return {(each.name, frozenset(each.labels.items())): each.value for each in samples}


def newest(came: OtlpRequests) -> OtlpSamples:
    return samples_of(metrics_of(came.requests[-1])) if came.requests else {}


def counted(found: OtlpSamples) -> float:
    labels = frozenset({("collection", "carrier"), ("result", "counted")})
    return found["deniable_reports_total", labels]


def test_worker_exports_estimates_and_its_own_metrics(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the protocol's own decoder reads them, they are what a scrape shows."""
    with otlp_requests() as came:
        exported(deployment, came.port, came, monkeypatch)


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_real_collector_takes_and_passes_on_everything(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with otlp_requests() as came, collecting(deployment.folder, came.port) as receives:
        exported(deployment, receives, came, monkeypatch)


@pytest.mark.all
def test_worker_counts_while_no_collector_answers(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says it once; the worker is ready, counts, and stops in time."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
    with deployment.running("worker.log", "aggregate", "--web-port", "0", "--otlp", "http://127.0.0.1:9"):
        deployment.wait_until_ready("worker.log")
        said = "metrics cannot be exported by OTLP"
        assert wait_until(lambda: said in deployment.output("worker.log"), 30)
    assert deployment.output("worker.log").count(said) == 1
    assert "opentelemetry" not in deployment.output("worker.log")  # each attempt, by the library itself
