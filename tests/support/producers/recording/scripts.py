"""Scripts that record events in processes of their own, and what is left of these in the folder.

Kafka takes their packs and acknowledges none, so all that was stored is in the outbox, and the next producer
sends it. Each event has a window of its own, which shows it in the packs.
"""

import subprocess
import sys
from collections import Counter

from deniable.protocol.wire import decode
from tests.support.paths import REPOSITORY

SECONDS = 60
PRELUDE = """
import atexit, gc, os, pathlib, signal, sqlite3, subprocess, sys, threading, time
sys.path.insert(0, sys.argv[2])
from tests.support.producers.fake_kafka import FakeKafka
from tests.support.producers.questions import FREE
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.config import ProducerConfig
from deniable.producers.pipeline import storing_thread
from deniable.producers.pipeline.recording import recorder
from deniable.producers.producer import Producer

kafka = FakeKafka()
storing_thread.connect = lambda *where: kafka.connect(*where)
folder = pathlib.Path(sys.argv[1])
config = ProducerConfig(
    allowances=FREE, bootstrap_servers="127.0.0.1:9092", topic="reports", partitions=4, data_dir=folder,
    pack_seconds=3600, block_milliseconds=60_000, timing=ProducerTiming(retry=(0.01,)),
)

def record(count, first=0, producer=None):
    for number in range(first, first + count):
        (producer or globals()["producer"]).record("latency", number % 1000, None, 60 * number)
"""


def command(script, folder):
    """The command that runs a script after PRELUDE."""
    return [sys.executable, "-W", "ignore", "-c", PRELUDE + script, str(folder), str(REPOSITORY)]


def run(script, folder, seconds=120):
    """Run a script to its end; return its status and output."""
    return subprocess.run(
        command(script, folder), capture_output=True, text=True, timeout=seconds, check=False
    )


def left_in(folder, make, kafka):
    """How often each event is in the packs that the next producer sends."""
    make(data_dir=folder).flush()
    counts = Counter()
    for record in kafka.sent:
        pack = decode(record["value"])
        assert pack.window_start % SECONDS == 0
        counts[pack.window_start // SECONDS] += pack.reports
    return counts


def each_once(count):
    """What `left_in` returns if nothing was lost or doubled."""
    return Counter(range(count))
