"""Metric definitions: rules for names and units, the table in docs, and what is really exported."""

import re
from collections.abc import Callable, Iterable, Iterator

import pytest
from prometheus_client import CollectorRegistry

from deniable.aggregator.estimation.window_states import STATES
from deniable.aggregator.metrics import definitions as of_workers
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.deploy.monitoring.metrics_table import BEGIN, END, METRICS, table, with_table
from deniable.edge.metrics import definitions as of_edges
from deniable.edge.metrics.counters import EdgeCounters
from deniable.producers.metrics import definitions as of_producers
from deniable.producers.metrics.collector import ProducerMetrics
from deniable.producers.metrics.counters import ReportTotals
from deniable.protocol.metric import CounterMetric, HistogramMetric, Metric, declared_in
from deniable.protocol.wire import GROUP_REASONS as REASONS
from deniable.relay.service import definitions as of_relays
from deniable.relay.service.metrics import RelayMetrics
from tests.support.messages import PinMessages
from tests.support.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "metrics.md"
LABELS = {"collection", "edge", "level", "partition", "path", "reason", "result", "state", "status", "value"}

#: What Prometheus calls units must be base units; so no other word for one may stand in a name.
NO_BASE_UNITS = {"ms", "milliseconds", "minutes", "hours", "kb", "mib", "percent", "count", "sum", "bucket"}


def of_worker() -> CollectorRegistry:
    return WorkerMetrics({}).registry


def of_producer() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(ProducerMetrics([], ReportTotals([]).counters))
    return registry


def of_edge() -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(EdgeCounters(REASONS))
    return registry


def of_relay() -> CollectorRegistry:
    return RelayMetrics({}).registry


def of_metrics(is_right: Callable[[Metric], object]) -> str:
    """Return the names of metrics that break a rule, a line each."""
    assert METRICS
    return "\n".join(metric.exposed for metric in METRICS if not is_right(metric))


def test_names_keep_the_rules_of_prometheus() -> None:
    """A word for a unit in a name is a base unit, and declared."""

    def is_right(metric: Metric) -> bool:
        words = set(metric.exposed.split("_"))
        return bool(
            re.fullmatch(r"deniable(_[a-z]+)+", metric.exposed)
            and metric.exposed.endswith("_total") == isinstance(metric, CounterMetric)
            and metric.exposed.removesuffix("_total").endswith(metric.unit)
            and NO_BASE_UNITS.isdisjoint(words)
            and ({"seconds", "bytes", "ratio", "nats"}.isdisjoint(words) or metric.unit)
        )

    wrong = of_metrics(is_right)
    assert wrong == "", wrong


def test_metrics_are_explained_in_sentences() -> None:
    wrong = of_metrics(
        lambda metric: (
            re.fullmatch(r"[A-Z0-9][^|\n]*\.", metric.meaning)
            and re.fullmatch(r"([^|\n]*\.)?", metric.remedy)
        )
    )
    assert wrong == "", wrong


def test_labels_are_known_and_buckets_sorted() -> None:
    """Nothing that came from input is a label."""
    wrong = of_metrics(
        lambda metric: (
            set(metric.labels) <= LABELS
            and (
                not isinstance(metric, HistogramMetric) or list(metric.buckets) == sorted(set(metric.buckets))
            )
        )
    )
    assert wrong == "", wrong


def test_names_are_distinct() -> None:
    assert len({metric.exposed for metric in METRICS}) == len(METRICS)


def test_names_of_a_room_begin_alike() -> None:
    rooms = {"producer_": of_producers, "edge_": of_edges, "relay_": of_relays}
    for beginning, room in rooms.items():
        others = {metric.name for metric in declared_in(room) if not metric.name.startswith(beginning)}
        # An epsilon begins with its word, whoever exports it.
        assert others <= {"epsilon_shuffled"}
    assert not any(metric.name.startswith(tuple(rooms)) for metric in declared_in(of_workers))


def test_states_of_windows_are_reported() -> None:
    assert all(re.search(rf"\b{state}\b", of_workers.WINDOWS.meaning) for state in STATES)


def declared(metrics: Iterable[Metric]) -> set[tuple[str, str, str, tuple[str, ...]]]:
    return {(m.exposed.removesuffix("_total"), m.kind, m.help, m.labels) for m in metrics}


def shown(registry: CollectorRegistry) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """Name, kind, help and labels of each metric of a registry, be there samples or not."""
    for collector in list(registry._collector_to_names):
        labels = getattr(collector, "_labelnames", None)
        for family in collector.collect():
            given = getattr(family, "_labelnames", ()) if labels is None else labels
            yield family.name, family.type, family.documentation, tuple(given)


def test_exported_metrics_equal_the_definitions() -> None:
    """Every exported metric is defined and exported once, and every defined metric is exported."""
    pairs = [
        (of_worker(), of_workers),
        (of_producer(), of_producers),
        (of_edge(), of_edges),
        (of_relay(), of_relays),
    ]
    wrong = []
    for registry, catalogue in pairs:
        found = list(shown(registry))
        assert found, catalogue.__name__
        differing = (set(found) ^ declared(declared_in(catalogue))) | {
            each for each in found if found.count(each) > 1
        }
        wrong += [f"{catalogue.__name__}: {name}" for name, *_ in differing]
    assert wrong == [], "\n".join(wrong)


def test_table_in_docs_matches_definitions() -> None:
    """`make metrics` writes it."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_table(text) == text


def test_the_table_has_a_row_for_each_metric() -> None:
    rows = table().splitlines()[2:]
    assert [row.split("`")[1].split("{")[0] for row in rows] == [metric.exposed for metric in METRICS]
    assert all(row.count("|") == 5 for row in rows)
    assert "| `deniable_reports_total{collection,result}` | counter | " in table()


def test_other_text_is_kept() -> None:
    assert with_table(f"before\n{BEGIN}\nold\n{END}\nafter\n") == f"before\n{BEGIN}\n{table()}{END}\nafter\n"


def test_a_text_without_its_place_is_refused(pin_messages: PinMessages) -> None:
    for text in ("", BEGIN, END, f"{END} {BEGIN}"):
        with pytest.raises(ValueError, match=BEGIN):
            with_table(text)
    pin_messages({"a text without marks": lambda: with_table("")})
