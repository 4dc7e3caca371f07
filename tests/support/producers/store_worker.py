"""A process that charges clients and keeps packs until it is killed; run by test_store_kills.

Each transaction charges one report of each of CLIENTS clients, stores a pack with the number accepted, and
updates the number of transactions under this name. Each number is printed once it is durable. Work begins
when a line arrives on stdin.
"""

import sys
from pathlib import Path

import numpy as np

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from producers.budget.allowance import Allowance, Budget
from producers.budget.local_budgets import LocalBudgets
from producers.budget.spending import Spending
from producers.storage.input_progress import InputProgress, get_progress, set_progress
from producers.storage.lane_locks import claim_lane
from producers.storage.outbox import Outbox, StoredBuffer
from producers.storage.store import Store

NOW = 1_700_000_000
CLIENTS = 20
KEYS = np.arange(CLIENTS * 2, dtype="<u8").reshape(CLIENTS, 2).view(np.uint8)
ALLOWANCE = Allowance(
    Collection("answers", KRR.from_epsilon(100, 0.1)), Budget(1.0, 1e-6, 86400), reports_per_window=1
)


def work(folder, input_name):
    """Run until the budget of all clients is spent."""
    store = Store(folder, busy_seconds=30)
    outbox = Outbox(store, claim_lane(folder), folder)
    spending = Spending(LocalBudgets(store), [ALLOWANCE], NOW)
    with store.transaction():
        outbox.save(outbox.adopt(own=True))
    accepted = 1
    while accepted:
        with store.transaction():
            done = get_progress(store, input_name)
            lines = done.lines + 1 if done else 1
            windows = np.full(CLIENTS, NOW + 60 * lines + 60_000_000 * sum(input_name.encode()))
            accepted = int(spending.charge("answers", KEYS, windows, NOW).accepted.sum())
            outbox.put([accepted.to_bytes(4, "little")], NOW)
            outbox.save([StoredBuffer(1, lines, 0, bytes(lines % 5))])
            set_progress(store, input_name, InputProgress(0, 0, lines, b""))
        sys.stdout.write(f"{lines}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.stdin.readline()
    work(Path(sys.argv[1]), sys.argv[2])
