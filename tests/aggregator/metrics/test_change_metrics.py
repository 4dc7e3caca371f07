"""Exported changes: the newest of each value, until none is left."""

from prometheus_client import CollectorRegistry

from deniable.aggregator.metrics.change_metrics import FIGURES, MEAN_FIGURES, ChangeMetrics
from deniable.aggregator.records.share_change import ShareChange


def change(value: str, since: int, size: float) -> ShareChange:
    return ShareChange(value, since, since + 30, 0.1, 0.1 + size, size, size - 0.01, size + 0.01)


def test_newest_change_of_each_value_is_exported() -> None:
    registry = CollectorRegistry()
    metrics = ChangeMetrics(registry)

    def shown(figure: str, value: str) -> float | None:
        labels = {"collection": "fruit", "value": value}
        return registry.get_sample_value(f"deniable_share_change_{figure}", labels)

    assert shown("ratio", "fig") is None
    metrics.show("fruit", [change("fig", 100, 0.05), change("kiwi", 100, -0.04), change("fig", 300, -0.02)])
    assert [shown("ratio", value) for value in ("fig", "kiwi")] == [-0.02, -0.04]
    assert shown("since_timestamp_seconds", "fig") == 300
    assert (shown("low_ratio", "kiwi"), shown("high_ratio", "kiwi")) == (-0.05, -0.03)
    metrics.show("fruit", [])
    assert shown("ratio", "fig") is None


def test_names_meanings_and_labels_are_those_declared() -> None:
    registry = CollectorRegistry()
    metrics = ChangeMetrics(registry, {"air-time"})
    metrics.show("fruit", [change("fig", 100, 0.05)])
    metrics.show("air-time", [change("mean", 100, 2.5)])
    families = list(registry.collect())
    assert {(family.name, family.type, family.documentation) for family in families} == {
        (each.exposed, each.kind, each.help) for each in (*FIGURES, *MEAN_FIGURES)
    }
    assert [set(sample.labels) for family in families for sample in family.samples] == [
        *({"collection", "value"} for _ in FIGURES),
        *({"collection"} for _ in MEAN_FIGURES),
    ]
    assert registry.get_sample_value("deniable_mean_change", {"collection": "air-time"}) == 2.5
