"""A forked child reports on its own, the parent goes on, and nothing is sent twice."""

import json
import subprocess
import sys

SCRIPT = """
import json, os, pathlib, sys, threading
sys.path.insert(0, sys.argv[2])
from fake_kafka import FakeKafka
from estimators.collection import Collection
from estimators.krr import KRR
from producers import storekeeper
from producers.budget import Allowance
from producers.producer import Producer
from producers.producer_config import ProducerConfig
from producers.wire import decode

kafka = FakeKafka(acknowledges=True)
storekeeper.connect = kafka.connect
latency = Collection("latency", KRR.from_epsilon(1000, 1.0))
config = ProducerConfig(
    allowances=(Allowance(latency, None),), bootstrap_servers="", topic="reports", partitions=4,
    data_dir=pathlib.Path(sys.argv[1]), pack_seconds=3600, block_milliseconds=30_000,
)
producer = Producer(config)
busy = threading.Event()

def work():  # so that a fork falls into the middle of something
    while not busy.wait(0.001):
        producer.report("latency", [1, 2, 3], None)

def tell(name, code):
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
        storekeeper.connect = kafka.connect
        assert producer.report("latency", [number] * 10, None).stored == 10
        producer.close()
        tell(f"child-{number}.json", 0)
        os._exit(0)
    children.append(child)
    assert producer.report("latency", [8] * 100, None).stored == 100
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
busy.set()
thread.join()
producer.close()
tell("parent.json", 0)
"""


def test_both_sides_of_a_fork_report_and_nothing_is_sent_twice(tmp_path):
    here = __file__.rpartition("/")[0]
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path), here]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    parent = json.loads((tmp_path / "parent.json").read_text())
    children = [json.loads((tmp_path / f"child-{number}.json").read_text()) for number in range(3)]
    assert parent["stored"] >= 400
    for side in (parent, *children):
        assert side["reports"] == side["acknowledged"] == side["stored"]
    assert [child["stored"] for child in children] == [10, 10, 10]
    ids = [pack_id for side in (parent, *children) for pack_id in side["ids"]]
    assert len(set(ids)) == len(ids)
    assert "lane-1.lock" in parent["files"]


def test_nothing_is_imported_late_by_what_a_report_calls():
    """A fork while another thread imports leaves the child a lock that nobody opens."""
    code = "import sys, producers.producer; sys.exit('numpy.ma' not in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
