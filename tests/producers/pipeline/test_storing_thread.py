"""The storing thread: ticks, end, and pause for a fork."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from deniable.config.settings.allowance import Allowance
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.budget.limits import CollectionLimits, UnknownLimitError
from deniable.producers.budget.spending import Spending
from deniable.producers.concurrency.clock import Clock
from deniable.producers.concurrency.synchronization import Latch
from deniable.producers.config import ProducerConfig
from deniable.producers.metrics.counters import Receipt, ReportTotals
from deniable.producers.pipeline import storing_thread
from deniable.producers.pipeline.queueing.submission import FlushRequest, PendingReceipt, Submission
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.producers.pipeline.storing_thread import StoringThread
from deniable.producers.pipeline.transactions import StoreTransactions
from deniable.producers.randomization.randomness import Keystream
from deniable.protocol.secrets.secret import Secret
from tests.support.producers.fake_kafka import FakeKafka

LATENCY = Collection("latency", KRR.from_epsilon(100, 1.0))


@pytest.fixture
def thread(tmp_path, monkeypatch):
    monkeypatch.setattr(storing_thread, "connect", FakeKafka(acknowledges=True).connect)
    config = ProducerConfig(
        allowances=(Allowance(LATENCY, None),),
        bootstrap_servers="127.0.0.1:9092",
        topic="reports",
        partitions=4,
        data_dir=tmp_path,
        pack_seconds=8.0,
    )
    secret, words, clock = Secret(bytes(32)), Keystream(), Clock()
    randomization = Randomization({"latency": config.allowances[0]}, secret, words, clock)
    thread = StoringThread(config, secret, words, clock, ReportTotals(["latency"]), randomization)
    thread.open()
    thread.start()
    yield thread
    thread.close()


def one(clients=None):
    window = np.array([LATENCY.window_start(time.time())])
    rows = np.zeros((1, 1), np.uint8)
    return Submission("latency", window, np.zeros(1, np.uint16), rows, clients, PendingReceipt(1))


def open_files(folder):
    """Names of open files in this folder; stores of other tests may wait for the collector."""
    found = [Path(entry).resolve() for entry in Path("/proc/self/fd").iterdir()]
    return {path.name for path in found if path.parent == folder.resolve()}


def test_ticks_are_jittered(thread):
    waits = [thread.tick_seconds() for _ in range(1000)]
    assert 2.0 <= min(waits) < 2.1
    assert 5.9 < max(waits) < 6.0


def test_queued_reports_are_stored_at_the_end(thread):
    pause = thread.pause()
    first, last = one(), one()
    thread.put(first, 0)
    deadline = time.monotonic() + 1  # the thread takes it now, unless it is already paused
    while thread._queue._items and time.monotonic() < deadline:
        time.sleep(0.001)
    thread.put(last, 0)
    closing = threading.Thread(target=thread.close)
    closing.start()
    while not thread.is_ending:
        pass
    pause.over.open()
    closing.join(10)
    assert [each.pending_receipt.receipt for each in (first, last)] == [Receipt(stored=1)] * 2


@pytest.mark.slow
def test_paused_thread_has_no_open_store_file(thread, tmp_path):
    """A forked child would hold SQLite's locks without a connection."""
    assert "producer.sqlite" in open_files(tmp_path)
    pause = thread.pause()
    assert pause.reached.wait(120)
    submission = one()
    thread.put(submission, 0)
    assert not submission.pending_receipt.done.wait(0.2)
    assert not {name for name in open_files(tmp_path) if name.startswith("producer.sqlite")}
    pause.over.open()
    assert submission.pending_receipt.done.wait(120)
    assert submission.pending_receipt.receipt == Receipt(stored=1)


@pytest.mark.slow
def test_computing_a_limit_closes_store_and_allows_forks(thread, monkeypatch, tmp_path):
    """Computing takes seconds; reports that arrive meanwhile are stored after it and the fork."""
    charge, finding, found, files = Spending.charge, Latch(), Latch(), set()

    class Unknown(UnknownLimitError):
        def find(self):
            files.update(open_files(tmp_path))
            finding.open()
            assert found.wait(120)

    def charge_later(self, *given):
        if not finding.is_open:
            raise Unknown(CollectionLimits(Allowance(LATENCY, None)), 1)
        return charge(self, *given)

    monkeypatch.setattr(Spending, "charge", charge_later)
    submission, before = one(np.zeros((1, 16), np.uint8)), open_files(tmp_path)
    thread.put(submission, 0)
    assert finding.wait(120)
    pause = thread.pause()
    assert pause.reached.is_open
    found.open()
    assert not submission.pending_receipt.done.wait(0.2)
    pause.over.open()
    assert submission.pending_receipt.done.wait(120)
    assert submission.pending_receipt.receipt == Receipt(stored=1)
    assert "producer.sqlite" in before - files


@pytest.mark.usefixtures("one_dies")
def test_queued_reports_are_dropped_when_the_storing_thread_dies(thread, monkeypatch):
    going_on = threading.Event()

    def die(*_, **__):
        going_on.wait(10)
        raise KeyError("canary")

    monkeypatch.setattr(StoreTransactions, "run", die)
    first = one()
    thread.put(first, 0)
    while thread._queue._items:
        time.sleep(0.001)
    queued, flush = one(), FlushRequest()
    thread.put(queued, 0)
    thread.put(flush, 0)
    going_on.set()
    for item in (first, queued, flush):
        assert item.done.wait(120)
    assert first.pending_receipt.receipt == Receipt(pending=1)
    assert queued.pending_receipt.receipt == Receipt(dropped=1)
    assert queued.pending_receipt.receipt.why_dropped == thread.death == flush.error
    assert thread._transactions._totals.dropped() == 1
