"""Limits of clients in the time of the events: the producer's accounting, with periods of the past.

Rule: a report counts in the budget's period in which its window starts, whatever the order of the events. So
all reports of a window are in one period, and readers, who see windows alone, see the period of each.

The accounting knows one present period, and forgets windows that are closed. So to it each client is another
one in each period, at a time that stands still.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.allowance import UNLIMITED, Allowance
from deniable.producers.budget.charging import ChargeResult
from deniable.producers.budget.local_budgets import LocalBudgets
from deniable.producers.budget.spending import Spending
from deniable.producers.budget.stored_rows import KEY_BYTES
from deniable.producers.randomization.prf import ClientKeys
from deniable.producers.storage.store import Store
from deniable.protocol.secrets.secret import Secret

NOW = 0.0  # before every window: none is ever closed


def period_seconds(allowance: Allowance) -> int:
    """Return the length of the periods whose reports count together.

    A window, where nothing limits a client beyond it: then the rows of clients stay short.
    """
    if allowance.budget is None or allowance.unspent_limit == UNLIMITED:
        return allowance.collection.window_seconds
    return allowance.budget.period_seconds


class PastLimits:
    """Decides which reports of clients count, first come, first served.

    Parameters
    ----------
    allowance : of the collection, without `changes`, which are limited over all periods.
    secret : that keys the hashes of clients.
    folder : of a new store, deleted after the run.

    Raises
    ------
    StoreError if the store cannot be used.
    """

    def __init__(self, allowance: Allowance, secret: Secret, folder: Path) -> None:
        self._name = allowance.collection.name
        self._seconds = period_seconds(allowance)
        self._keys = ClientKeys(secret)
        self._store = Store(folder)
        self._spending = Spending(LocalBudgets(self._store), [allowance], NOW)

    def charge(self, clients: list[str], windows: NDArray[np.int64]) -> ChargeResult:
        """Charge a report of each client in each window, int64 (n,), in the order given.

        Raises
        ------
        StoreError if the store cannot be written.
        """
        keys = self._keys.of(clients).copy()
        # Exclusive or keeps the keys of one period distinct. Those of two periods coincide as rarely as
        # those of two clients, and then the limits are only stricter.
        keys[:, :KEY_BYTES].view("<u8")[:, 0] ^= (windows // self._seconds).astype(np.uint64)
        with self._store.transaction():
            return self._spending.charge(self._name, keys, windows, NOW)

    def close(self) -> None:
        """Close the store."""
        self._store.close()
