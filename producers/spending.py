"""What clients have spent: counted before anything is sent, never refunded.

A client is known by 8 of the 16 bytes of its keyed hash, the key of an SQLite table for each collection. Of
a million clients two share a row with probability 3e-8; they would share one budget, which only over-counts.

The name of a collection is its identity. Under changed parameters (another fingerprint) what a client spent
is carried as epsilon at delta = 0 (see `charging.carry`). Each row says under which parameters it counts, so
producers with old and with new ones may run at the same time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from producers.budget import LEVELS, Allowance
from producers.charging import Charged, Ints, carry, charge_rows, roll
from producers.spending_table import SpendingTable
from producers.store import Store

KEY_BYTES = 8


@dataclass(frozen=True)
class Spent:
    """What one client has spent in one collection, or in several together.

    Parameters
    ----------
    reports, epsilon : in the present period, at the budget's delta.
    lifetime_reports, lifetime_epsilon : since it first reported.

    Both epsilons include what was spent under earlier parameters; the numbers of reports do not.
    """

    reports: int
    epsilon: float
    lifetime_reports: int
    lifetime_epsilon: float


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

    @property
    def period_seconds(self) -> int | None:
        budget = self.allowance.budget
        return None if budget is None else budget.period_seconds


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
        with store.transaction():
            for allowance in allowances:
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
        keys, owners = np.unique(_keys(clients), return_inverse=True)
        rows = book.table.load(keys, book.terms)
        rows.heads = self._present(book, rows.heads, now)
        charged, rows = charge_rows(
            rows,
            owners,
            windows,
            book.allowance.limits(book.allowance.levels(rows.heads["carried"])),
            book.allowance.reports_per_window,
            self._horizon(book, int(now) - collection.window_seconds - collection.grace_seconds),
        )
        changed = np.flatnonzero(np.bincount(owners[charged.accepted]))
        book.table.save(keys, rows, changed)
        self._note_largest(book, rows.heads[changed])
        return charged

    def spent(self, client: NDArray[np.uint8], now: float) -> dict[str, Spent]:
        """What a client has spent, by collection.

        Parameters
        ----------
        client : uint8 (16,), keyed hash.
        now : unix seconds.
        """
        key = _keys(client[np.newaxis])
        return {name: self._spent(book, key, now) for name, book in self._books.items()}

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
        meaning = (number, collection.fingerprint.to_bytes(8, "little"))
        rows(
            "INSERT OR IGNORE INTO terms (collection, fingerprint, epsilon_per_report, epsilon_inf)"
            " VALUES (?, ?, ?, ?)",
            *meaning,
            allowance.epsilon_per_report,
            allowance.epsilon_inf,
        )
        ((terms,),) = rows("SELECT number FROM terms WHERE collection = ? AND fingerprint = ?", *meaning)
        return _Book(allowance, number, terms, SpendingTable(self._store, number))

    def _present(self, book: _Book, heads: NDArray[np.void], now: float) -> NDArray[np.void]:
        """Heads as of now: in the present period and under the present terms."""
        found = self._store.rows(
            "SELECT number, epsilon_per_report, epsilon_inf FROM terms WHERE collection = ?", book.number
        )
        heads = roll(heads, now, book.period_seconds)
        return carry(heads, book.terms, {number: price for number, *price in found})

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

    def _spent(self, book: _Book, key: Ints, now: float) -> Spent:
        rows = book.table.load(key, book.terms)
        (head,) = self._present(book, rows.heads, now)
        reports, lifetime = int(head["reports"]), int(head["lifetime"])
        return Spent(
            reports,
            float(head["carried"]) + book.allowance.epsilon(reports),
            lifetime,
            float(head["carried_lifetime"]) + book.allowance.epsilon(lifetime),
        )


def total(spent: Iterable[Spent]) -> Spent:
    """All together: epsilons of different collections add up."""
    each = list(spent)
    return Spent(
        sum(one.reports for one in each),
        sum(one.epsilon for one in each),
        sum(one.lifetime_reports for one in each),
        sum(one.lifetime_epsilon for one in each),
    )


def _keys(clients: NDArray[np.uint8]) -> Ints:
    return np.ascontiguousarray(clients[:, :KEY_BYTES]).view("<i8").ravel()
