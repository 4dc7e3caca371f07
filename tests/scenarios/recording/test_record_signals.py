"""A signal handler may record, whatever it interrupts, and the call itself takes no lock.

Handlers run at the interpreter's steps, as in tests/scenarios/producers/test_signals.py.
"""

import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress

import pytest

from deniable.config.settings.allowance import Allowance
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import ClosedError, DeliveryError
from deniable.producers.pipeline import storing_thread
from deniable.producers.pipeline.recording import recorder as recording
from deniable.producers.producer import Producer
from tests.support.paths import REPOSITORY
from tests.support.producers.fake_kafka import FakeKafka
from tests.support.producers.questions import CARRIER, DESTINATION, LATENCY
from tests.support.producers.recording.steps import Steps, steps_of

pytestmark = pytest.mark.all


@pytest.fixture
def make(monkeypatch, tmp_path):
    """Build producers whose calls wait up to 20 s and which do not tick."""
    monkeypatch.setattr(storing_thread, "connect", FakeKafka(acknowledges=True).connect)
    folders = (tmp_path / str(number) for number in range(10_000))

    def make_one():
        return Producer(
            ProducerConfig(
                allowances=tuple(Allowance(each, None) for each in (CARRIER, LATENCY, DESTINATION)),
                bootstrap_servers="127.0.0.1:9092",
                topic="reports",
                partitions=4,
                data_dir=next(folders),
                pack_seconds=3600,
                block_milliseconds=60_000,
            )
        )

    return make_one


def test_handler_records_at_every_step_of_record(make):
    producer, recorded = make(), []

    def handler():
        producer.record("carrier", "B6")
        recorded.append("carrier")

    def call():
        producer.record("carrier", "AA")
        recorded.append("carrier")

    def other():
        producer.record("latency", 5, "ann", 10**11)
        recorded.append("latency")

    for interrupted in (call, other):
        for at in range(1, steps_of(interrupted)):
            with Steps(handler, at):
                interrupted()
    with pytest.raises(DeliveryError, match="reports"):
        producer.close()
    counters, counts = producer.counters(), Counter(recorded)
    assert counters.stored == counters.acknowledged == {"carrier": counts["carrier"]}
    assert counters.dropped == {"latency": counts["latency"]}
    assert len(recorded) > 200


def test_handler_flushes_at_every_step_of_record(make):
    """What was recorded before is sent; the interrupted event may come later."""
    producer, total = make(), 0

    def handler():
        before = total
        producer.flush(20)
        assert producer.counters().acknowledged.get("carrier", 0) >= before

    def call():
        producer.record("carrier", "AA")

    for at in range(1, steps_of(call)):
        with Steps(handler, at):
            call()
        total += 1
    producer.close()
    assert producer.counters().acknowledged == {"carrier": total + 1}


def test_handler_records_during_report_and_flush(make):
    producer, recorded, reported = make(), [], []

    def handler():
        producer.record("latency", 5)
        recorded.append(1)

    def report():
        reported.append(producer.report("carrier", "AA", None).stored)

    for call, stride in ((report, 3), (producer.flush, 3)):
        for at in range(1, steps_of(call), stride):
            with Steps(handler, at):
                call()
    producer.close()
    counters = producer.counters()
    assert counters.stored == counters.acknowledged == {"carrier": len(reported), "latency": len(recorded)}
    assert len(recorded) > 100


def test_handler_records_during_close(make):
    """Every event is stored or dropped, and counted, also those that come too late."""
    probe = make()
    probe.record("latency", 5)
    count = steps_of(probe.close)
    outcomes = Counter()
    for at in range(1, count, max(1, count // 60)):
        producer, recorded = make(), [1]
        producer.record("latency", 5)

        def handler():
            producer.record("latency", 5)  # noqa: B023 (it is called here)
            recorded.append(1)  # noqa: B023

        with Steps(handler, at), suppress(DeliveryError):  # the drop of an event that came too late
            producer.close()
        counters = producer.counters()
        stored, dropped = counters.stored["latency"], counters.dropped.get("latency", 0)
        assert stored + dropped == len(recorded)
        assert counters.acknowledged == counters.stored
        outcomes[stored, dropped] += 1
    assert outcomes[2, 0] > 0 < outcomes[1, 1]


def test_handler_closes_during_record(make):
    """The interrupted event is stored, or dropped and counted; also the first, which starts the thread."""
    probe = make()
    probe.record("carrier", "AA")
    count = steps_of(lambda: probe.record("carrier", "AA"))
    probe.close()
    outcomes = Counter()
    for is_first in (False, True):
        for at in range(1, count, 2):
            producer = make()
            if not is_first:
                producer.record("carrier", "B6")
            with Steps(producer.close, at):
                producer.record("carrier", "AA")
            producer.close()
            if is_first:
                assert producer._recorder._thread.join(20)
            counters = producer.counters()
            assert counters.acknowledged == counters.stored
            stored, dropped = (each.get("carrier", 0) for each in (counters.stored, counters.dropped))
            assert stored + dropped == (1 if is_first else 2)
            outcomes[is_first, dropped] += 1
            with pytest.raises(ClosedError):
                producer.flush()
    assert min(outcomes[False, 0], outcomes[False, 1], outcomes[True, 1]) > 0


def builtins_called(call):
    """Names of the built-in functions that a call and all of ours below it call in this thread."""
    called = set()

    def profile(frame, event, function):
        if event == "c_call" and "/producers/" in frame.f_code.co_filename:
            called.add(getattr(function, "__qualname__", repr(function)))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return called - {"setprofile"}


@pytest.mark.parametrize("state", ["asleep", "awake", "full"])
def test_call_takes_no_lock_and_does_no_io(make, monkeypatch, state):
    """Of all that it calls, nothing can wait: a lock is only looked at, and released to wake the thread."""
    monkeypatch.setattr(recording, "INTERVAL_SECONDS", 0.02 if state == "asleep" else 1.0)
    producer = make()
    for _ in range(2):
        producer.record("carrier", "AA", "ann")
    if state == "full":
        monkeypatch.setattr(recording.EventBuffer, "full", 0)
    calls = [
        lambda: producer.record("carrier", "AA", "ann"),
        lambda: producer.record("latency", 5, None, 90.5),
        lambda: producer.record("destination", "JFK", "ben"),
    ]
    called = set().union(*(builtins_called(call) for call in calls for _ in range(50)))
    monkeypatch.undo()
    assert called <= {"dict.get", "len", "time", "list.extend", "isinstance", "lock.locked", "lock.release"}
    assert "time" in called
    with suppress(DeliveryError):  # the drops of a full buffer
        producer.close()


def test_taken_locks_stop_no_caller(make):
    """Whoever holds every lock of the recorder, `record` returns."""
    producer = make()
    producer.record("carrier", "AA")
    producer.flush()
    recorder = producer._recorder
    done = threading.Event()
    with recorder._sweeping:
        thread = threading.Thread(
            target=lambda: [producer.record("carrier", "AA") for _ in range(1000)] and done.set()
        )
        thread.start()
        assert done.wait(20)
        thread.join()
    producer.close()
    assert producer.counters().stored == {"carrier": 1001}


SCRIPT = """
import pathlib, random, signal, sys, time
sys.path.insert(0, sys.argv[2])
from tests.support.producers.fake_kafka import FakeKafka
from tests.support.producers.questions import FREE
from deniable.producers.config import ProducerConfig
from deniable.producers.pipeline import storing_thread
from deniable.producers.producer import Producer

kafka = FakeKafka(acknowledges=True)
storing_thread.connect = kafka.connect
draw, recorded, in_handler = random.Random(7), 0, 0

def later():
    signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.00005, 0.002))

def interrupt(*_):
    global in_handler
    in_handler += 1
    producer.record("latency", 5, None, 60)
    if in_handler % 50 == 0:
        producer.flush(20)
    later()

signal.signal(signal.SIGALRM, interrupt)
producer = Producer(ProducerConfig(
    allowances=FREE, bootstrap_servers="127.0.0.1:9092", topic="reports", partitions=4,
    data_dir=pathlib.Path(sys.argv[1]), pack_seconds=0.01, block_milliseconds=60_000,
))
later()
while in_handler < 1000:
    producer.record("latency", 5, None, 60)
    recorded += 1
    if recorded % 100 == 0:
        time.sleep(0.0005)
signal.setitimer(signal.ITIMER_REAL, 0)
producer.close(20)
counters = producer.counters()
assert counters.stored == counters.acknowledged == {"latency": recorded + in_handler}, counters
assert not counters.dropped
"""


def test_real_signals_lose_and_double_nothing(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path), str(REPOSITORY)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
