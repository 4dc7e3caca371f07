"""Charges a second: budgets in PostgreSQL beside budgets in a folder, by reports charged together."""

import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from itertools import repeat
from pathlib import Path
from statistics import median

import click
import numpy as np
from numpy.typing import NDArray

from bench.sections import ResultRow, Section
from deniable.config.settings.allowance import Allowance, Budget
from deniable.config.settings.budget_database import BudgetDatabase
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.budget.local_budgets import LocalBudgets
from deniable.producers.budget.postgres.budgets import PostgresBudgets
from deniable.producers.budget.spending import Spending
from deniable.producers.storage.store import Store
from deniable.protocol.secrets.secret import Secret
from tests.support.producers.postgres_server import PostgresServer, postgres_server

CLIENTS = 1_000_000
BATCHES = (1, 100, 1_000, 10_000, 30_000)
PRODUCERS = 4
SECONDS = 3.0
RUNS = 3
ABOUT = """\
Each charge is one report of one of a million clients with a budget, all of whom have reported before. A
batch is one transaction, on disk (fsync) when it ends. The server is a new one on loopback, with its
defaults."""
ALLOWANCE = Allowance(
    Collection("carrier", KRR.from_epsilon(16, 1.0), window_seconds=3600, grace_seconds=3600),
    Budget(epsilon=10_000.0, delta=1e-6, period_seconds=86_400),
    reports_per_window=65_535,
)
# Odd multipliers: different numbers of clients have different products.
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


class Charging:
    """One producer's charges.

    Parameters
    ----------
    store : Store of a folder, or PostgresBudgets.
    """

    def __init__(self, store: Store | PostgresBudgets) -> None:
        self._store = store
        budgets = LocalBudgets(store) if isinstance(store, Store) else store
        self._spending = Spending(budgets, [ALLOWANCE], time.time())

    def charge(self, clients: NDArray[np.int64]) -> None:
        """Charge a report of each client in one transaction; ClickException if one is refused."""
        now = time.time()
        keys = (clients.astype(np.uint64)[:, None] * _MULTIPLIERS).view(np.uint8)
        windows = np.full(len(clients), int(now) // 3600 * 3600)
        with self._store.transaction():
            charged = self._spending.charge("carrier", keys, windows, now)
        if not charged.accepted.all():
            raise click.ClickException("a report was refused: the benchmark's budget is too small")

    def fill(self) -> None:
        """Charge each client once."""
        for first in range(0, CLIENTS, 50_000):
            self.charge(np.arange(first, first + 50_000))

    def rate(self, batch: int, seed: int) -> float:
        """Charge batches of random clients for SECONDS; return charges a second."""
        draw = np.random.default_rng(seed)
        began, batches = time.monotonic(), 0
        while (took := time.monotonic() - began) < SECONDS:
            self.charge(draw.integers(0, CLIENTS, batch))
            batches += 1
        return batch * batches / took


def database_rate(url: str, batch: int, seed: int) -> float:
    """Charges a second of one producer of a database."""
    with closing(PostgresBudgets(BudgetDatabase(url), Secret(bytes(32)))) as budgets:
        return Charging(budgets).rate(batch, seed)


def compare(folder: Path, server: PostgresServer) -> list[ResultRow]:
    """Return the rows of the table: medians of RUNS, the stores by turns."""
    url = server.new_database()
    workers = ProcessPoolExecutor(PRODUCERS, multiprocessing.get_context("spawn"))
    with (
        closing(Store(folder)) as store,
        closing(PostgresBudgets(BudgetDatabase(url), Secret(bytes(32)))) as budgets,
        workers,
    ):
        local, shared = Charging(store), Charging(budgets)
        local.fill()
        shared.fill()
        rows: list[ResultRow] = []
        for batch in BATCHES:
            rates = [
                (
                    local.rate(batch, seed),
                    shared.rate(batch, seed),
                    sum(workers.map(database_rate, repeat(url), repeat(batch), range(PRODUCERS))),
                )
                for seed in range(RUNS)
            ]
            folder_rate, alone, together = (median(each) for each in zip(*rates, strict=True))
            rows.append(
                {
                    "reports a batch": batch,
                    "folder, charges/s": round(folder_rate),
                    "PostgreSQL, charges/s": round(alone),
                    f"PostgreSQL, {PRODUCERS} producers, charges/s": round(together),
                }
            )
    return rows


def charges() -> Section:
    """Measure on a new server and in a new folder."""
    with tempfile.TemporaryDirectory() as name, postgres_server() as server:
        return Section(ABOUT, compare(Path(name), server))


CASES = {"charges a second": charges}
