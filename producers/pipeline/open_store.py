"""The open store of a producer: spending, outbox, and a lane of the outbox."""

from dataclasses import dataclass

import numpy as np

from deniable.producers.budget.local_budgets import LocalBudgets
from deniable.producers.budget.spending import Spending
from deniable.producers.concurrency.clock import Clock
from deniable.producers.config import ProducerConfig
from deniable.producers.storage.lane_locks import OutboxLane, claim_lane
from deniable.producers.storage.outbox import Outbox
from deniable.producers.storage.store import FileId, Store, StoreError, check_identity
from deniable.protocol.secrets.secret import Secret

BUSY_SECONDS = 0.05
_UNSPENT = np.zeros(1, np.int64)


@dataclass(frozen=True)
class OpenStore:
    """An open store, with its outbox, and spending unless that is in another store."""

    store: Store
    outbox: Outbox
    spending: Spending | None


class StoreHandle:
    """Opens the store on demand. Used by one thread at a time.

    Parameters
    ----------
    config : of the producer.
    secret : with which the store was created.
    clock : unix and steady seconds.
    """

    def __init__(self, config: ProducerConfig, secret: Secret, clock: Clock) -> None:
        self._config = config
        self._secret = secret
        self._clock = clock
        self._lane: OutboxLane | None = None
        self._open: OpenStore | None = None
        self._spending: Spending | None = None
        self._file_id: FileId | None = None

    def opened(self) -> OpenStore:
        """Return the open store; open it if it is closed.

        Raises
        ------
        BusyError if another process has held the store for BUSY_SECONDS, also in later calls on it;
        other StoreError if it cannot be opened; SecretError if it was created with another secret.
        """
        if self._open is None:
            for allowance in self._config.allowances:
                # Takes seconds for some mechanisms, so do it before the store is open.
                allowance.limits(_UNSPENT)
            store = Store(self._config.data_dir, busy_seconds=BUSY_SECONDS, reopened=self._file_id)
            try:
                check_identity(store, self._secret)
                self._lane = self._lane or claim_lane(self._config.data_dir)
                outbox = Outbox(store, self._lane, self._config.data_dir, self._config.outbox_bytes)
                spending = self._spent_in(store)
            except BaseException:
                store.close()
                raise
            self._open = OpenStore(store, outbox, spending)
            self._file_id = store.file_id
        return self._open

    def _spent_in(self, store: Store) -> Spending | None:
        """Return the spending of a newly opened store, with the limits known from before."""
        now = self._clock.unix()
        if self._config.budget_store is not None:
            _check_unspent(store)
            return None
        if self._spending is None:
            self._spending = Spending(LocalBudgets(store), self._config.allowances, now)
        else:
            self._spending.reopen(LocalBudgets(store), now)
        return self._spending

    def suspend(self) -> None:
        """Close the store until it is needed again: it must not be open when the process forks."""
        if self._open is not None:
            self._open.store.close()
            self._open = None

    def close(self) -> None:
        """Close the store and free its lane for the next producer."""
        self.suspend()
        if self._lane is not None:
            self._lane.release()
            self._lane = None


def _check_unspent(store: Store) -> None:
    """Raise StoreError if clients were charged here: another store would give them new budgets."""
    if LocalBudgets(store).has_spending():
        raise StoreError(
            f"store {store.path}: clients were charged in it, and with budget_store they would get new "
            "budgets; use another data_dir once the present periods of all budgets have ended, or leave out "
            "budget_store"
        )
