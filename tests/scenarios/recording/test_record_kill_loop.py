"""After kill -9 nothing recorded is doubled or uncharged, and only the last events are missing.

Each event is written to a side file with its time, after its call has returned. A window holds the next
FEW events of a child, so the topic shows which windows are short.
"""

import random
import signal
import struct
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from producers.budget.allowance import Allowance, Budget
from producers.budget.local_budgets import LocalBudgets
from producers.budget.spending import Spending
from producers.config import ProducerConfig
from producers.producer import Producer
from producers.randomization.prf import ClientKeys
from producers.randomization.secret import load_secret
from producers.storage.store import Store
from producers.wire import decode
from tests.support.paths import REPOSITORY
from tests.support.producers.topics import make_topic, read

ROUNDS = 12
PARTITIONS = 3
FEW = 200
WINDOWS_OF_A_CHILD = 10_000
CLIENTS = [f"client-{number}" for number in range(1000)]
WRITTEN = struct.Struct("<d")  # monotonic seconds
#: On an idle machine the oldest lost event is 20 to 60 ms old: the interval, randomizing and a commit.
MOST_MILLISECONDS = 2000
ALLOWANCE = Allowance(
    Collection(
        "carrier",
        KRR.from_epsilon(4, 0.01),
        values=("AA", "B6", "9E"),
        other=True,
        window_seconds=1,
        grace_seconds=10**8,
    ),
    Budget(epsilon=1000.0, delta=1e-6, period_seconds=10 * 366 * 86_400),
    reports_per_window=FEW,
)


def config(broker, topic, folder):
    return ProducerConfig(
        allowances=(ALLOWANCE,),
        bootstrap_servers=broker,
        topic=topic,
        partitions=PARTITIONS,
        data_dir=folder,
        pack_reports=150,
        pack_seconds=0.05,
        block_milliseconds=10_000,
    )


def produce(broker, topic, folder, first, shown):
    """Record until killed: FEW events for each second from `first` on, some 10,000 a second."""
    draw = random.Random(first)
    with Producer(config(broker, topic, folder)) as producer, open(shown, "ab", buffering=0) as file:
        for number in range(WINDOWS_OF_A_CHILD * FEW):
            producer.record("carrier", "AA", draw.choice(CLIENTS), first + number // FEW)
            file.write(WRITTEN.pack(time.monotonic()))
            if number % 20 == 0:
                time.sleep(0.001)


def start(broker, topic, folder, first, shown):
    code = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
from pathlib import Path
from tests.scenarios.recording.test_record_kill_loop import produce
produce({broker!r}, {topic!r}, Path({str(folder)!r}), {first}, {str(shown)!r})
"""
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.DEVNULL)


def kill_later(child, shown, draw):
    """Kill a child at a random time after its first call has returned; return the time of its end."""
    deadline = time.monotonic() + 60
    while not (shown.exists() and shown.stat().st_size):
        assert time.monotonic() < deadline, "the child does not record"
        assert child.poll() is None, "the child ended by itself"
        time.sleep(0.01)
    time.sleep(draw.uniform(0, 0.7))
    child.send_signal(signal.SIGKILL)
    child.wait()
    return time.monotonic()


def lost_events(first, recorded, sent):
    """The number of lost events, after checking that nothing is doubled and that only the last are lost."""
    kept = [sent[first + window] for window in range(-(-len(recorded) // FEW) + 1)]
    stored = sum(kept)
    assert kept == [max(0, min(FEW, stored - FEW * window)) for window in range(len(kept))]
    # The last call may not have written its time.
    assert stored <= len(recorded) + 1
    return max(0, len(recorded) - stored)


@pytest.mark.all
@pytest.mark.broker
@pytest.mark.timeout(250)
def test_killed_children_lose_only_their_last_events(broker, topic_prefix, tmp_path, capsys):
    folder, draw = tmp_path / "data", random.Random(5)
    began = int(time.time()) - 2 * ROUNDS * WINDOWS_OF_A_CHILD
    firsts = [began + WINDOWS_OF_A_CHILD * number for number in range(ROUNDS)]
    recorded, ended = {}, {}
    configs = {"message.timestamp.type": "LogAppendTime"}
    with make_topic(broker, f"{topic_prefix}reports", PARTITIONS, configs) as topic:
        for first in firsts:
            shown = tmp_path / f"{first}.times"
            child = start(broker, topic, folder, first, shown)
            ended[first] = kill_later(child, shown, draw)
            recorded[first] = [moment for (moment,) in WRITTEN.iter_unpack(shown.read_bytes())]
        with Producer(config(broker, topic, folder)) as last:
            last.flush()
        records = read(broker, topic)
    packs = {pack.pack_id: pack for pack in (decode(record.value) for record in records)}
    sent = Counter()
    for pack in packs.values():
        sent[pack.window_start] += pack.reports
    lost = {first: lost_events(first, recorded[first], sent) for first in firsts}
    ages = [
        1000 * (ended[first] - recorded[first][len(recorded[first]) - lost[first]])
        for first in firsts
        if lost[first]
    ]
    total, spent = sum(map(len, recorded.values())), spent_reports(folder)
    summary = (
        f"{ROUNDS} children killed; {total} events recorded, {sum(lost.values())} lost, at most "
        f"{max(lost.values())} of a child; the oldest lost event was {max(ages, default=0):.0f} ms old, in "
        f"the median {np.median(ages or [0]):.0f} ms; {len(records) - len(packs)} packs twice; {spent} "
        f"reports charged, {sum(sent.values())} sent"
    )
    with capsys.disabled():
        sys.stdout.write(f"\n{summary}\n")
    assert sum(sent.values()) <= spent
    assert total > 10_000
    assert max(ages, default=0) < MOST_MILLISECONDS
    assert sum(lost.values()) < total / 2


def spent_reports(folder):
    """Reports charged to all clients together."""
    store = Store(folder)
    spending = Spending(LocalBudgets(store), [ALLOWANCE], time.time())
    keys = ClientKeys(load_secret(folder / "secret")).of(CLIENTS)
    spent = [spending.spent(np.asarray(key), time.time())["carrier"].lifetime_reports for key in keys]
    store.close()
    return sum(spent)


def test_short_window_before_a_full_one_is_detected():
    recorded = [0.0] * (3 * FEW)
    assert lost_events(0, recorded, Counter({0: FEW, 1: FEW, 2: 5})) == FEW - 5
    for sent in ({0: FEW - 1, 1: FEW, 2: 5}, {0: FEW + 1, 1: FEW, 2: FEW}, {0: FEW, 1: FEW, 2: FEW, 3: 2}):
        with pytest.raises(AssertionError):
            lost_events(0, recorded, Counter(sent))
