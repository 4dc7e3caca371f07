"""What OTLP carries is what `/metrics` shows, by the protocol's own decoder."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from deniable.aggregator.metrics import definitions
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, PLACE, changed, estimate_of

pytest.importorskip("opentelemetry.sdk", reason="the extra otlp is not installed")

from opentelemetry.sdk.resources import Resource

from deniable.aggregator.metrics.otlp_families import UNITS, metrics_data
from tests.support.aggregator.otlp import decoded, samples_of

STARTED, NOW = 1_000_000_000, 2_000_000_000
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(registry: CollectorRegistry) -> Samples:
    """Every sample of `/metrics`, by name and labels, as Prometheus parses it."""
    families = text_string_to_metric_families(generate_latest(registry).decode())
    samples = [each for family in families for each in family.samples]
    return {(each.name, frozenset(each.labels.items())): each.value for each in samples}


def exported(registry: CollectorRegistry) -> Any:
    return decoded(metrics_data(registry, Resource({"service.name": "test"}), STARTED, NOW))


@pytest.fixture
def metrics() -> WorkerMetrics:
    """With counters, gauges, histograms, and estimates, one of which has no error."""
    found = WorkerMetrics(COLLECTIONS)
    found.packs.labels("counted").inc(7)
    for seconds in (0.001, 0.3, 70.0):
        found.checkpoint_seconds.observe(seconds)
    found.show_estimate(changed(estimate_of(FRUIT), std_error=[None, 0.1, 0.2]))
    found.show_estimate(estimate_of(PLACE))
    found.lag.labels("1").set(12)
    return found


def test_otlp_has_every_sample_of_a_scrape(metrics: WorkerMetrics) -> None:
    """Estimates included, to the last digit, an infinite error too; buckets add up to the same."""
    found = {
        each: value for each, value in scraped(metrics.registry).items() if not each[0].endswith("_created")
    }
    assert samples_of(exported(metrics.registry)) == found
    assert len(found) > 100


def test_totals_are_cumulative_since_the_start(metrics: WorkerMetrics) -> None:
    by_name = {each.name: each for each in exported(metrics.registry)}
    packs, lag = by_name["deniable_packs_total"], by_name["deniable_lag_records"]
    assert (packs.sum.is_monotonic, packs.sum.aggregation_temporality) == (True, 2)  # cumulative
    times = {(each.start_time_unix_nano, each.time_unix_nano) for each in packs.sum.data_points}
    assert times == {(STARTED, NOW)}
    assert {each.time_unix_nano for each in lag.gauge.data_points} == {NOW}
    assert by_name["deniable_checkpoint_seconds"].histogram.aggregation_temporality == 2


def test_units_and_meanings_are_those_of_the_definitions(metrics: WorkerMetrics) -> None:
    by_name = {each.name: each for each in exported(metrics.registry)}
    for metric in (definitions.CHECKPOINT, definitions.LAG, definitions.ESTIMATE_LOW, definitions.PACKS):
        found = by_name[metric.exposed]
        assert (found.unit, found.description) == (UNITS[metric.unit], metric.help)


def test_series_without_samples_are_left_out() -> None:
    registry = CollectorRegistry()
    Counter("empty_total", "Nothing yet.", ["name"], registry=registry)
    assert list(exported(registry)) == []
