"""What clients have spent: counted before anything is sent, never refunded.

The name of a collection is its identity. Under changed parameters (another fingerprint) what a client spent
is carried as epsilon at delta = 0 (see `client_balance`). Each row says under which terms it counts, so
producers with old and with new ones may run at the same time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from producers.budget.allowance import Allowance
from producers.budget.charging import ChargeResult, Ints, changes, charge_rows, horizons
from producers.budget.client_balance import bring_up_to_date
from producers.budget.limits import CollectionLimits
from producers.budget.statement import Spent, spent_in
from producers.budget.table import SpendingTable, keys_of
from producers.budget.terms import raise_horizons, read_terms, register_terms, terms_of
from producers.storage.store import Store


@dataclass(frozen=True)
class _CollectionSpending:
    """One collection: what is known of it, its numbers in the store, and its table."""

    standing: CollectionLimits
    number: int
    terms: int
    table: SpendingTable


class Spending:
    """Charges the clients of some collections.

    Parameters
    ----------
    store : Store.
    allowances : Allowance of each collection, names distinct.
    now : unix seconds.

    Raises
    ------
    StoreError if the store cannot be written.
    """

    def __init__(self, store: Store, allowances: Iterable[Allowance], now: float) -> None:
        self._standings = {each.collection.name: CollectionLimits(each) for each in allowances}
        self.reopen(store, now)

    def reopen(self, store: Store, now: float) -> None:
        """Go on in the same store, opened anew; what is known of its clients is kept.

        Parameters
        ----------
        store, now : as of the class.

        Raises
        ------
        StoreError if the store cannot be written or read.
        """
        self._store = store
        self._books: dict[str, _CollectionSpending] = {}
        with store.transaction():
            for name, standing in self._standings.items():
                self._books[name] = self._register(standing)
        for book in self._books.values():
            if not book.standing.is_scanned:
                for heads in book.table.heads():
                    book.standing.note(self._present(book, heads, now))
                book.standing.is_scanned = True

    def charge(self, name: str, clients: NDArray[np.uint8], windows: Ints, now: float) -> ChargeResult:
        """Count reports as sent, in the order given, in the present transaction; refuse those over a limit.

        Parameters
        ----------
        name : of the collection.
        clients : uint8 (n, 16), keyed hashes.
        windows : int64 (n,), start of each report's window, unix seconds.
        now : unix seconds.

        Raises
        ------
        StoreError if the store cannot be written; UnknownLimitError, if a limit must be found before they can
        be charged: once it is, with the store closed, the same may be charged again.
        """
        book = self._books[name]
        order, keys, owners = _by_client(keys_of(clients))
        rows = book.table.load(keys, book.terms)
        rows.heads = self._present(book, rows.heads, now)
        allowance = book.standing.allowance
        earliest = int(now) - allowance.collection.window_seconds - allowance.collection.grace_seconds
        horizon = raise_horizons(self._store, book.number, earliest)[book.terms]
        book.standing.seconds_ahead = horizon - earliest
        charged, rows = charge_rows(
            rows,
            owners,
            windows[order],
            book.standing.limits(rows.heads["carried"]),
            allowance.reports_per_window,
            horizons(rows, earliest, horizon),
            earliest,
        )
        changed = np.flatnonzero(np.bincount(owners[charged.accepted]))
        book.table.save(keys, rows, changed)
        book.standing.note(rows.heads[changed])
        accepted = np.empty_like(charged.accepted)
        accepted[order] = charged.accepted
        return replace(charged, accepted=accepted)

    def spent(self, client: NDArray[np.uint8], now: float) -> dict[str, Spent]:
        """What a client has spent, by collection.

        Parameters
        ----------
        client : uint8 (16,), keyed hash.
        now : unix seconds.
        """
        return {
            name: spent_in(self._store, book.number, book.standing.allowance, client, now)
            for name, book in self._books.items()
        }

    def largest_ratio(self, name: str, now: float) -> float:
        """Largest share of its budget that one client has spent in this period; 0 without a budget.

        Of all clients when this began, then of those that are charged here: other processes tell of theirs. A
        transaction that was rolled back counts.
        """
        return self._standings[name].largest_ratio(now)

    def warnings(self) -> list[str]:
        """What an operator must know of clocks, each told once."""
        told = (standing.warning() for standing in self._standings.values())
        return [each for each in told if each is not None]

    def _register(self, standing: CollectionLimits) -> _CollectionSpending:
        name, rows = standing.allowance.collection.name, self._store.rows
        rows("INSERT OR IGNORE INTO collections (name) VALUES (?)", name)
        ((number,),) = rows("SELECT number FROM collections WHERE name = ?", name)
        terms = register_terms(self._store, number, terms_of(standing.allowance))
        table = SpendingTable(self._store, number)
        table.make()
        return _CollectionSpending(standing, number, terms, table)

    def _present(self, book: _CollectionSpending, heads: NDArray[np.void], now: float) -> NDArray[np.void]:
        terms = read_terms(self._store, book.number)
        if not terms.keys() >= set(heads["terms"].tolist()):
            raise self._store.damaged()
        return bring_up_to_date(heads, now, book.terms, terms)


def _by_client(keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Order of reports by client, each one's as they came; the distinct keys, rising; whose each report is.

    Parameters
    ----------
    keys : int64 (n,), of each report's client.

    Returns
    -------
    int64 (n,); int64 (m,); int64 (n,), in [0, m), in that order.
    """
    order = np.argsort(keys, kind="stable")
    is_first = changes(keys[order])
    return order, keys[order][is_first], np.cumsum(is_first) - 1
