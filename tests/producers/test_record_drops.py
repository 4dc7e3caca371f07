"""`record` of a whole producer with a fake Kafka: full buffers, closing, absent stores, dead threads."""

import _thread
import sys
import threading
import time
from collections import Counter

import pytest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.config.settings.budget_database import BudgetDatabase
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.errors import DeliveryError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline.queueing import submission_queue
from deniable.producers.pipeline.recording.event_buffer import FIELDS, EventBuffer
from deniable.producers.pipeline.recording.recorder import Recorder
from deniable.producers.pipeline.storing_thread import StoringThread
from tests.support.brokers.log_lines import logged
from tests.support.processes import wait_until
from tests.support.producers.questions import CARRIER, LATENCY
from tests.support.producers.recording.outcomes import lock, reports

CANARY = "canary-7391"


def test_full_buffer_drops_and_says_so_once(make, kafka, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(EventBuffer, "full", 100 * FIELDS)
    taking, going_on = threading.Event(), threading.Event()
    serve = Recorder._serve

    def wait(self, *given):
        taking.set()
        going_on.wait(60)
        serve(self, *given)

    monkeypatch.setattr(Recorder, "_serve", wait)
    target = make()
    target.record("latency", 0, None, 60)
    assert taking.wait(60)
    for number in range(1, 350):
        target.record("latency", number, None, 60)
        target.record("carrier", "AA", None, 60)
    assert target.counters().dropped == {"latency": 250, "carrier": 249}
    going_on.set()
    with pytest.raises(DeliveryError, match="499 reports"):
        target.flush()
    assert reports(kafka) == 200
    shown = [each.getMessage() for each in logged(caplog) if each.name == Recorder.__module__]
    assert [each.split()[0] for each in shown] == ["499"]


@pytest.mark.all
def test_recorded_events_are_stored_refused_or_dropped_exactly(make, kafka, monkeypatch):
    """By 8 threads, with a small buffer, clients over limits, late events, and one thread that closes."""
    monkeypatch.setattr(EventBuffer, "full", 50 * FIELDS)
    budget = Budget(epsilon=30.0, delta=1e-6, period_seconds=86_400)
    target = make(
        Allowance(CARRIER, budget, reports_per_window=20), Allowance(LATENCY, None), pack_reports=50
    )
    recorded, began, interval = Counter(), time.time(), sys.getswitchinterval()
    until = time.monotonic() + 1.5

    def work(number):
        own = Counter()
        while time.monotonic() < until:
            own["carrier"] += 2
            target.record("carrier", "AA", f"client-{number % 4}")
            target.record("carrier", "AA", "late", began - 86_400)
            own["latency"] += 1
            target.record("latency", 5)
            time.sleep(0)
        recorded.update(own)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    sys.setswitchinterval(1e-4)
    try:
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        with pytest.raises(DeliveryError, match="reports"):
            target.close()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    counters = target.counters()
    for name in ("carrier", "latency"):
        refused = sum(count for (each, _), count in counters.refused.items() if each == name)
        assert counters.stored[name] + counters.dropped[name] + refused == recorded[name]
        assert min(counters.stored[name], counters.dropped[name]) > 0
    assert counters.stored["carrier"] <= 4 * 20 * 2  # the next window may begin meanwhile
    assert {reason for _, reason in counters.refused} >= {"over_window", "too_late"}
    assert counters.acknowledged == counters.stored
    assert reports(kafka) == sum(counters.stored.values())


@pytest.mark.slow
def test_full_queue_of_one_producer_keeps_events(make, kafka, tmp_path, monkeypatch):
    """Nothing is dropped while the store is locked: what has no room waits, and other calls go on."""
    monkeypatch.setattr(submission_queue, "QUEUE_BYTES", 1000)
    target = make(block_milliseconds=100)
    held = lock(tmp_path)
    for round_number in range(10):
        for number in range(100):
            target.record("latency", number, None, 60 * round_number)
            target.record("carrier", "AA", f"client-{number}", 60 * round_number)
        time.sleep(0.03)
    assert any(target._recorder._unqueued.values())
    # Each wait for room that ended without any is forgotten.
    assert len(target._pipeline._queue._waiting) <= 2
    held.execute("ROLLBACK")
    held.close()
    target.flush()
    assert target.counters().stored == {"latency": 1000, "carrier": 1000}
    assert reports(kafka) == 2000


@pytest.mark.slow
@pytest.mark.parametrize("when_away", ["wait", "drop"])
def test_absent_database_holds_up_only_events_of_clients(make, kafka, tmp_path, when_away):
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_bytes(bytes(range(32)))
    away = BudgetDatabase("postgresql://deniable@127.0.0.1:9/budgets", when_away=when_away)
    target = make(
        Allowance(CARRIER, Budget(40.0, 1e-6, 86_400)),
        Allowance(LATENCY, None),
        secret_file=secret,
        budget_store=away,
        timing=ProducerTiming(busy=0.1, retry=(0.01,)),
        pack_seconds=0.1,
    )
    for _ in range(20):
        target.record("carrier", "AA", "ann")
        target.record("carrier", "AA")
        target.record("latency", 5)
        time.sleep(0.005)
    assert wait_until(lambda: target.counters().acknowledged == {"carrier": 20, "latency": 20}, 60)
    if when_away == "drop":
        assert wait_until(lambda: target.counters().dropped == {"carrier": 20}, 60)
        with pytest.raises(DeliveryError, match="20 reports"):
            target.close()
    else:
        assert target.counters().dropped == {}
        with pytest.raises(DeliveryError, match="20 reports"):
            target.close(0.1)
    assert reports(kafka) == 40


@pytest.mark.usefixtures("one_dies")
def test_death_of_the_recording_thread_is_reported_and_report_goes_on(make, kafka, monkeypatch):
    target = make()
    target.record("latency", 1, None, 60)
    target.flush()

    def die(*_):
        raise KeyError(CANARY)

    monkeypatch.setattr(Recorder, "_serve", die)
    target.record("latency", 1, None, 60)
    with pytest.raises(DeliveryError, match="KeyError"):
        target.flush()
    target.record("latency", 1, None, 60)
    assert target.report("latency", 1, None, 60) == Receipt(stored=1)
    with pytest.raises(DeliveryError, match="KeyError"):
        target.close()
    counters = target.counters()
    assert (counters.stored, counters.dropped) == ({"latency": 2}, {"latency": 2})


@pytest.mark.usefixtures("one_dies")
def test_death_of_the_storing_thread_drops_later_events(make, kafka, monkeypatch):
    target = make()
    target.record("latency", 1, None, 60)
    target.flush()

    def die(*_, **__):
        raise KeyError(CANARY)

    monkeypatch.setattr(StoringThread, "handle", die)
    target.record("latency", 1, None, 60)
    with pytest.raises(DeliveryError, match="KeyError"):
        target.flush()
    for _ in range(3):
        target.record("latency", 1, None, 60)
    assert wait_until(lambda: target.counters().dropped == {"latency": 3}, 30)
    with pytest.raises(DeliveryError, match="KeyError"):
        target.close()


def test_flush_reports_a_recording_thread_that_cannot_be_started(make, kafka, monkeypatch):
    target, start = make(), _thread.start_new_thread

    def start_or_fail(run, arguments):
        if run.__self__._name == "recording":
            raise RuntimeError("can't start new thread")
        return start(run, arguments)

    with monkeypatch.context() as patch:
        patch.setattr(_thread, "start_new_thread", start_or_fail)
        target.record("latency", 1, None, 60)
        with pytest.raises(DeliveryError, match="recording thread"):
            target.flush()
    target.flush()
    assert reports(kafka) == 1
