"""Four producers without a common folder, killed at random with their database: no client exceeds its limit.

All reports of a client are in a window of its own, so the topic shows how many were sent for it.
"""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing

import pytest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.config.settings.budget_database import BudgetDatabase
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.budget.postgres.budgets import PostgresBudgets
from deniable.producers.budget.statement import Statements
from deniable.producers.config import ProducerConfig
from deniable.producers.producer import Producer
from deniable.protocol.secrets.secret import load_secret
from deniable.protocol.wire import decode
from tests.support.paths import REPOSITORY
from tests.support.producers.postgres_server import postgres_server
from tests.support.producers.topics import make_topic, read

ROUNDS = 12
PODS = 4
CLIENTS_OF_A_ROUND = 40
REPORTS = 20
PARTITIONS = 3
ALLOWANCE = Allowance(
    Collection(
        "carrier",
        KRR.from_epsilon(4, 1.0),
        values=("AA", "B6", "9E"),
        other=True,
        window_seconds=1,
        grace_seconds=10**8,
    ),
    Budget(epsilon=24.0, delta=1e-6, period_seconds=10 * 366 * 86_400),
    reports_per_window=65_535,
)


def pod(broker, topic, folder, url):
    return ProducerConfig(
        allowances=(ALLOWANCE,),
        bootstrap_servers=broker,
        topic=topic,
        partitions=PARTITIONS,
        data_dir=folder,
        secret_file=folder.parent / "secret",
        budget_store=BudgetDatabase(url),
        pack_reports=15,
        pack_seconds=0.05,
        block_milliseconds=60_000,
    )


def produce(broker, topic, folder, url, first):
    """Report for the clients of a round until killed; the first output line follows the first receipt."""
    draw = random.Random(str(folder))
    with Producer(pod(broker, topic, folder, url)) as producer:
        while True:
            seconds = [first + draw.randrange(CLIENTS_OF_A_ROUND) for _ in range(REPORTS)]
            clients = [f"client-{second}" for second in seconds]
            producer.report("carrier", ["AA"] * REPORTS, clients, at=seconds)
            sys.stdout.write("reported\n")
            sys.stdout.flush()


def start(broker, topic, folder, url, first):
    code = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
from pathlib import Path
from tests.scenarios.producers.test_shared_budgets import produce
produce({broker!r}, {topic!r}, Path({str(folder)!r}), {url!r}, {first})
"""
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE)


def kill(pods, draw, server):
    """Kill pods at random moments after their first reports; in between, perhaps the server."""
    for each in pods:
        assert each.stdout.readline() == b"reported\n"
    for number, each in enumerate(pods):
        time.sleep(draw.uniform(0, 0.3))
        if number == 1 and draw.random() < 0.3:
            server.kill()
            time.sleep(draw.uniform(0, 0.3))
            server.start()
        each.send_signal(signal.SIGKILL)
        each.stdout.close()
        each.wait()


@pytest.mark.broker
@pytest.mark.timeout(400)
@pytest.mark.nightly
def test_killed_pods_and_database_overspend_no_budget(broker, topic_prefix, tmp_path, capsys):
    """Pods of even number keep their folders, as with a volume; others begin with an empty one."""
    secret, draw = load_secret(tmp_path / "secret"), random.Random(7)
    began = int(time.time()) - 10**7
    configs = {"message.timestamp.type": "LogAppendTime"}
    with (
        make_topic(broker, f"{topic_prefix}reports", PARTITIONS, configs) as topic,
        postgres_server() as server,
    ):
        for number in range(ROUNDS):
            first = began + number * CLIENTS_OF_A_ROUND
            folders = [
                tmp_path / (f"{each}" if each % 2 == 0 else f"{each}-{number}") for each in range(PODS)
            ]
            kill([start(broker, topic, each, server.url(), first) for each in folders], draw, server)
        for each in range(0, PODS, 2):
            with Producer(pod(broker, topic, tmp_path / f"{each}-kept", server.url())) as last:
                last.flush()
        records = read(broker, topic)
        charged = charged_reports(server.url(), secret, began)
    packs = {pack.pack_id: pack for pack in (decode(record.value) for record in records)}
    sent = Counter()
    for pack in packs.values():
        sent[pack.window_start] += pack.reports
    limit = ALLOWANCE.unspent_limit
    overspent = {second: sent[second] for second in sent if sent[second] > limit}
    exhausted = sum(reports >= limit for reports in charged.values())
    with capsys.disabled():
        sys.stdout.write(
            f"\n{ROUNDS} rounds, {ROUNDS * PODS} producers killed; {len(charged)} clients, each allowed "
            f"{limit} reports: {sum(charged.values())} charged, {sum(sent.values())} sent, "
            f"{exhausted} clients at their limit, {len(overspent)} over it\n"
        )
    assert overspent == {}
    assert max(charged.values()) == limit
    assert all(sent[second] <= charged[second] for second in sent)
    assert exhausted > ROUNDS  # else no limit was tried
    assert sum(sent.values()) > sum(charged.values()) / 2


def charged_reports(url, secret, began):
    """Reports charged to each client, by the second of its window."""
    budgets = PostgresBudgets(BudgetDatabase(url), secret)
    with closing(budgets):
        statements = Statements(budgets, secret, [ALLOWANCE], budgets.close)
        seconds = range(began, began + ROUNDS * CLIENTS_OF_A_ROUND)
        return {
            second: statements.of(f"client-{second}", time.time())["carrier"].lifetime_reports
            for second in seconds
        }
