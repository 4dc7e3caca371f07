"""A call to `record` waits for nothing while the store is locked by another process and Kafka is away."""

import subprocess
import sys
import threading
from contextlib import suppress

import pytest
from kafka.errors import KafkaTimeoutError

from deniable.producers.errors import DeliveryError
from deniable.producers.pipeline.queueing import submission_queue
from deniable.producers.pipeline.recording.event_buffer import MOST_EVENTS
from tests.support.processes import wait_until

pytestmark = pytest.mark.slow

CALLS = 100_000
HOLD = (
    "import sqlite3, sys; held = sqlite3.connect(sys.argv[1], isolation_level=None); "
    "held.execute('BEGIN IMMEDIATE'); print('held', flush=True); input()"
)


@pytest.fixture
def locked(tmp_path):
    """Lock the folder's store by another process, until the returned function is called."""
    holders = []

    def lock():
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(tmp_path / "producer.sqlite")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        holders.append(holder)
        assert holder.stdout.readline() == "held\n"
        return lambda: holder.communicate("go on\n")

    yield lock
    for holder in holders:
        holder.kill()
        holder.communicate()


def test_call_does_not_wait_for_store_or_kafka(make, kafka, locked):
    """All return before anything could be stored. How long each takes is measured by make bench-recording."""
    kafka.refuses = KafkaTimeoutError("no metadata")
    target = make()
    release = locked()
    target.record("latency", 5)
    for _ in range(CALLS):
        target.record("latency", 5)
    assert target.counters().stored == {}
    release()
    kafka.refuses = None
    target.flush()
    assert target.counters().acknowledged == {"latency": CALLS + 1}


@pytest.mark.all
def test_full_buffer_does_not_slow_calls(make, kafka, locked, monkeypatch):
    """Nor may memory grow: what has no room is dropped and counted, and no call waits as `report` does."""
    monkeypatch.setattr(submission_queue, "QUEUE_BYTES", 10_000)
    target = make()
    release = locked()
    calls = 4 * MOST_EVENTS
    for _ in range(calls):
        target.record("latency", 5)
    dropped = target.counters().dropped["latency"]
    assert dropped > 0
    release()
    with pytest.raises(DeliveryError, match=f"{dropped} reports"):
        target.flush(120)
    assert target.counters().stored == {"latency": calls - dropped}


@pytest.mark.all
def test_busy_threads_do_not_starve_another_collection(make, kafka):
    """Four threads record one collection without pause; an event of another is stored within seconds."""
    target, over = make(pack_seconds=0.05), threading.Event()

    def work():
        while not over.is_set():
            target.record("latency", 5)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(1, 4):
            target.record("carrier", "AA")
            assert wait_until(lambda: target.counters().stored.get("carrier") == number, 60)  # noqa: B023
    finally:
        over.set()
        for thread in threads:
            thread.join()
        with suppress(DeliveryError):  # a slow machine drops some
            target.close(60)
