"""Metrics of a worker: label values come from the collection file or a fixed list."""

from dataclasses import replace

from prometheus_client.samples import Sample

from deniable.aggregator.estimation.window_states import STATES
from deniable.aggregator.ledger.acceptance import REASONS, Rejection
from deniable.aggregator.ledger.outcomes import PackOutcomes
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from tests.support.aggregator.builders import CHANNEL, COLLECTIONS, FRUIT, PLACE, T0, estimate_of, pack_of


def samples(metrics: WorkerMetrics) -> list[Sample]:
    return [sample for family in metrics.registry.collect() for sample in family.samples]


def used() -> WorkerMetrics:
    """Metrics of a worker after every kind of event."""
    metrics = WorkerMetrics(COLLECTIONS)
    outcomes = PackOutcomes()
    for collection in (FRUIT, PLACE):
        outcomes.count_outcome(pack_of(collection, reports=[0, 1, 2]))
        metrics.show_estimate(estimate_of(collection))
    for reason in REASONS:
        outcomes.count_outcome(Rejection(reason, FRUIT.fingerprint, T0, reports=5))
    outcomes.count_outcome(Rejection("too_late", FRUIT.fingerprint, reports=2))
    outcomes.count_outcome(Rejection("malformed"))
    metrics.count(outcomes)
    metrics.show_progress(2, 10, T0 * 1000 + 500)
    metrics.lag.labels("2").set(3)
    metrics.stalled.labels("2").set(0)
    metrics.resyncs.inc()
    metrics.show_windows({"fruit": dict.fromkeys(STATES, 1)})
    metrics.checkpoint_seconds.observe(0.1)
    return metrics


def test_no_label_contains_input() -> None:
    allowed = {
        "collection": {"fruit", "place"},
        "value": {*FRUIT.labels(), *PLACE.labels()},
        "reason": set(REASONS),
        "result": {"counted", "rejected"},
        "state": set(STATES),
        "partition": {"2"},
    }
    for sample in samples(used()):
        for label, value in sample.labels.items():
            assert label == "le" or value in allowed[label], sample


def test_workers_export_no_epsilon_of_shuffled_reports() -> None:
    """They do not know how many reports were in one order: only relays do."""
    assert not [sample.name for sample in samples(used()) if "shuffled" in sample.name]


def test_packs_and_reports_are_counted() -> None:
    value = used().registry.get_sample_value
    assert value("deniable_packs_total", {"result": "counted"}) == 2
    assert value("deniable_packs_total", {"result": "rejected"}) == len(REASONS) + 2
    assert value("deniable_packs_rejected_total", {"reason": "too_late"}) == 2
    assert value("deniable_packs_rejected_total", {"reason": "duplicate"}) == 1
    assert value("deniable_reports_total", {"collection": "fruit", "result": "counted"}) == 3
    rejected = value("deniable_reports_total", {"collection": "fruit", "result": "rejected"})
    assert rejected == 5 * len(REASONS) + 2
    assert value("deniable_reports_total", {"collection": "place", "result": "rejected"}) == 0


def test_packs_without_a_valid_window_are_counted_separately() -> None:
    assert used().unattributed.packs == {"too_late": 1, "malformed": 1}


def test_counters_start_at_zero() -> None:
    """So that Prometheus sees the first increment as an increase."""
    before, after = samples(WorkerMetrics(COLLECTIONS)), samples(used())
    counters = {(s.name, *s.labels.items()) for s in after if s.name.endswith("_total")}
    assert counters == {(s.name, *s.labels.items()) for s in before if s.name.endswith("_total")}
    assert {s.value for s in before if s.name.endswith("_total")} == {0}


def test_privacy_metrics_are_shown_from_start() -> None:
    plain = replace(PLACE, name="plain", memoize=False)
    metrics = WorkerMetrics({**COLLECTIONS, plain.fingerprint: plain})
    value = metrics.registry.get_sample_value
    for collection in (FRUIT, PLACE, plain):
        shown = value("deniable_epsilon_per_report_nats", {"collection": collection.name})
        assert shown == collection.mechanism.epsilon
    permanent = {s.labels["collection"]: s.value for s in samples(metrics) if "permanent" in s.name}
    assert permanent == {"place": CHANNEL.epsilon_inf}


def test_progress_is_exported_in_seconds_and_removed() -> None:
    metrics = used()
    value = metrics.registry.get_sample_value
    assert value("deniable_position_records", {"partition": "2"}) == 10
    assert value("deniable_watermark_timestamp_seconds", {"partition": "2"}) == T0 + 0.5
    metrics.show_progress(3, 1, 0)
    metrics.forget_partition(2)
    assert {s.labels["partition"] for s in samples(metrics) if "partition" in s.labels} == {"3"}
    metrics.forget_partition(2)


def test_window_metrics_end_with_their_collection() -> None:
    metrics, states = WorkerMetrics(COLLECTIONS), {"open": 2, "late": 1}
    metrics.show_windows({"fruit": states, "place": states})
    metrics.forget_estimate("fruit")
    shown = {
        (s.labels["collection"], s.labels["state"]): s.value for s in samples(metrics) if "state" in s.labels
    }
    assert shown == {("place", "open"): 2, ("place", "late"): 1}
