"""Killed processes that share a store: charges, packs and progress stay consistent."""

import subprocess
import sys

import pytest

from producers.budget.local_budgets import LocalBudgets
from producers.budget.spending import Spending
from producers.storage.input_progress import get_progress
from producers.storage.lane_locks import claim_lane
from producers.storage.outbox import OVERHEAD_BYTES, Outbox
from producers.storage.store import Store
from tests.support.paths import REPOSITORY
from tests.support.producers.store_worker import ALLOWANCE, CLIENTS, KEYS, NOW

LIMIT = int(ALLOWANCE.limits(ALLOWANCE.levels(KEYS[0, :1] * 0.0))[0])


def start(folder, input_name):
    command = [sys.executable, "-m", "tests.support.producers.store_worker", str(folder), input_name]
    root = REPOSITORY
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)


def begin(*workers):
    for worker in workers:
        worker.stdin.write("begin\n")
        worker.stdin.flush()


def left(folder):
    """Return reports in packs, packs, and charged reports of all processes."""
    store = Store(folder)
    assert store.rows("PRAGMA integrity_check") == [("ok",)]
    lane = claim_lane(folder)
    outbox = Outbox(store, lane, folder)
    with store.transaction():
        buffers = outbox.adopt(own=True)
    packs = outbox.waiting(0, 2**30)
    assert outbox.depth(NOW).bytes == (4 + OVERHEAD_BYTES) * len(packs)
    assert all(len(each.reports) == each.window_start % 5 for each in buffers)
    spending = Spending(LocalBudgets(store), [ALLOWANCE], NOW)
    charged = sum(spending.spent(key, NOW)["answers"].reports for key in KEYS)
    done = {name: progress.lines for name in ("a", "b") if (progress := get_progress(store, name))}
    lane.release()
    store.close()
    return sum(int.from_bytes(each.record, "little") for each in packs), len(packs), charged, done


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_kill_never_splits_a_transaction(tmp_path):
    """Ten processes in turn, each killed at an arbitrary point after some transactions."""
    shown = 0
    for round_ in range(10):
        with start(tmp_path, "a") as worker:
            begin(worker)
            for _ in range(1 + 7 * round_ % 11):
                shown = int(worker.stdout.readline())
            worker.kill()
            shown = max([shown, *map(int, worker.stdout.read().split())])
        reports, packs, charged, done = left(tmp_path)
        assert reports == charged == CLIENTS * packs
        assert done == {"a": packs}
        assert shown <= packs <= shown + 1


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_processes_share_every_budget(tmp_path):
    """Both run at once, one is killed and replaced: each client stops at its limit."""
    assert 100 < LIMIT < 5000
    with start(tmp_path, "a") as one, start(tmp_path, "b") as two, start(tmp_path, "b") as three:
        begin(one, two)
        assert two.stdout.readline()
        two.kill()
        two.wait()
        begin(three)
        assert one.stdout.read()
        assert three.stdout.read()
    assert (one.returncode, three.returncode) == (0, 0)
    reports, packs, charged, done = left(tmp_path)
    assert reports == charged == CLIENTS * LIMIT
    assert packs == done["a"] + done["b"]
