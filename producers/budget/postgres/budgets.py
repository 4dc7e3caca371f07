"""Budgets in tables of PostgreSQL."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.budget_database import BudgetDatabase
from deniable.config.settings.spending_terms import FINGERPRINT_BYTES, SpendingTerms
from deniable.producers.budget.budget_store import Registered
from deniable.producers.budget.charging import ClientRows, Ints
from deniable.producers.budget.postgres.connection import DatabaseConnection
from deniable.producers.budget.postgres.tables import Tables
from deniable.producers.budget.stored_rows import packed, rows_of
from deniable.producers.storage.store import StoreError, digest_of
from deniable.protocol.secrets.secret import Secret


class PostgresBudgets:
    """A `BudgetStore` in PostgreSQL: the tables of schema.sql.

    Parameters
    ----------
    database : BudgetDatabase.
    secret : of all its producers.
    is_only_read : False if the tables are created at the first use; True if they must have been used.

    Raises
    ------
    AwayError if the database cannot be reached; SecretError if it was first used with another secret;
    StoreError if psycopg is missing, tables are absent and may not be created, they are of a later version,
    or the server does not keep what it has committed (fsync).
    """

    # Why charges of several producers are like charges one after the other, in some order, as in SQLite: a
    # charge begins with `raise_horizons`, which locks the collection's row until its transaction ends, and
    # so does `register`. Under READ COMMITTED each statement sees all that was committed before it began.
    # So the statements after that lock see what every earlier holder of it has written, and nobody else
    # changes the collection's terms or rows until the commit. A charge locks one collection only, and
    # `register` locks in the order of names, so none waits for another in a circle.

    def __init__(self, database: BudgetDatabase, secret: Secret, *, is_only_read: bool = False) -> None:
        self._connection = DatabaseConnection(database)
        tables = Tables(self._connection)
        try:
            (tables.require if is_only_read else tables.prepare)(digest_of(secret))
        except BaseException:
            self._connection.close()
            raise

    def transaction(self) -> AbstractContextManager[None]:
        """Run a block in a transaction; see `DatabaseConnection`."""
        return self._connection.transaction()

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def register(self, terms: Mapping[str, SpendingTerms]) -> dict[str, Registered]:
        """Store terms unless they are known; see `BudgetStore`."""
        with self.transaction():
            return {name: self._register(name, terms[name]) for name in sorted(terms)}

    def numbers(self) -> dict[str, int]:
        """Return the number of each collection by name."""
        return dict(self._connection.rows("SELECT name, number FROM deniable_collections ORDER BY number"))

    def terms(self, collection: int) -> dict[int, SpendingTerms]:
        """Return all terms of a collection, by number."""
        found = self._connection.rows(
            "SELECT number, fingerprint, period_seconds, epsilon_per_report, epsilon_inf"
            " FROM deniable_terms WHERE collection = %s",
            collection,
        )
        return {number: SpendingTerms.stored(*each) for number, *each in found}

    def raise_horizons(self, collection: int, earliest: int) -> dict[int, int]:
        """Raise the horizons of a collection's terms; see `BudgetStore`."""
        self._connection.rows(
            "SELECT number FROM deniable_collections WHERE number = %s FOR UPDATE", collection
        )
        return dict(
            self._connection.rows(
                "UPDATE deniable_terms SET horizon = greatest(horizon, %s) WHERE collection = %s"
                " RETURNING number, horizon",
                earliest,
                collection,
            )
        )

    def load(self, collection: int, keys: Ints, terms: int) -> ClientRows:
        """Load clients' rows; see `BudgetStore`."""
        found = self._connection.rows(
            "SELECT client, spent FROM deniable_spending WHERE collection = %s AND client = ANY(%s)",
            collection,
            keys.tolist(),
        )
        places = np.searchsorted(keys, np.array([client for client, _ in found], np.int64)).tolist()
        try:
            return rows_of(len(keys), terms, places, [spent for _, spent in found])
        except ValueError:
            raise self.damaged() from None

    def save(self, collection: int, keys: Ints, rows: ClientRows, chosen: Ints) -> None:
        """Replace rows; see `BudgetStore`."""
        for same, spent in packed(rows, chosen):
            self._connection.rows(
                "INSERT INTO deniable_spending (collection, client, spent)"
                " SELECT %s, client, substr(%s, ((place - 1) * %s + 1)::int, %s)"
                " FROM unnest(%s::bigint[]) WITH ORDINALITY AS given (client, place)"
                " ON CONFLICT (collection, client) DO UPDATE SET spent = excluded.spent",
                collection,
                spent.tobytes(),
                spent.shape[1],
                spent.shape[1],
                keys[same].tolist(),
            )

    def balances(self, collection: int) -> Iterator[NDArray[np.void]]:
        """Yield nothing: at its start, each of many producers would read all clients over the network."""
        return iter(())

    def damaged(self) -> StoreError:
        """Return the error to raise if tables have content that was never written to them."""
        return self._connection.failed("its tables were changed by another program; restore a copy")

    def _register(self, name: str, terms: SpendingTerms) -> Registered:
        rows = self._connection.rows
        rows("INSERT INTO deniable_collections (name) VALUES (%s) ON CONFLICT DO NOTHING", name)
        ((collection,),) = rows("SELECT number FROM deniable_collections WHERE name = %s FOR UPDATE", name)
        meaning = (collection, terms.meaning, terms.period_seconds)
        find = (
            "SELECT number FROM deniable_terms"
            " WHERE collection = %s AND fingerprint = %s AND period_seconds = %s"
        )
        if not rows(find, *meaning):
            rows(
                "INSERT INTO deniable_terms"
                " (collection, fingerprint, period_seconds, epsilon_per_report, epsilon_inf, horizon)"
                " SELECT %s, %s, %s, %s, %s, coalesce(max(horizon), 0) FROM deniable_terms"
                " WHERE collection = %s AND substr(fingerprint, 1, %s) = %s",
                *meaning,
                terms.epsilon_per_report,
                terms.epsilon_inf,
                collection,
                FINGERPRINT_BYTES,
                terms.fingerprint,
            )
        ((number,),) = rows(find, *meaning)
        return Registered(collection, number)
