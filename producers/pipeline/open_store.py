"""What a producer has open of its folder: the store, what is kept in it, and a lane."""

from dataclasses import dataclass

import numpy as np

from producers.budget.spending import Spending
from producers.concurrency.clock import Clock
from producers.config import ProducerConfig
from producers.randomization.secret import Secret
from producers.storage.lane_locks import OutboxLane, claim_lane
from producers.storage.outbox import Outbox
from producers.storage.store import Store, check_identity

BUSY_SECONDS = 0.05
_UNSPENT = np.zeros(1, np.int64)


@dataclass(frozen=True)
class OpenStore:
    """The open store, and what is kept in it."""

    store: Store
    outbox: Outbox
    spending: Spending


class StoreHandle:
    """Opens the books when they are asked for. Used by one thread at a time.

    Parameters
    ----------
    config : ProducerConfig.
    secret : that the store must have been begun with.
    clock : Clock.
    """

    def __init__(self, config: ProducerConfig, secret: Secret, clock: Clock) -> None:
        self._config = config
        self._secret = secret
        self._clock = clock
        self._lane: OutboxLane | None = None
        self._books: OpenStore | None = None
        self._spending: Spending | None = None

    def opened(self) -> OpenStore:
        """The books, opened if they are not.

        Raises
        ------
        BusyError if another process has held the store for BUSY_SECONDS, also in what is done with the books;
        other StoreError if it cannot be opened; SecretError if it was begun with another secret.
        """
        if self._books is None:
            for allowance in self._config.allowances:
                allowance.limits(_UNSPENT)  # Seconds, for some mechanisms: not while the store is open.
            store = Store(self._config.data_dir, busy_seconds=BUSY_SECONDS)
            try:
                check_identity(store, self._secret)
                self._lane = self._lane or claim_lane(self._config.data_dir)
                outbox = Outbox(store, self._lane, self._config.data_dir, self._config.outbox_bytes)
                spending = self._spent_in(store)
            except BaseException:
                store.close()
                raise
            self._books = OpenStore(store, outbox, spending)
        return self._books

    def _spent_in(self, store: Store) -> Spending:
        """Spending in a store that was opened just now; what was scanned of it before is kept."""
        now = self._clock.unix()
        if self._spending is None:
            self._spending = Spending(store, self._config.allowances, now)
        else:
            self._spending.reopen(store, now)
        return self._spending

    def suspend(self) -> None:
        """Close the store until it is asked for: an open one must not be there when the process forks."""
        if self._books is not None:
            self._books.store.close()
            self._books = None

    def close(self) -> None:
        """Close the store, and leave what is in it to the next producer."""
        self.suspend()
        if self._lane is not None:
            self._lane.release()
            self._lane = None
