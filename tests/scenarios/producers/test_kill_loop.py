"""After kill -9 at any moment, no report acknowledged as stored is lost, doubled or sent uncharged.

Each call to `report` uses a different window, so the topic shows its result.
"""

import json
import random
import signal
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
CALLS_OF_A_CHILD = 100_000
# Half of a call's reports come from the first clients, which soon reach their limit.
FEW, CLIENTS = 50, [f"client-{number}" for number in range(10_000)]
REPORTS = 20
# Twelve reports of a client.
ALLOWANCE = Allowance(
    Collection(
        "carrier",
        KRR.from_epsilon(4, 1.0),
        values=("AA", "B6", "9E"),
        other=True,
        window_seconds=1,
        grace_seconds=10**8,
    ),
    Budget(epsilon=12.0, delta=1e-6, period_seconds=10 * 366 * 86_400),
)


def config(broker, topic, folder):
    return ProducerConfig(
        allowances=(ALLOWANCE,),
        bootstrap_servers=broker,
        topic=topic,
        partitions=PARTITIONS,
        data_dir=folder,
        pack_reports=15,
        pack_seconds=0.05,
        block_milliseconds=10_000,
    )


def produce(broker, topic, folder, first, receipts):
    """Report until killed: one call of REPORTS reports for each second from `first` on."""
    draw = random.Random(first)
    with Producer(config(broker, topic, folder)) as producer, open(receipts, "ab", buffering=0) as file:
        for moment in range(first, first + CALLS_OF_A_CHILD):
            clients = draw.choices(CLIENTS[:FEW], k=REPORTS // 2) + draw.choices(CLIENTS, k=REPORTS // 2)
            receipt = producer.report("carrier", ["AA"] * REPORTS, clients, at=moment)
            shown = [moment, receipt.stored, receipt.refused, receipt.pending]
            file.write(json.dumps(shown).encode() + b"\n")


def start(broker, topic, folder, first, receipts):
    code = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
from pathlib import Path
from tests.scenarios.producers.test_kill_loop import produce
produce({broker!r}, {topic!r}, Path({str(folder)!r}), {first}, {str(receipts)!r})
"""
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.DEVNULL)


def kill_later(children, receipts, draw):
    """Kill each child at a random time after its first call has returned."""
    deadline = time.monotonic() + 30
    while not all(path.exists() and path.stat().st_size for path in receipts):
        assert time.monotonic() < deadline, "a child does not report"
        assert all(child.poll() is None for child in children), "a child ended by itself"
        time.sleep(0.01)
    for child in children:
        time.sleep(draw.uniform(0, 0.5))
        child.send_signal(signal.SIGKILL)
        child.wait()


@pytest.mark.all
@pytest.mark.broker
@pytest.mark.timeout(200)
def test_killed_children_lose_or_double_no_report(broker, topic_prefix, tmp_path, capsys):
    folder, draw = tmp_path / "data", random.Random(5)
    began = int(time.time()) - 2 * ROUNDS * CALLS_OF_A_CHILD
    firsts = [began + CALLS_OF_A_CHILD * number for number in range(2 * ROUNDS)]
    receipts = {first: tmp_path / f"{first}.jsonl" for first in firsts}
    configs = {"message.timestamp.type": "LogAppendTime"}
    with make_topic(broker, f"{topic_prefix}reports", PARTITIONS, configs) as topic:
        for number in range(ROUNDS):
            pair = firsts[2 * number : 2 * number + 2]
            children = [start(broker, topic, folder, first, receipts[first]) for first in pair]
            kill_later(children, [receipts[first] for first in pair], draw)
        with Producer(config(broker, topic, folder)) as last:
            last.flush()
        records = read(broker, topic)
    packs = {pack.pack_id: pack for pack in (decode(record.value) for record in records)}
    sent = Counter()
    for pack in packs.values():
        sent[pack.window_start] += pack.reports
    shown = [json.loads(line) for path in receipts.values() for line in path.read_text().splitlines()]
    spent = spent_reports(folder)
    stored, refused, pending = (sum(call[place] for call in shown) for place in (1, 2, 3))
    summary = (
        f"{2 * ROUNDS} children killed; {len(shown)} calls returned: {stored} reports stored, {refused} "
        f"refused, {pending} pending; in the topic {sum(sent.values())} reports in {len(packs)} packs, "
        f"{len(records) - len(packs)} packs twice; {spent} reports charged"
    )
    with capsys.disabled():
        sys.stdout.write(f"\n{summary}\n")
    wrong = [(call, sent[call[0]]) for call in shown if not call[3] and sent[call[0]] != call[1]]
    assert wrong == []
    assert stored + refused + pending == REPORTS * len(shown)
    # Of a killed call that did not return, all accepted reports are stored, or none.
    returned = {call[0] for call in shown}
    assert len(sent.keys() - returned) <= 2 * ROUNDS
    assert sum(sent.values()) <= spent
    assert min(stored, refused) > 1000


def spent_reports(folder):
    """Reports charged to all clients together."""
    store = Store(folder)
    spending = Spending(LocalBudgets(store), [ALLOWANCE], time.time())
    keys = ClientKeys(load_secret(folder / "secret")).of(CLIENTS)
    spent = [spending.spent(np.asarray(key), time.time())["carrier"].lifetime_reports for key in keys]
    store.close()
    return sum(spent)
