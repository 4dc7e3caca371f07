"""`deniable aggregate --otlp`: where to, how often, and what happens while the collector is away."""

import sys

import click
import pytest
from prometheus_client import CollectorRegistry, Counter
from structlog.testing import capture_logs

from deploy.services.aggregate import otlp_export
from deploy.services.aggregate.otlp_export import OtlpExport, endpoint_of, interval_seconds

CONTEXT = click.Context(click.Command("aggregate"))
OPTION = click.Option(["--otlp"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
        ("https://collector.example/", "https://collector.example/v1/metrics"),
        ("http://collector.example/otlp/v1/metrics", "http://collector.example/otlp/v1/metrics"),
    ],
)
def test_endpoint_gets_the_path_of_the_protocol(given: str, expected: str) -> None:
    assert endpoint_of(CONTEXT, OPTION, given) == expected
    assert endpoint_of(CONTEXT, OPTION, None) is None


@pytest.mark.parametrize("given", ["127.0.0.1:4318", "grpc://h:4317", "http://", "http://[", "http://h?x=1"])
def test_other_addresses_are_refused(given: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        endpoint_of(CONTEXT, OPTION, given)
    said = f"must be an address of HTTP, such as http://127.0.0.1:4318, got {given!r}"
    assert refused.value.message == said


def test_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(click.BadParameter, match="OTEL_EXPORTER_OTLP_HEADERS") as refused:
        endpoint_of(CONTEXT, OPTION, "http://me:secret@h:4318")
    assert "secret" not in refused.value.message


def test_interval_is_the_variable_of_the_standard() -> None:
    assert interval_seconds({}) == 60
    assert interval_seconds({"OTEL_METRIC_EXPORT_INTERVAL": "2500"}) == 2.5
    for given in ("0", "1s", "-5", "99", ""):
        with pytest.raises(click.ClickException) as refused:
            interval_seconds({"OTEL_METRIC_EXPORT_INTERVAL": given})
        assert refused.value.message == (
            "OTEL_METRIC_EXPORT_INTERVAL must be a whole number of milliseconds from 100 to 99999999, got "
            f"'{given}'"
        )


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    with pytest.raises(click.ClickException) as refused:
        OtlpExport(CollectorRegistry(), "http://127.0.0.1:9/v1/metrics", 60)
    assert refused.value.message.startswith("--otlp needs opentelemetry")
    assert refused.value.message.endswith(": pip install 'deniable[worker,otlp]'")


def test_collector_that_goes_and_returns_is_logged_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures go on where they were: the protocol's totals are cumulative."""
    pytest.importorskip("opentelemetry.sdk", reason="the extra otlp is not installed")
    from tests.support.aggregator.otlp import metrics_of, otlp_requests, samples_of

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20token")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=worker-3,deployment=test")
    registry = CollectorRegistry()
    packs = Counter("deniable_packs_total", "Packs.", registry=registry)
    packs.inc(3)
    with otlp_requests() as collector, capture_logs() as logs:
        export = OtlpExport(registry, f"http://127.0.0.1:{collector.port}/v1/metrics", 60)
        assert export.export()
        collector.status = 400  # not repeated, by the protocol
        assert not export.export()
        assert not export.export()
        packs.inc(2)
        collector.status = 200
        assert export.export()
    assert collector.paths == ["/v1/metrics"] * 4
    assert {each["authorization"] for each in collector.headers} == {"Bearer token"}
    totals = [
        samples_of(metrics_of(each))["deniable_packs_total", frozenset()] for each in collector.requests
    ]
    assert totals == [3, 3, 3, 5]
    assert [each["event"] for each in logs] == [
        "metrics cannot be exported by OTLP; counting goes on",
        "metrics are exported by OTLP again",
    ]
    attributes = collector.requests[0].resource_metrics[0].resource.attributes
    named = {each.key: each.value.string_value for each in attributes}
    assert (named["service.name"], named["service.instance.id"]) == ("deniable-aggregator", "worker-3")
    assert named["deployment"] == "test"


def test_worker_is_named_by_itself_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the extra otlp is not installed")
    monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES", raising=False)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "flights")
    attributes = otlp_export._resource().attributes
    assert attributes["service.name"] == "flights"
    assert ":" in str(attributes["service.instance.id"])
