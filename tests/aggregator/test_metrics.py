"""What Prometheus sees: names, and labels that come from the collection file or from a fixed list."""

from dataclasses import replace

import msgspec
import pytest
from builders import CHANNEL, COLLECTIONS, FRUIT, PLACE, T0, counts_of, estimate_of, pack_of
from prometheus_client.samples import Sample

from aggregator import estimate_record
from aggregator.acceptance import REASONS, Rejection
from aggregator.estimate_record import EstimateRecord
from aggregator.merge import WindowCounts
from aggregator.metrics import VALUES_SHOWN, WorkerMetrics
from aggregator.outcomes import Outcomes
from estimators.krr import KRR


def samples(metrics: WorkerMetrics) -> list[Sample]:
    return [sample for family in metrics.registry.collect() for sample in family.samples]


def used() -> WorkerMetrics:
    """Metrics of a worker that has seen everything."""
    metrics = WorkerMetrics(COLLECTIONS)
    outcomes = Outcomes()
    for collection in (FRUIT, PLACE):
        outcomes.add(pack_of(collection, reports=[0, 1, 2]))
        metrics.show_estimate(estimate_of(collection))
    for reason in REASONS:
        outcomes.add(Rejection(reason, 123456, T0))
    outcomes.add(Rejection("too_late", 123456))
    metrics.count(outcomes)
    metrics.show_progress(2, 10, T0 * 1000 + 500)
    metrics.lag.labels("2").set(3)
    metrics.stalled.labels("2").set(0)
    metrics.resyncs.inc()
    metrics.checkpoint_seconds.observe(0.1)
    return metrics


def test_all_names_begin_alike() -> None:
    assert {sample.name.split("_")[0] for sample in samples(used())} == {"deniable"}


def test_no_label_holds_what_came_from_the_wire() -> None:
    allowed = {
        "collection": {"fruit", "place"},
        "value": {*FRUIT.labels(), *PLACE.labels()},
        "reason": set(REASONS),
        "result": {"counted", "rejected"},
        "partition": {"2"},
    }
    for sample in samples(used()):
        for label, value in sample.labels.items():
            assert label == "le" or value in allowed[label], sample


def test_packs_and_reports_are_counted() -> None:
    value = used().registry.get_sample_value
    assert value("deniable_packs_total", {"result": "counted"}) == 2
    assert value("deniable_packs_total", {"result": "rejected"}) == len(REASONS) + 1
    assert value("deniable_packs_rejected_total", {"reason": "too_late"}) == 2
    assert value("deniable_packs_rejected_total", {"reason": "duplicate"}) == 1
    assert value("deniable_reports_total", {"collection": "fruit"}) == 3


def test_packs_that_lie_in_no_window_are_kept_apart() -> None:
    assert used().strays.packs == {"too_late": 1}


def test_lost_windows_are_told_as_none_from_the_start() -> None:
    """So that Prometheus sees the first one as an increase."""
    value = WorkerMetrics(COLLECTIONS).registry.get_sample_value
    assert value("deniable_windows_lost_total", {"collection": "fruit"}) == 0


def test_privacy_is_told_from_the_start() -> None:
    plain = replace(PLACE, name="plain", memoize=False)
    metrics = WorkerMetrics({**COLLECTIONS, plain.fingerprint: plain})
    value = metrics.registry.get_sample_value
    for collection in (FRUIT, PLACE, plain):
        told = value("deniable_epsilon_per_report_nats", {"collection": collection.name})
        assert told == collection.mechanism.epsilon
    permanent = {s.labels["collection"]: s.value for s in samples(metrics) if "permanent" in s.name}
    assert permanent == {"place": CHANNEL.epsilon_inf}


def test_progress_is_told_in_seconds_and_forgotten() -> None:
    metrics = used()
    value = metrics.registry.get_sample_value
    assert value("deniable_position_records", {"partition": "2"}) == 10
    assert value("deniable_watermark_timestamp_seconds", {"partition": "2"}) == T0 + 0.5
    metrics.show_progress(3, 1, 0)
    metrics.forget_partition(2)
    assert {s.labels["partition"] for s in samples(metrics) if "partition" in s.labels} == {"3"}
    metrics.forget_partition(2)


def values_told(metrics: WorkerMetrics, collection: str) -> dict[str, float]:
    """Frequencies by value."""
    return {
        sample.labels["value"]: sample.value
        for sample in samples(metrics)
        if sample.name == "deniable_estimate_frequency_ratio" and sample.labels["collection"] == collection
    }


def test_an_estimate_takes_the_place_of_the_one_before() -> None:
    metrics, record = WorkerMetrics(COLLECTIONS), estimate_of()
    metrics.show_estimate(changed(record, values=["old", "older", "oldest"]))
    metrics.show_estimate(record)
    assert values_told(metrics, "fruit") == dict(zip(FRUIT.values, record.frequency, strict=True))
    value = metrics.registry.get_sample_value
    error = value("deniable_estimate_std_error_ratio", {"collection": "fruit", "value": "fig"})
    assert error == record.std_error[1]
    assert value("deniable_estimate_reports", {"collection": "fruit"}) == 40
    assert value("deniable_estimate_window_start_timestamp_seconds", {"collection": "fruit"}) == T0


def test_an_estimate_is_forgotten_alone() -> None:
    metrics = WorkerMetrics(COLLECTIONS)
    for collection in (FRUIT, PLACE):
        metrics.show_estimate(estimate_of(collection))
    metrics.forget_estimate("fruit")
    estimates = [s for s in samples(metrics) if s.name.startswith("deniable_estimate_")]
    assert {sample.labels.get("collection") for sample in estimates} == {"place", None}


def changed(record: EstimateRecord, **fields: object) -> EstimateRecord:
    return msgspec.structs.replace(record, **fields)


def test_of_a_large_domain_the_most_frequent_values_are_shown() -> None:
    wide = replace(FRUIT, mechanism=KRR.from_epsilon(100, 2.0), values=(), other=False)
    metrics = WorkerMetrics({wide.fingerprint: wide})
    reports = [value for value in range(100) for _ in range(value)]
    counts = counts_of(wide, reports)
    window = WindowCounts(counts[None], counts.sum(keepdims=True), packs=1, rejected=0)
    result = estimate_record.estimate(wide, window)
    metrics.show_estimate(estimate_record.record_of(wide, T0, window, result, final=True))
    shown = {
        int(s.labels["value"]) for s in samples(metrics) if s.name == "deniable_estimate_frequency_ratio"
    }
    assert shown == set(range(100 - VALUES_SHOWN, 100))


def test_an_error_that_is_not_known_is_infinite() -> None:
    metrics = WorkerMetrics(COLLECTIONS)
    metrics.show_estimate(changed(estimate_of(), std_error=[None] * 3))
    found = metrics.registry.get_sample_value(
        "deniable_estimate_std_error_ratio", {"collection": "fruit", "value": "fig"}
    )
    assert found == pytest.approx(float("inf"))
