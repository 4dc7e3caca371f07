"""After a fork, parent and child both report, and nothing is sent twice."""

import json
import subprocess
import sys

import pytest

from tests.support.paths import REPOSITORY

pytestmark = pytest.mark.slow

PRELUDE = """
import json, os, pathlib, subprocess, sys, threading, time
sys.path.insert(0, sys.argv[2])
from tests.support.producers.fake_kafka import FakeKafka
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.pipeline import storing_thread
from deniable.config.settings.allowance import Allowance
from deniable.producers.producer import Producer
from deniable.producers.config import ProducerConfig
from deniable.protocol.wire import decode

kafka = FakeKafka(acknowledges=True)
storing_thread.connect = lambda *where: kafka.connect(*where)
latency = Collection("latency", KRR.from_epsilon(1000, 1.0))
config = ProducerConfig(
    allowances=(Allowance(latency, None),), bootstrap_servers="127.0.0.1:9092", topic="reports", partitions=4,
    data_dir=pathlib.Path(sys.argv[1]), pack_seconds=3600, block_milliseconds=60_000,
)
"""

SCRIPT = """
producer = Producer(config)
busy = threading.Event()

def work():  # so that a fork falls into the middle of something
    while not busy.wait(0.001):
        producer.report("latency", [1, 2, 3], None)

def write_results(name, code):
    ids = [decode(record["value"]).pack_id.hex() for record in kafka.sent]
    reports = sum(decode(record["value"]).reports for record in kafka.sent)
    counters = producer.counters()
    pathlib.Path(sys.argv[1], name).write_text(json.dumps({
        "ids": ids, "reports": reports, "stored": counters.stored["latency"],
        "acknowledged": counters.acknowledged["latency"], "files": sorted(os.listdir(sys.argv[1])),
    }))

thread = threading.Thread(target=work)
thread.start()
assert producer.report("latency", [7] * 100, None).stored == 100
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        kafka = FakeKafka(acknowledges=True)
        assert producer.report("latency", [number] * 10, None).stored == 10
        producer.close()
        write_results(f"child-{number}.json", 0)
        os._exit(0)
    children.append(child)
    assert producer.report("latency", [8] * 100, None).stored == 100
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
busy.set()
thread.join()
producer.close()
write_results("parent.json", 0)
"""


def run(script, folder):
    here = str(REPOSITORY)
    command = [sys.executable, "-W", "ignore", "-c", PRELUDE + script, str(folder), here]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_parent_and_child_report_and_nothing_is_sent_twice(tmp_path):
    done = run(SCRIPT, tmp_path)
    assert done.returncode == 0, done.stderr
    parent = json.loads((tmp_path / "parent.json").read_text())
    children = [json.loads((tmp_path / f"child-{number}.json").read_text()) for number in range(3)]
    assert parent["stored"] >= 400
    for side in (parent, *children):
        assert side["reports"] == side["acknowledged"] == side["stored"]
    assert [child["stored"] for child in children] == [10, 10, 10]
    ids = [pack_id for side in (parent, *children) for pack_id in side["ids"]]
    assert len(set(ids)) == len(ids)
    assert "lane-1.lock" in parent["files"]


LOCKED = """
HOLD = "import sqlite3, sys; held = sqlite3.connect(sys.argv[1], isolation_level=None); " \\
    "held.execute('BEGIN IMMEDIATE'); print('held', flush=True); input()"

from dataclasses import replace
producer = Producer(replace(config, block_milliseconds=50))
file = str(pathlib.Path(sys.argv[1], "producer.sqlite"))
holder = subprocess.Popen(
    [sys.executable, "-c", HOLD, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
)
assert holder.stdout.readline() == "held\\n"
assert producer.report("latency", [1, 2, 3], None).pending == 3
reading, writing = os.pipe()
began = time.monotonic()
child = os.fork()
if child == 0:
    began = time.monotonic()
    assert producer.report("latency", [1, 2], None).pending == 2
    took = time.monotonic() - began
    assert took < 15, took
    os.write(writing, b".")
    producer.close(20)
    assert producer.counters().acknowledged == {"latency": 2}
    os._exit(0)
took = time.monotonic() - began
assert took < 15, took
os.read(reading, 1)
holder.communicate("go on\\n")
producer.close(20)
assert producer.counters().acknowledged == {"latency": 3}
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_fork_does_not_wait_for_a_locked_store(tmp_path):
    """The store is locked meanwhile; both sides store their reports once it is free."""
    done = run(LOCKED, tmp_path)
    assert done.returncode == 0, done.stderr


BUSY = """
from deniable.producers.storage.store import Store, StoreError
from deniable.producers.pipeline.transactions import StoreTransactions

hangs, going_on, run_transactions = threading.Event(), threading.Event(), StoreTransactions.run

def hang(self, submissions, flushes, *, ticking):  # as on a disk that does not answer, with the store open
    hangs.set()
    going_on.wait(30)
    return run_transactions(self, submissions, flushes, ticking=ticking)

producer = Producer(config)
StoreTransactions.run = hang
waiting = threading.Thread(target=producer.report, args=("latency", [1, 2, 3], None))
waiting.start()
assert hangs.wait(30)
began = time.monotonic()
child = os.fork()
if child == 0:
    StoreTransactions.run = run_transactions
    late = producer.report("latency", [1, 2], None)
    assert (late.dropped, late.stored) == (2, 0), late
    assert late.why_dropped.endswith("it was open when the process forked; close it first"), late.why_dropped
    os._exit(0)
took = time.monotonic() - began
assert 0.9 < took < 25, took
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
going_on.set()
waiting.join()
producer.close(20)
assert producer.counters().acknowledged == {"latency": 3}
"""


def test_fork_does_not_wait_for_a_hanging_disk(tmp_path):
    done = run(BUSY, tmp_path)
    assert done.returncode == 0, done.stderr


UNUSED = """
producer = Producer(config)
child = os.fork()
if child == 0:
    began = time.monotonic()
    producer.close()
    assert time.monotonic() - began < 15
    assert sorted(os.listdir(sys.argv[1])).count("lane-1.lock") == 0
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
producer.close()
"""


def test_child_without_reports_closes_at_once(tmp_path):
    done = run(UNUSED, tmp_path)
    assert done.returncode == 0, done.stderr


IMPORT = """
import os, pathlib, sys, threading, time
sys.path[:0] = sys.argv[1:]
from deniable.producers.concurrency.fork_hooks import import_in_thread

begun = pathlib.Path(sys.argv[1], "begun")
thread = threading.Thread(target=import_in_thread, args=("slow",))
thread.start()
while not begun.exists():
    time.sleep(0.01)
child = os.fork()
if child == 0:
    import slow
    os._exit(slow.DONE)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_waits_for_an_import_of_a_thread(tmp_path):
    """Without that the child waits for ever for the thread, which it has not, or finds half a module."""
    slow = (
        "import pathlib, time\npathlib.Path(__file__).with_name('begun').touch()\ntime.sleep(0.3)\nDONE = 7\n"
    )
    (tmp_path / "slow.py").write_text(slow)
    command = [sys.executable, "-c", IMPORT, str(tmp_path), str(REPOSITORY)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "7\n"
