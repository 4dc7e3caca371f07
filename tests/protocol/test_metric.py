"""Names of metrics, and their registration with Prometheus."""

from types import ModuleType

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric as Family

from deniable.protocol.metric import CounterMetric, GaugeMetric, HistogramMetric, declared_in

COUNTER = CounterMetric(name="sent", unit="bytes", meaning="Bytes.", remedy="none.", labels=("result",))
GAUGE = GaugeMetric(name="lag", unit="records", meaning="Records.")
HISTOGRAM = HistogramMetric(name="wait", unit="seconds", meaning="Waits.", buckets=(1.0, 2.0))


def test_name_has_unit_and_kind() -> None:
    assert [metric.exposed for metric in (COUNTER, GAUGE, HISTOGRAM)] == [
        "deniable_sent_bytes_total",
        "deniable_lag_records",
        "deniable_wait_seconds",
    ]
    assert CounterMetric(name="packs", meaning="Packs.").exposed == "deniable_packs_total"


def test_help_has_the_remedy() -> None:
    assert (COUNTER.help, GAUGE.help) == ("Bytes. Remedy: none.", "Records.")


def test_registered_metrics_have_name_help_and_labels() -> None:
    registry = CollectorRegistry()
    COUNTER.register(registry).labels("sent").inc(3)
    GAUGE.register(registry).set(4)
    HISTOGRAM.register(registry).observe(1.5)
    value = registry.get_sample_value
    assert value("deniable_sent_bytes_total", {"result": "sent"}) == 3
    assert value("deniable_lag_records") == 4
    assert [value("deniable_wait_seconds_bucket", {"le": end}) for end in ("1.0", "2.0", "+Inf")] == [0, 1, 1]
    assert {family.documentation for family in registry.collect()} == {
        "Bytes. Remedy: none.",
        "Records.",
        "Waits.",
    }


def test_family_matches_the_registered_metric() -> None:
    def shown(family: Family) -> tuple[str, str, list[tuple[str, dict[str, str], float]]]:
        samples = [s for s in family.samples if not s.name.endswith("_created")]
        return family.name, family.documentation, [(s.name, s.labels, s.value) for s in samples]

    registry = CollectorRegistry()
    COUNTER.register(registry).labels("sent").inc(3)
    GAUGE.register(registry).set(4)
    counter, gauge = COUNTER.family(), GAUGE.family()
    counter.add_metric(["sent"], 3)
    gauge.add_metric([], 4)
    assert [shown(family) for family in registry.collect()] == [shown(counter), shown(gauge)]


def test_definitions_are_the_metrics_of_a_module() -> None:
    catalogue = ModuleType("catalogue")
    vars(catalogue).update(LIMIT=3, SECOND=GAUGE, FIRST=COUNTER)
    assert declared_in(catalogue) == (GAUGE, COUNTER)
