"""The store handle computes limits before it opens the store, and keeps state while the store is closed."""

import numpy as np
import pytest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.budget.local_budgets import LocalBudgets
from deniable.producers.concurrency.clock import Clock
from deniable.producers.config import ProducerConfig
from deniable.producers.pipeline import open_store
from deniable.producers.pipeline.open_store import StoreHandle
from deniable.producers.storage.store import Store
from deniable.protocol.secrets.secret import Secret

NOW = 1_700_000_000
ALLOWANCE = Allowance(Collection("answers", KRR.from_epsilon(100, 1.0)), Budget(8.0, 1e-6, 86_400))
CLIENT = np.zeros((1, 16), np.uint8)


@pytest.fixture
def handle(tmp_path):
    config = ProducerConfig(
        allowances=(ALLOWANCE,),
        bootstrap_servers="127.0.0.1:9",
        topic="reports",
        partitions=1,
        data_dir=tmp_path,
    )
    handle = StoreHandle(config, Secret(bytes(32)), Clock(unix=lambda: NOW))
    yield handle
    handle.close()


def charge(opened):
    with opened.store.transaction():
        return opened.spending.charge("answers", CLIENT, np.array([NOW // 60 * 60]), NOW)


def test_limits_are_computed_before_the_store_is_opened(handle, monkeypatch):
    steps, limits = [], Allowance.limits
    monkeypatch.setattr(Allowance, "limits", lambda *given: steps.append("limits") or limits(*given))
    monkeypatch.setattr(
        open_store, "Store", lambda *given, **named: steps.append("open") or Store(*given, **named)
    )
    handle.opened()
    assert steps[:2] == ["limits", "open"]


def test_reopening_the_store_does_not_rescan_clients(handle, monkeypatch):
    scans, scan = [], LocalBudgets.balances
    monkeypatch.setattr(LocalBudgets, "balances", lambda *given: scans.append(1) or scan(*given))
    assert charge(handle.opened()).accepted.all()
    handle.suspend()
    opened = handle.opened()
    assert opened.spending.used(NOW) == {"answers": ALLOWANCE.epsilon(1) / 8.0}
    assert charge(opened).refused()["over_window"] == 1
    assert scans == [1]
