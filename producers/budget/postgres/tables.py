"""The tables of the budgets: created at the first use, and examined before each."""

from pathlib import Path
from typing import Any

from deniable.config.settings.budget_database import BudgetDatabase
from deniable.producers.budget.postgres.connection import TABLES, DatabaseConnection, PermissionLackError
from deniable.producers.storage.store import digest_of
from deniable.protocol.secrets.secret import Secret, SecretError

SCHEMA_FILE = Path(__file__).parent / "schema.sql"
SCHEMA_VERSION = 1
PRIVILEGES = "SELECT, INSERT, UPDATE"
# Any constant: whoever creates the tables takes this lock, since CREATE TABLE IF NOT EXISTS alone may fail.
_CREATING = 0x64656E6961626C65


class Tables:
    """The tables of schema.sql in the database of a connection.

    Parameters
    ----------
    connection : DatabaseConnection.
    """

    def __init__(self, connection: DatabaseConnection) -> None:
        self._connection = connection

    def prepare(self, digest: bytes) -> None:
        """Create the tables unless they exist, and record the secret's digest unless one is recorded.

        Raises
        ------
        SecretError if another secret is recorded; StoreError if tables are absent and may not be created, are
        of a later version, or the server does not keep what it has committed (fsync).
        """
        self._check_fsync()
        if self._missing():
            self._create(digest)
        known = self._identity()
        if not known:
            with self._connection.transaction():
                known = self._identified(digest)
        self._check_identity(known, digest)

    def require(self, digest: bytes) -> None:
        """Check that producers with this secret have used the tables, without writing.

        Raises
        ------
        StoreError if none has; SecretError if another secret is recorded.
        """
        known = [] if self._missing() else self._identity()
        if not known:
            raise self._connection.failed("no producer has used it")
        self._check_identity(known, digest)

    def examine(self, digest: bytes) -> str:
        """Check the same without writing; return what was found, in words.

        Raises
        ------
        Like `prepare`; PermissionLackError too if the user lacks a permission.
        """
        self._check_fsync()
        if self._missing():
            ((may,),) = self._connection.rows("SELECT has_schema_privilege(current_schema(), 'CREATE')")
            if not may:
                raise self._may_not_create()
            return "it answers; the first producer will create its tables"
        ((may,),) = self._connection.rows(
            "SELECT bool_and(has_table_privilege(t, p))"
            " FROM unnest(%s::text[]) AS t, unnest(%s::text[]) AS p",
            [*TABLES],
            PRIVILEGES.split(", "),
        )
        if not may:
            raise self._connection.lacking("the user may not use all tables")
        if known := self._identity():
            self._check_identity(known, digest)
        return "it answers, and its tables belong to this secret"

    def _check_fsync(self) -> None:
        ((fsync,),) = self._connection.rows("SHOW fsync")
        if fsync != "on":
            raise self._connection.failed(
                "fsync is off, so a crash of the server would refund what clients have spent; turn it on"
            )

    def _check_identity(self, known: list[tuple[Any, ...]], digest: bytes) -> None:
        ((version, used),) = known
        if version != SCHEMA_VERSION:
            raise self._connection.failed(
                f"version of its tables must be {SCHEMA_VERSION}, got {version}; use the version of deniable "
                "that made them"
            )
        if used != digest:
            raise SecretError(
                f"budget store {self._connection.shown} was used with another secret: restore that one; with "
                "this one every client would get a new budget and new permanent responses"
            )

    def _missing(self) -> bool:
        found = self._connection.rows("SELECT count(to_regclass(t)) FROM unnest(%s::text[]) AS t", [*TABLES])
        return found != [(len(TABLES),)]

    def _create(self, digest: bytes) -> None:
        try:
            with self._connection.transaction():
                self._connection.rows("SELECT pg_advisory_xact_lock(%s)::text", _CREATING)
                if self._missing():
                    self._connection.run(SCHEMA_FILE.read_text(encoding="utf-8"))
                self._identified(digest)
        except PermissionLackError:
            raise self._may_not_create() from None

    def _may_not_create(self) -> PermissionLackError:
        return PermissionLackError(
            f"budget store {self._connection.shown}: user {self._connection.user} may not create its tables: "
            f"let an administrator run {SCHEMA_FILE}, and grant {PRIVILEGES} on them"
        )

    def _identity(self) -> list[tuple[Any, ...]]:
        return self._connection.rows("SELECT version, digest FROM deniable_identity")

    def _identified(self, digest: bytes) -> list[tuple[Any, ...]]:
        """Record the secret's digest unless one is; return version and digest."""
        self._connection.rows(
            "INSERT INTO deniable_identity VALUES (0, %s, %s) ON CONFLICT DO NOTHING", SCHEMA_VERSION, digest
        )
        return self._identity()


def examine(database: BudgetDatabase, secret: Secret) -> str:
    """Connect and check everything that a producer needs, without writing; return what was found, in words.

    Raises
    ------
    AwayError if the database cannot be reached; otherwise like `Tables.examine`.
    """
    connection = DatabaseConnection(database)
    try:
        return Tables(connection).examine(digest_of(secret))
    finally:
        connection.close()
