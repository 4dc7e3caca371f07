"""Budgets in tables of PostgreSQL."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from producers.budget.budget_store import Registered
from producers.budget.charging import ClientRows, Ints
from producers.budget.client_balance import SpendingTerms
from producers.budget.postgres.connection import TABLES, DatabaseConnection, PermissionLackError
from producers.budget.postgres.database import BudgetDatabase
from producers.budget.stored_rows import packed, rows_of
from producers.randomization.secret import Secret, SecretError
from producers.storage.store import StoreError, digest_of

SCHEMA_FILE = Path(__file__).parent / "schema.sql"
SCHEMA_VERSION = 1
# Any constant: whoever creates the tables takes this lock, since CREATE TABLE IF NOT EXISTS alone may fail.
_CREATING = 0x64656E6961626C65


class PostgresBudgets:
    """A `BudgetStore` in PostgreSQL: the tables of schema.sql, created at the first use.

    Parameters
    ----------
    database : BudgetDatabase.
    secret : of all its producers.

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

    def __init__(self, database: BudgetDatabase, secret: Secret) -> None:
        self._connection = DatabaseConnection(database)
        try:
            self._prepare(database.shown, digest_of(secret))
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
        return {number: SpendingTerms(*each) for number, *each in found}

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

    def _prepare(self, shown: str, digest: bytes) -> None:
        ((fsync,),) = self._connection.rows("SHOW fsync")
        if fsync != "on":
            raise self._connection.failed(
                "fsync is off, so a crash of the server would refund what clients have spent; turn it on"
            )
        if self._missing():
            self._create(digest)
        known = self._connection.rows("SELECT version, digest FROM deniable_identity")
        if not known:
            with self.transaction():
                known = self._identified(digest)
        ((version, used),) = known
        if version != SCHEMA_VERSION:
            raise self._connection.failed(
                f"version of its tables must be {SCHEMA_VERSION}, got {version}; use the version of deniable "
                "that made them"
            )
        if used != digest:
            raise SecretError(
                f"budget store {shown} was used with another secret: restore that one; with this one every "
                "client would get a new budget and new permanent responses"
            )

    def _missing(self) -> bool:
        found = self._connection.rows("SELECT count(to_regclass(t)) FROM unnest(%s::text[]) AS t", [*TABLES])
        return found != [(len(TABLES),)]

    def _create(self, digest: bytes) -> None:
        try:
            with self.transaction():
                self._connection.rows("SELECT pg_advisory_xact_lock(%s)::text", _CREATING)
                if self._missing():
                    self._connection.run(SCHEMA_FILE.read_text(encoding="utf-8"))
                self._identified(digest)
        except PermissionLackError:
            raise self._connection.failed(
                f"user {self._connection.user} may not create its tables: let an administrator run "
                f"{SCHEMA_FILE}, and grant SELECT, INSERT, UPDATE on them"
            ) from None

    def _identified(self, digest: bytes) -> list[tuple[Any, ...]]:
        """Record the secret's digest unless one is; return version and digest."""
        self._connection.rows(
            "INSERT INTO deniable_identity VALUES (0, %s, %s) ON CONFLICT DO NOTHING", SCHEMA_VERSION, digest
        )
        return self._connection.rows("SELECT version, digest FROM deniable_identity")

    def _register(self, name: str, terms: SpendingTerms) -> Registered:
        rows = self._connection.rows
        rows("INSERT INTO deniable_collections (name) VALUES (%s) ON CONFLICT DO NOTHING", name)
        ((collection,),) = rows("SELECT number FROM deniable_collections WHERE name = %s FOR UPDATE", name)
        meaning = (collection, terms.fingerprint, terms.period_seconds)
        find = (
            "SELECT number FROM deniable_terms"
            " WHERE collection = %s AND fingerprint = %s AND period_seconds = %s"
        )
        if not rows(find, *meaning):
            rows(
                "INSERT INTO deniable_terms"
                " (collection, fingerprint, period_seconds, epsilon_per_report, epsilon_inf, horizon)"
                " SELECT %s, %s, %s, %s, %s, coalesce(max(horizon), 0) FROM deniable_terms"
                " WHERE collection = %s AND fingerprint = %s",
                *meaning,
                terms.epsilon_per_report,
                terms.epsilon_inf,
                *meaning[:2],
            )
        ((number,),) = rows(find, *meaning)
        return Registered(collection, number)
