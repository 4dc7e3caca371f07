"""A signal handler may report, flush, close and fork, whatever it interrupts, without deadlock.

Handlers run between two steps of the interpreter. So the first tests trace the main thread and call a handler
at its steps; the last ones send real signals, also while it waits.
"""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from deniable.config.settings.allowance import Allowance
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.concurrency.synchronization import AtomicSum
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import ClosedError
from deniable.producers.metrics.counters import Receipt
from deniable.producers.pipeline import storing_thread
from deniable.producers.producer import Producer
from deniable.producers.randomization.randomness import Keystream
from tests.support.paths import REPOSITORY
from tests.support.producers.fake_kafka import FakeKafka
from tests.support.producers.recording.steps import Steps, steps_of

pytestmark = pytest.mark.slow

CARRIER = Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True)


@pytest.fixture
def make(monkeypatch, tmp_path):
    """Builds producers whose calls wait up to 20 s and which do not tick."""
    monkeypatch.setattr(storing_thread, "connect", FakeKafka(acknowledges=True).connect)
    folders = (tmp_path / str(number) for number in range(10_000))

    def make_one():
        return Producer(
            ProducerConfig(
                allowances=(Allowance(CARRIER, None),),
                bootstrap_servers="127.0.0.1:9092",
                topic="reports",
                partitions=4,
                data_dir=next(folders),
                pack_seconds=3600,
                block_milliseconds=60_000,
            )
        )

    return make_one


def test_handler_reports_and_flushes_during_a_report(make):
    """A handler that waits for the interrupted call would time out.

    A call that need not wait has fewer steps, so some handlers are not called.
    """
    producer, receipts = make(), []

    def handler():
        receipts.append(producer.report("carrier", ["B6", "?"], None))
        producer.flush(20)

    def call():
        receipts.append(producer.report("carrier", ["AA", "?"], None))

    for at in range(1, steps_of(call), 7):
        with Steps(handler, at):
            call()
    assert len(receipts) > 300
    assert set(receipts) == {Receipt(stored=2)}
    assert producer.counters().stored == {"carrier": 2 * len(receipts)}
    assert producer.unknown() == {"carrier": len(receipts)}
    producer.close()


def test_handler_reports_during_flush_and_counters(make):
    producer, receipts = make(), []

    def handler():
        receipts.append(producer.report("carrier", "B6", None))

    for call in (producer.flush, producer.counters):
        for at in range(1, steps_of(call), 5):
            with Steps(handler, at):
                call()
    assert len(receipts) > 100
    assert set(receipts) == {Receipt(stored=1)}
    assert producer.counters().stored == {"carrier": len(receipts)}
    producer.close()


def test_handler_closes_during_a_report_or_close(make):
    """The report is stored and sent, or refused because of the closing."""

    def report(producer):
        assert producer.report("carrier", "AA", None) == Receipt(stored=1)

    for call in (report, Producer.close):
        probe = make()
        count = steps_of(lambda: call(probe))  # noqa: B023 (it is called here)
        probe.close()
        for at in range(1, count, 41):
            producer = make()
            try:
                with Steps(producer.close, at):
                    call(producer)
                stored = int(call is report)
            except ClosedError:
                stored = 0
            producer.close()
            counters = producer.counters()
            assert counters.stored == counters.acknowledged == ({"carrier": 1} if stored else {})


def test_handler_forks_during_a_report(make):
    """The child reports and closes, and so does the parent."""
    producer, children = make(), []

    def handler():
        child = os.fork()
        if child == 0:
            is_stored = producer.report("carrier", "B6", None) == Receipt(stored=1)
            producer.close()
            os._exit(0 if is_stored else 1)
        children.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    def call():
        assert producer.report("carrier", "AA", None) == Receipt(stored=1)

    for at in range(1, steps_of(call), 61):
        with Steps(handler, at):
            call()
    assert len(children) > 10
    assert set(children) == {0}
    producer.close()


def test_handler_draws_no_word_twice():
    """At every step of a draw; 2**16 words repeat by chance with probability below 2**-33."""
    stream, drawn = Keystream(), []

    def call():
        drawn.append(stream.words64(32))

    for at in range(1, steps_of(call)):
        with Steps(call, at):
            call()
    words = np.concatenate(drawn)
    assert len(np.unique(words)) == len(words)
    assert 5000 < len(words) < 2**16


def test_handler_loses_no_addition():
    total, added = AtomicSum(), []

    def call():
        added.append(1)
        total.add(1)

    for at in range(1, steps_of(call)):
        with Steps(call, at):
            call()
    assert total.value == len(added) > 30


def test_other_threads_lose_no_addition():
    total = AtomicSum()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: [total.add(1) for _ in range(10_000)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert total.value == 40_000


FIRST_DRAWS = """
import os, signal, sys
import numpy as np
from deniable.producers.randomization import prf
from deniable.producers.randomization.randomness import Keystream

blocks = [np.zeros((2, 2), np.uint64)] * 3
draws = (lambda: Keystream().words64(1)), (lambda: prf.mac(bytes(16), blocks)), (
    lambda: prf.mac(bytes(16), blocks[:1]))
draw, steps = draws[int(sys.argv[1])], 0

def trace(frame, event, _):
    global steps
    frame.f_trace_opcodes = True
    if event == "opcode":
        steps += 1
        if not os.fork():
            signal.alarm(10)
            draw()
            os._exit(0)
        assert os.wait()[1] == 0, steps
    return trace

sys.settrace(trace)
draw()
sys.settrace(None)
assert steps > 50
"""


@pytest.mark.parametrize(
    "what",
    [
        "counter",
        pytest.param("chained", marks=pytest.mark.all),
        pytest.param("blockwise", marks=pytest.mark.all),
    ],
)
def test_handler_may_interrupt_the_first_draw(what):
    """A library that initializes itself on first use may hold a lock meanwhile.

    At every step of the first draw, a child draws again, like a handler.
    """
    which = str(["counter", "chained", "blockwise"].index(what))
    run = subprocess.run([sys.executable, "-c", FIRST_DRAWS, which], timeout=280, check=False)
    assert run.returncode == 0


SCRIPT = """
import pathlib, random, signal, sys, time
sys.path.insert(0, sys.argv[2])
from tests.support.producers.fake_kafka import FakeKafka
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.pipeline import storing_thread
from deniable.config.settings.allowance import Allowance
from deniable.producers.errors import ClosedError
from deniable.producers.producer import Producer
from deniable.producers.config import ProducerConfig

kafka = FakeKafka(acknowledges=True)
storing_thread.connect = kafka.connect
latency = Collection("latency", KRR.from_epsilon(1000, 1.0))
draw, counts, pending = random.Random(7), [], 0

def later():
    signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0001, 0.004))

def report():
    global pending
    receipt = producer.report("latency", [1, 2, 3], None)
    counts.append(receipt.stored)
    pending += receipt.pending

def interrupt(*_):
    try:
        report()
    except ClosedError:
        return
    if sys.argv[3] == "close" and len(counts) > 20:
        producer.close(20)
    else:
        later()

signal.signal(signal.SIGALRM, interrupt)
for turn in range(1 if sys.argv[3] == "report" else 15):
    counts.clear()
    producer = Producer(ProducerConfig(
        allowances=(Allowance(latency, None),), bootstrap_servers="127.0.0.1:9092", topic="reports",
        partitions=4, data_dir=pathlib.Path(sys.argv[1], str(turn)), pack_seconds=0.01,
        block_milliseconds=60_000,
    ))
    later()
    try:
        ends = time.monotonic() + 4  # with a busy disk each report takes long
        while len(counts) < 900 and time.monotonic() < ends:
            report()
    except ClosedError:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    producer.close(20)
    counters = producer.counters()
    assert counters.stored == counters.acknowledged == {"latency": sum(counts)}, counters
    assert not pending
    assert len(counts) > 20, len(counts)
"""


@pytest.mark.parametrize("what", ["report", pytest.param("close", marks=pytest.mark.all)])
def test_handler_of_real_signals_ends(tmp_path, what):
    here = str(REPOSITORY)
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path), here, what]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
