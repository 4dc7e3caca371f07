"""The counters that Prometheus scrapes, under the names that dashboards use."""

from prometheus_client import CollectorRegistry

from deniable.producers.budget import charging
from deniable.producers.metrics import counters, definitions
from deniable.producers.metrics.collector import ProducerMetrics
from deniable.producers.metrics.counters import Backlog, Receipt, ReportTotals


def test_receipts_add_up():
    assert Receipt(1, 2, 3, 4) + Receipt(stored=10, pending=5) == Receipt(11, 2, 3, 9)


def test_every_reason_to_refuse_is_shown_from_the_start():
    """Prometheus sees no increase in a series that begins with its first refusal."""
    assert {*charging.REASONS.values(), "too_early"} == set(definitions.REASONS)
    registry = CollectorRegistry()
    registry.register(ProducerMetrics(["carrier"], ReportTotals(["carrier"]).counters))
    for reason in definitions.REASONS:
        labels = {"collection": "carrier", "reason": reason}
        assert registry.get_sample_value("deniable_producer_refused_total", labels) == 0


def test_every_counter_is_shown_under_its_name():
    totals = ReportTotals(["carrier", "latency"])
    registry = CollectorRegistry()
    registry.register(ProducerMetrics(["latency", "carrier"], totals.counters))
    totals.settled("latency", 100, {"over_window": 3, "over_budget": 2, "too_late": 0})
    totals.drop("latency", 7)
    totals.acknowledged("latency", 60, 6000, expired=False)
    totals.acknowledged("latency", 20, 2000, expired=True)
    totals.acknowledged(None, 5, 500, expired=False)
    totals.left(Backlog(packs=4, bytes=512, seconds=1.5))
    totals.spent({"carrier": 0.25})

    def shown(name, **labels):
        return registry.get_sample_value(f"deniable_producer_{name}", labels)

    results = {
        result: shown("reports_total", collection="latency", result=result)
        for result in ("stored", "acknowledged", "dropped", "expired", "refused")
    }
    assert results == {"stored": 100, "acknowledged": 80, "dropped": 7, "expired": 20, "refused": 5}
    assert shown("reports_total", collection="carrier", result="stored") == 0
    assert shown("refused_total", collection="latency", reason="over_window") == 3
    assert shown("refused_total", collection="latency", reason="over_budget") == 2
    assert shown("refused_total", collection="carrier", reason="too_early") == 0
    assert (shown("packs_total"), shown("sent_bytes_total")) == (3, 8500)
    assert (shown("outbox_packs"), shown("outbox_bytes"), shown("outbox_age_seconds")) == (4, 512, 1.5)
    assert shown("budget_used_ratio", collection="carrier") == 0.25
    labels = {key for metric in registry.collect() for sample in metric.samples for key in sample.labels}
    assert labels == {"collection", "result", "reason"}
    assert totals.dropped() == 7


def test_pack_is_stalled_from_when_it_began_to_wait(monkeypatch):
    """Even if the outbox is rarely measured: acknowledged packs no longer wait."""
    now = [0.0]
    monkeypatch.setattr(counters.time, "monotonic", lambda: now[0])
    totals = ReportTotals(["carrier"])
    now[0] = 40.0
    totals.left(Backlog(1, 100, 0.0))
    assert totals.standstill_seconds() == 0
    now[0] = 50.0
    assert totals.standstill_seconds() == 10
    totals.acknowledged("carrier", 1, 100, expired=False)
    now[0] = 90.0
    assert (totals.sendable(), totals.standstill_seconds()) == (0, 0)
    totals.left(Backlog(2, 200, 0.0))
    now[0] = 95.0
    assert (totals.sendable(), totals.standstill_seconds()) == (2, 5)
