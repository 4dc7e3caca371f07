"""`deniable aggregate --otlp`: where to, how often, and what happens while the collector is away."""

import sys
from functools import partial

import click
import pytest
from prometheus_client import CollectorRegistry, Counter
from structlog.testing import capture_logs

from deniable.deploy.services.aggregate import otlp_export
from deniable.deploy.services.aggregate.otlp_export import OtlpExport, endpoint_of, interval_seconds
from tests.support.messages import PinMessages

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


def test_messages_of_addresses(pin_messages: PinMessages) -> None:
    """A password in the address is not repeated."""
    addresses = {
        "no scheme": "127.0.0.1:4318",
        "another scheme": "grpc://h:4317",
        "no host": "http://",
        "half a bracket": "http://[",
        "a query": "http://h?x=1",
        "a password": "http://me:secret@h:4318",
    }
    pin_messages({what: partial(endpoint_of, CONTEXT, OPTION, given) for what, given in addresses.items()})
    with pytest.raises(click.BadParameter) as refused:
        endpoint_of(CONTEXT, OPTION, addresses["a password"])
    assert "secret" not in refused.value.message


def test_interval_is_the_variable_of_the_standard(pin_messages: PinMessages) -> None:
    assert interval_seconds({}) == 60
    assert interval_seconds({"OTEL_METRIC_EXPORT_INTERVAL": "2500"}) == 2.5
    pin_messages(
        {
            f"an interval of '{given}'": partial(interval_seconds, {"OTEL_METRIC_EXPORT_INTERVAL": given})
            for given in ("0", "1s", "-5", "99", "")
        }
    )


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    with pytest.raises(click.ClickException) as refused:
        OtlpExport(CollectorRegistry(), "http://127.0.0.1:9/v1/metrics", 60)
    assert "'deniable[worker,otlp]'" in refused.value.message


@pytest.mark.slow
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
