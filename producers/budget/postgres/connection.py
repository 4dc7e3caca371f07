"""One connection to the database with the budgets: its settings, transactions and errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from deniable.config.settings.budget_database import BudgetDatabase
from deniable.producers.storage.store import StoreError

if TYPE_CHECKING:
    import psycopg

TABLES = ("deniable_identity", "deniable_collections", "deniable_terms", "deniable_spending")
CONNECT_SECONDS = 5
STATEMENT_SECONDS = 10
# A producer that is suspended within a transaction holds up the others for so long.
IDLE_SECONDS = 5
# Settings of libpq that the url may replace: a dead network shows after some seconds.
_NETWORK: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 1000 * STATEMENT_SECONDS,
    "application_name": "deniable",
}
# SET LOCAL, and not at the start of a session: a pool may give each transaction another one.
_BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED; "
    "SET LOCAL synchronous_commit = on; "
    f"SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'; "
    f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'"
)


class AwayError(StoreError):
    """The database does not answer, or not now; trying again may help."""


class PermissionLackError(StoreError):
    """The user lacks a permission that every producer needs."""


class DatabaseConnection:
    """A connection, used by one thread at a time. After an AwayError only `close` may be called.

    Parameters
    ----------
    database : BudgetDatabase.

    Attributes
    ----------
    shown : hosts, ports and name of the database, for messages.

    Raises
    ------
    AwayError if the database cannot be reached; StoreError if psycopg is missing.
    """

    def __init__(self, database: BudgetDatabase) -> None:
        self.shown = database.shown
        try:
            import psycopg
        except ImportError:
            raise StoreError("budget_store needs psycopg: pip install 'deniable[postgres]'") from None
        self._error = psycopg.Error
        self._refusal = psycopg.errors.InsufficientPrivilege
        given = psycopg.conninfo.conninfo_to_dict(database.url)
        with self._translated():
            # Statements are never prepared: a pool may give the next transaction another session.
            self._connection: psycopg.Connection[tuple[Any, ...]] = psycopg.Connection.connect(
                **(_NETWORK | given), autocommit=True, prepare_threshold=None
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction: committed durably at its end, undone by any error within.

        Raises
        ------
        AwayError if the database fails; if that is while it commits, the block may have been committed.
        """
        self.run(_BEGIN)
        try:
            yield
        except BaseException:
            with suppress(StoreError):
                self.run("ROLLBACK")
            raise
        self.run("COMMIT")

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Execute one statement; return its rows."""
        with self._translated():
            cursor = self._connection.execute(statement.encode(), parameters, binary=True)
            return cursor.fetchall() if cursor.description else []

    def run(self, statements: str) -> None:
        """Execute statements without parameters or rows, in one round trip."""
        with self._translated():
            self._connection.execute(statements.encode())

    def close(self) -> None:
        """Disconnect. Calling it again does nothing."""
        with suppress(self._error):
            self._connection.close()

    @property
    def user(self) -> str:
        """Who is connected."""
        return self._connection.info.user

    def failed(self, cause: str) -> StoreError:
        """Return the error for a database that can be reached, but not used."""
        return StoreError(f"budget store {self.shown}: {cause}")

    def lacking(self, cause: str) -> PermissionLackError:
        """Return the error for a user without the permissions that every producer needs."""
        return PermissionLackError(
            f"budget store {self.shown}: {cause}; grant SELECT, INSERT, UPDATE on {', '.join(TABLES)} "
            f"to {self.user}"
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Translate errors: only their first lines, since details may show a row's key."""
        try:
            yield
        except self._error as error:
            cause = error.diag.message_primary or str(error).partition("\n")[0] or type(error).__name__
            if isinstance(error, self._refusal):
                raise self.lacking(cause) from None
            raise AwayError(f"budget store {self.shown}: {cause}") from None
