"""What clients have spent: counted before anything is sent, never refunded.

The name of a collection is its identity. Under changed parameters (another fingerprint) what a client spent
is carried as epsilon at delta = 0 (see `producers.heads`). Each row says under which terms it counts, so
producers with old and with new ones may run at the same time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from producers.budget import LEVELS, Allowance
from producers.charging import Charged, Ints, changes, charge_rows
from producers.heads import present
from producers.spending_table import SpendingTable, keys_of
from producers.spent import Spent, spent_in
from producers.store import Store
from producers.terms import read_terms, register_terms, terms_of

_UNSPENT = np.zeros(1, np.int64)


@dataclass
class _Book:
    """One collection: its rule, its numbers in the store, its table, and the most that one client spent.

    `largest` has the most reports in the period that ends at `until`, by level of what was carried into it.
    """

    allowance: Allowance
    number: int
    terms: int
    table: SpendingTable
    until: int = 0
    largest: dict[int, int] = field(default_factory=dict)


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
        self._store = store
        self._books: dict[str, _Book] = {}
        rules = list(allowances)
        for allowance in rules:
            allowance.limits(_UNSPENT)  # Seconds, for some mechanisms: not while others wait for the store.
        with store.transaction():
            for allowance in rules:
                self._books[allowance.collection.name] = self._register(allowance)
        for book in self._books.values():
            for heads in book.table.heads():
                self._note_largest(book, self._present(book, heads, now))

    def charge(self, name: str, clients: NDArray[np.uint8], windows: Ints, now: float) -> Charged:
        """Count reports as sent, in the order given, in the present transaction; refuse those over a limit.

        Parameters
        ----------
        name : of the collection.
        clients : uint8 (n, 16), keyed hashes.
        windows : int64 (n,), start of each report's window, unix seconds.
        now : unix seconds.

        Raises
        ------
        StoreError if the store cannot be written.
        """
        book = self._books[name]
        collection = book.allowance.collection
        order, keys, owners = _by_client(keys_of(clients))
        rows = book.table.load(keys, book.terms)
        rows.heads = self._present(book, rows.heads, now)
        charged, rows = charge_rows(
            rows,
            owners,
            windows[order],
            book.allowance.limits(book.allowance.levels(rows.heads["carried"])),
            book.allowance.reports_per_window,
            self._horizon(book, int(now) - collection.window_seconds - collection.grace_seconds),
        )
        changed = np.flatnonzero(np.bincount(owners[charged.accepted]))
        book.table.save(keys, rows, changed)
        self._note_largest(book, rows.heads[changed])
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
            name: spent_in(self._store, book.number, book.allowance, client, now)
            for name, book in self._books.items()
        }

    def largest_ratio(self, name: str, now: float) -> float:
        """Largest share of its budget that one client has spent in this period; 0 without a budget.

        Of all clients when this began, then of those that are charged here: other processes tell of theirs. A
        transaction that was rolled back counts.
        """
        book = self._books[name]
        budget = book.allowance.budget
        if budget is None or now >= book.until:
            return 0.0
        shares = [
            level / LEVELS + book.allowance.epsilon(reports) / budget.epsilon
            for level, reports in book.largest.items()
        ]
        return min(1.0, max(shares, default=0.0))

    def _register(self, allowance: Allowance) -> _Book:
        collection = allowance.collection
        rows = self._store.rows
        rows("INSERT OR IGNORE INTO collections (name, horizon) VALUES (?, 0)", collection.name)
        ((number,),) = rows("SELECT number FROM collections WHERE name = ?", collection.name)
        terms = register_terms(self._store, number, terms_of(allowance))
        table = SpendingTable(self._store, number)
        table.make()
        return _Book(allowance, number, terms, table)

    def _present(self, book: _Book, heads: NDArray[np.void], now: float) -> NDArray[np.void]:
        return present(heads, now, book.terms, read_terms(self._store, book.number))

    def _horizon(self, book: _Book, earliest: int) -> int:
        """Start of the earliest open window. It never goes back, since closed windows are forgotten."""
        ((horizon,),) = self._store.rows(
            "UPDATE collections SET horizon = max(horizon, ?) WHERE number = ? RETURNING horizon",
            earliest,
            book.number,
        )
        return int(horizon)

    def _note_largest(self, book: _Book, heads: NDArray[np.void]) -> None:
        if book.allowance.budget is None or not len(heads):
            return
        until = int(heads["until"].max())
        if until > book.until:
            book.until, book.largest = until, {}
        levels = book.allowance.levels(heads["carried"])
        for level in np.flatnonzero(np.bincount(levels)).tolist():
            most = int(heads["reports"][levels == level].max())
            book.largest[level] = max(most, book.largest.get(level, 0))


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
