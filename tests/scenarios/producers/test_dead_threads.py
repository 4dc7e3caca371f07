"""A producer's thread that dies or does not end is reported at once to all callers."""

import _thread
import threading
import time

import pytest

from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.errors import DeliveryError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline import storing_thread
from deniable.producers.pipeline.dispatcher import Dispatch
from deniable.producers.pipeline.transactions import StoreTransactions

CANARY = "canary-7391"


@pytest.mark.usefixtures("one_dies")
def test_death_of_the_storing_thread_is_reported_at_once(make, kafka, monkeypatch):
    """Both waiting and later callers see it, without the error's message."""

    def die(*_, **__):
        raise KeyError(CANARY)

    target = make()
    assert target.report("latency", 1, None).stored == 1
    target.flush()
    monkeypatch.setattr(StoreTransactions, "run", die)
    began = time.monotonic()
    for call in (lambda: target.report("latency", 1, None), target.flush, target.close):
        with pytest.raises(DeliveryError, match="KeyError") as died:
            call()
        assert CANARY not in str(died.value)
    assert time.monotonic() - began < 15
    assert kafka.closed == 1


@pytest.mark.usefixtures("one_dies")
def test_death_ends_waiting_flushes(make, kafka, monkeypatch):
    kafka.acknowledges = False
    target = make()
    assert target.report("latency", 1, None).stored == 1
    settle = Dispatch.settle

    def die_later(self):
        if len(kafka.sent) == 1:
            raise KeyError(CANARY)
        settle(self)

    monkeypatch.setattr(Dispatch, "settle", die_later)
    threading.Timer(0.1, target._pipeline.wake).start()
    began = time.monotonic()
    with pytest.raises(DeliveryError, match=r"KeyError; .*; 1 pack "):
        target.flush()
    assert time.monotonic() - began < 15
    with pytest.raises(DeliveryError, match="KeyError"):
        target.close()


@pytest.mark.usefixtures("one_dies")
def test_dead_delivery_thread_keeps_reports(make, monkeypatch, tmp_path):
    def die(*_):
        raise ValueError(CANARY)

    monkeypatch.setattr(storing_thread, "connect", die)
    target = make()
    began = time.monotonic()
    for call, packs in ((target.flush, "1 pack "), (target.close, "2 packs ")):
        assert target.report("latency", 1, None) == Receipt(stored=1)
        with pytest.raises(DeliveryError, match=rf"ValueError; .*; {packs}.*{tmp_path}") as died:
            call()
        assert CANARY not in str(died.value)
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("name", ["delivery", "storing"])
def test_unstartable_thread_is_reported_and_retried(make, monkeypatch, name):
    """For example after a fork, when the first call starts the threads."""
    target = make()
    target._pipeline.close()
    target._begin_anew()
    start, failed = _thread.start_new_thread, []

    def start_or_fail(run, arguments):
        if not failed and run.__self__._name == name:
            failed.append(run)
            raise RuntimeError("can't start new thread")
        return start(run, arguments)

    monkeypatch.setattr(_thread, "start_new_thread", start_or_fail)
    with pytest.raises(DeliveryError, match=f"{name} thread"):
        target.report("latency", [1, 2], None)
    assert target.report("latency", [1, 2], None) == Receipt(stored=2)
    target.flush()
    assert target.counters().acknowledged == {"latency": 2}


def test_thread_that_does_not_end_in_time_is_reported(make, monkeypatch):
    going_on = threading.Event()
    monkeypatch.setattr(StoreTransactions, "end", lambda *_: going_on.wait(10))
    target = make(timing=ProducerTiming(end=0.05))
    with pytest.raises(DeliveryError, match=r"^the storing thread did not end within 0\.05 s$"):
        target.close()
    going_on.set()


@pytest.mark.usefixtures("one_dies")
def test_flush_fails_if_the_storing_thread_dies(make, monkeypatch):
    def die(*_, **__):
        raise KeyError("canary")

    target = make()
    assert target.report("latency", 1, None).stored == 1
    monkeypatch.setattr(StoreTransactions, "run", die)
    with pytest.raises(DeliveryError, match="KeyError"):
        target.flush()
    with pytest.raises(DeliveryError, match="KeyError"):
        target.close()
