"""Budgets in the store of a producer's folder: one table for the clients of each collection."""

from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.spending_terms import FINGERPRINT_BYTES, SpendingTerms
from deniable.producers.budget.budget_store import Registered
from deniable.producers.budget.charging import ClientRows, Ints
from deniable.producers.budget.stored_rows import balances_of, packed, rows_of
from deniable.producers.storage.store import Store, StoreError

PERIOD_BYTES = 8
SCANNED_ROWS = 65_536


class LocalBudgets:
    """A `BudgetStore` in SQLite, whose transactions are those of the store.

    Parameters
    ----------
    store : Store.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def register(self, terms: Mapping[str, SpendingTerms]) -> dict[str, Registered]:
        """Store terms unless they are known; see `BudgetStore`."""
        with self._store.transaction():
            return {name: self._register(name, each) for name, each in terms.items()}

    def numbers(self) -> dict[str, int]:
        """Return the number of each collection by name."""
        return dict(self._store.rows("SELECT name, number FROM collections ORDER BY number"))

    def terms(self, collection: int) -> dict[int, SpendingTerms]:
        """Return all terms of a collection, by number."""
        found = self._store.rows(
            "SELECT number, fingerprint, epsilon_per_report, epsilon_inf FROM terms WHERE collection = ?",
            collection,
        )
        return {number: SpendingTerms.stored(*_split(column), *each) for number, column, *each in found}

    def raise_horizons(self, collection: int, earliest: int) -> dict[int, int]:
        """Raise the horizons of a collection's terms; see `BudgetStore`."""
        return dict(
            self._store.rows(
                "UPDATE terms SET horizon = max(horizon, ?) WHERE collection = ? RETURNING number, horizon",
                earliest,
                collection,
            )
        )

    def load(self, collection: int, keys: Ints, terms: int) -> ClientRows:
        """Load clients' rows; see `BudgetStore`."""
        places, spent = [], []
        select = f"SELECT key, spent FROM json_each(?) CROSS JOIN {_table(collection)} ON client = value"  # noqa: S608
        for place, blob in self._store.each(select, _listed(keys)):
            places.append(place)
            spent.append(blob)
        try:
            return rows_of(len(keys), terms, places, spent)
        except ValueError:
            raise self.damaged() from None

    def save(self, collection: int, keys: Ints, rows: ClientRows, chosen: Ints) -> None:
        """Replace rows; see `BudgetStore`."""
        replace = (
            f"REPLACE INTO {_table(collection)}"  # noqa: S608
            " SELECT value, substr(?2, key * ?3 + 1, ?3) FROM json_each(?1)"
        )
        for same, spent in packed(rows, chosen):
            self._store.rows(replace, _listed(keys[same]), spent.tobytes(), spent.shape[1])

    def balances(self, collection: int) -> Iterator[NDArray[np.void]]:
        """Yield the balances of all clients, CLIENT_BALANCE (up to SCANNED_ROWS,) at a time."""
        scanned = self._store.each(f"SELECT spent FROM {_table(collection)}")  # noqa: S608
        while spent := [blob for (blob,) in islice(scanned, SCANNED_ROWS)]:
            try:
                yield balances_of(spent)
            except ValueError:
                raise self.damaged() from None

    def damaged(self) -> StoreError:
        """Return the error to raise if the store has content that was never written to it."""
        return self._store.damaged()

    def has_spending(self) -> bool:
        """Whether any client was ever charged here."""
        tables = map(_table, self.numbers().values())
        return any(self._store.rows(f"SELECT 1 FROM {table} LIMIT 1") for table in tables)  # noqa: S608

    def _register(self, name: str, terms: SpendingTerms) -> Registered:
        rows = self._store.rows
        rows("INSERT OR IGNORE INTO collections (name) VALUES (?)", name)
        ((collection,),) = rows("SELECT number FROM collections WHERE name = ?", name)
        rows(
            f"CREATE TABLE IF NOT EXISTS {_table(collection)}"
            " (client INTEGER PRIMARY KEY, spent BLOB NOT NULL)"
        )
        meaning = (collection, _joined(terms))
        rows(
            "INSERT OR IGNORE INTO terms (collection, fingerprint, epsilon_per_report, epsilon_inf, horizon)"
            " SELECT ?1, ?2, ?3, ?4, coalesce(max(horizon), 0) FROM terms"
            " WHERE collection = ?1 AND substr(fingerprint, 1, ?5) = substr(?2, 1, ?5)",
            *meaning,
            terms.epsilon_per_report,
            terms.epsilon_inf,
            FINGERPRINT_BYTES,
        )
        ((number,),) = rows("SELECT number FROM terms WHERE collection = ? AND fingerprint = ?", *meaning)
        return Registered(int(collection), int(number))


def _table(collection: int) -> str:
    # A table's name cannot be a parameter; only an integer is put into statements.
    return f"spending_{int(collection)}"


# The column `fingerprint` has the collection's fingerprint, the length of its periods, and the changes of
# buckets, if they are limited.
def _joined(terms: SpendingTerms) -> bytes:
    period = terms.period_seconds.to_bytes(PERIOD_BYTES, "little")
    return terms.meaning[:FINGERPRINT_BYTES] + period + terms.meaning[FINGERPRINT_BYTES:]


def _split(column: bytes) -> tuple[bytes, int]:
    end = FINGERPRINT_BYTES + PERIOD_BYTES
    period = int.from_bytes(column[FINGERPRINT_BYTES:end], "little")
    return column[:FINGERPRINT_BYTES] + column[end:], period


def _listed(keys: Ints) -> str:
    """Return JSON for `json_each`."""
    return msgspec.json.encode(keys.tolist()).decode()
