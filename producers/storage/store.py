"""The store: the SQLite file with all that must survive a producer.

It has randomized reports, as they are sent (`outbox`), numbers of reports by keyed hash of a client
(`spending`), and how far input files were read (`input_progress`). It contains no true value and no client's
id. But with the secret one can check whether a known client has reported, how often, and in which windows
last: windows that were open at its last report are kept until it reports again. If changes of its bucket are
limited, it also has how many there were, and the last bucket, which one needs the secret to read.

One transaction holds a batch's charges and reports, the broker's acknowledgements and the place in the input:
no crash can separate them, and they are on the disk when `transaction` returns. Several processes share the
file. Its folder must be on a local disk: SQLite's write-ahead log does not work over a network.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from deniable.estimators.errors import DeniableError
from deniable.protocol.secrets.secret import STORE_NAME, Secret, SecretError

SCHEMA_VERSION = 2
APPLICATION_ID = int.from_bytes(b"DNBL", "big")
CACHE_BYTES = 128 * 2**20
LOG_BYTES = 16 * 2**20
PAGE_BYTES = 8192
DIGEST_BYTES = 16

_SCHEMA = """
CREATE TABLE identity (only INTEGER PRIMARY KEY CHECK (only = 0), digest BLOB NOT NULL);
CREATE TABLE collections (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE terms (
    number INTEGER PRIMARY KEY, collection INTEGER NOT NULL, fingerprint BLOB NOT NULL,
    epsilon_per_report REAL NOT NULL, epsilon_inf REAL NOT NULL, horizon INTEGER NOT NULL,
    UNIQUE (collection, fingerprint)
);
CREATE TABLE lanes (lane INTEGER PRIMARY KEY, packs INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE buffers (
    lane INTEGER NOT NULL, fingerprint BLOB NOT NULL, window_start INTEGER NOT NULL, cohort INTEGER NOT NULL,
    reports BLOB NOT NULL, PRIMARY KEY (lane, fingerprint, window_start, cohort)
);
CREATE TABLE packs (number INTEGER PRIMARY KEY AUTOINCREMENT, lane INTEGER NOT NULL, born INTEGER NOT NULL);
CREATE INDEX packs_by_lane ON packs (lane);
CREATE TABLE records (number INTEGER PRIMARY KEY, record BLOB NOT NULL);
CREATE TABLE inputs (
    path TEXT PRIMARY KEY, inode INTEGER NOT NULL, bytes_done INTEGER NOT NULL, lines INTEGER NOT NULL,
    digest BLOB NOT NULL
);
"""

_LAST_RESORT = "restore a copy; moving it away forgets all spending and unsent reports"
_REMEDIES: dict[int | None, str] = {
    sqlite3.SQLITE_BUSY: "another process has locked it; stop the one that is stuck, then try again",
    sqlite3.SQLITE_FULL: "the disk is full, or the file may not grow; make room, then try again",
    sqlite3.SQLITE_READONLY: "it cannot be written; give this user write access to file and folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; give this user access to file and folder",
    sqlite3.SQLITE_IOERR: "the disk failed or is full; check the disk, then try again",
    sqlite3.SQLITE_CORRUPT: f"it is damaged; {_LAST_RESORT}",
    sqlite3.SQLITE_ERROR: f"it is damaged, or was changed by another program; {_LAST_RESORT}",
    sqlite3.SQLITE_NOTADB: f"it is not a database; {_LAST_RESORT}",
}


class StoreError(DeniableError, RuntimeError):
    """The store cannot be used. The message names file, cause and remedy; nothing was done partially."""


class BusyError(StoreError):
    """Another process has locked the store, which can be used once it is unlocked."""


class Store:
    """The open file. Used by one thread at a time. It must be closed before the process forks.

    Otherwise the child leaves its copy alone and cannot open the file: SQLite keeps a process's locks in
    memory, and the copied memory claims locks that the child does not have.

    Parameters
    ----------
    folder : created with mode 0700 if absent; the file in it with mode 0600.
    busy_seconds : how long to wait for another process's transaction, at least 0.
    reopened : the `file_id` of the store that was open here before; no other may be opened or created.

    Attributes
    ----------
    file_id : device and inode of the file.

    Raises
    ------
    StoreError if the file cannot be opened, other users may read it, it is damaged or of a later version, it
    is not the one to reopen, or it was open when the process forked; BusyError if another process has locked
    it.
    """

    def __init__(self, folder: Path, busy_seconds: float = 5.0, reopened: "FileId | None" = None) -> None:
        self.path = folder / STORE_NAME
        if reopened is not None:
            _check_in_place(self.path, reopened)
        self.file = self.path.resolve()
        self._process = os.getpid()
        if any(each.file == self.file for each in _of_parent):
            raise _forked(self.path)
        _make_private(self.path)
        with self._translated():
            self._connection = sqlite3.connect(
                self.path, timeout=busy_seconds, isolation_level=None, check_same_thread=False
            )
            _open.add(self)
            try:
                self.file_id = _file_id(self.path)
                self._prepare()
            except BaseException:
                self.close()
                raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction: on the disk at its end, undone by any error within.

        Raises
        ------
        StoreError if the store cannot be written, was deleted, moved or replaced, or was open when the
        process forked; BusyError if another process has locked it.
        """
        with self._translated():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                _check_in_place(self.path, self.file_id)
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def rows(self, statement: str, *parameters: object) -> list[Any]:
        """Execute one statement; return its rows."""
        with self._translated():
            return self._connection.execute(statement, parameters).fetchall()

    def each(self, statement: str, *parameters: object) -> Iterator[Any]:
        """Execute one statement; yield its rows."""
        with self._translated():
            # `yield from` would close the cursor of a generator that ends early, which raises once the store
            # is closed: an exception can keep such a generator until then.
            for row in self._connection.execute(statement, parameters):  # noqa: UP028
                yield row

    def many(self, statement: str, parameters: Iterable[tuple[object, ...]]) -> None:
        """Execute one statement for each tuple of parameters."""
        with self._translated():
            self._connection.executemany(statement, parameters)

    def insert(self, statement: str, *parameters: object) -> int:
        """Execute an INSERT; return the number of its row."""
        with self._translated():
            return self._connection.execute(statement, parameters).lastrowid or 0

    def close(self) -> None:
        """Close the file. Calling it again does nothing."""
        with self._translated():
            self._connection.close()
        _open.discard(self)

    def damaged(self) -> StoreError:
        """Return the error to raise if the file has content that was never written to it."""
        return StoreError(f"store {self.path}: {_REMEDIES[sqlite3.SQLITE_CORRUPT]}")

    def _check_unused(self) -> None:
        """Raise StoreError if the folder once had a store: lanes are claimed only beside a store."""
        if any(self.path.parent.glob("lane-*.lock")):
            raise StoreError(
                f"store {self.path}: it is empty, but its folder was used; restore a copy; to start again, "
                "which forgets all spending and unsent reports, delete lane-*.lock beside it, too"
            )

    def _prepare(self) -> None:
        run = self._connection.execute
        if self._is_new():
            # Before the first table is created, so free pages can be returned to the disk (Outbox.forget).
            run(f"PRAGMA page_size = {PAGE_BYTES}")
            run("PRAGMA auto_vacuum = INCREMENTAL")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("PRAGMA temp_store = MEMORY")  # a statement with many rows copies the pages that it changes
        run(f"PRAGMA cache_size = {-CACHE_BYTES // 1024}")
        # At this size the log is copied into the file, and then truncated to this size.
        run(f"PRAGMA wal_autocheckpoint = {LOG_BYTES // PAGE_BYTES}")
        run(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        if self._is_new():
            with self.transaction():
                if self._is_new():
                    self._check_unused()
                    for statement in _SCHEMA.split(";"):
                        run(statement)
                    run(f"PRAGMA application_id = {APPLICATION_ID}")
                    run(f"PRAGMA user_version = {SCHEMA_VERSION}")
        if run("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
            raise StoreError(f"store {self.path}: it belongs to another program; move it away")
        (version,) = run("PRAGMA user_version").fetchone()
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"store {self.path}: version must be {SCHEMA_VERSION}, got {version}; use the version of "
                "deniable that wrote it"
            )

    def _is_new(self) -> bool:
        return not self._connection.execute("SELECT 1 FROM sqlite_schema").fetchone()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        if os.getpid() != self._process:
            raise _forked(self.path)
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            primary = None if code is None else code & 0xFF
            kind = BusyError if primary == sqlite3.SQLITE_BUSY else StoreError
            raise kind(f"store {self.path}: {_REMEDIES.get(primary, error)}") from None


#: Device and inode, which tell a file apart from a later one at the same path.
FileId = tuple[int, int]


def _file_id(path: Path) -> FileId:
    status = path.stat()
    return status.st_dev, status.st_ino


def _check_in_place(path: Path, wanted: FileId) -> None:
    """Raise StoreError if the path leads to another file: what is written to ours would be lost with it."""
    with suppress(FileNotFoundError):
        if _file_id(path) == wanted:
            return
    raise StoreError(
        f"store {path}: it was deleted, moved or replaced while it was in use; stop its producers and put it "
        "back, or start again without it, which forgets all spending and unsent reports"
    )


_open: set[Store] = set()
_of_parent: list[Store] = []


def _leave_to_parent() -> None:
    # Keep references, since SQLite closes collected connections: in the child that could delete the parent's
    # log.
    _of_parent.extend(_open)
    _open.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


def _forked(path: Path) -> StoreError:
    return StoreError(f"store {path}: it was open when the process forked; close it first")


def _make_private(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Do not open the file: closing any descriptor of it drops SQLite's locks in this process.
        with suppress(FileExistsError):
            os.mknod(path, 0o600)
        mode = path.stat().st_mode & 0o777
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StoreError(
            f"store {path}: {error.strerror}; give this user access to file and folder"
        ) from None
    if mode & 0o077:
        raise StoreError(f"store {path}: mode must be 0600, got {mode:04o}; run: chmod 600 {path}")


def digest_of(secret: Secret) -> bytes:
    """Return DIGEST_BYTES that tell a secret apart from others and show nothing else of it."""
    return secret.function(b"deniable-store", DIGEST_BYTES).digest()


def check_identity(store: Store, secret: Secret) -> None:
    """Check that a store was first used with this secret; record it in a new store.

    Raises
    ------
    SecretError if it was first used with another one: known clients would get new budgets and new permanent
    responses. StoreError if the store cannot be used.
    """
    digest = digest_of(secret)
    if not (known := store.rows("SELECT digest FROM identity")):
        with store.transaction():
            store.rows("INSERT OR IGNORE INTO identity VALUES (0, ?)", digest)
            known = store.rows("SELECT digest FROM identity")
    if known != [(digest,)]:
        raise SecretError(
            f"{store.path.parent} was used with another secret: restore that one; with this one every client "
            "would get a new budget and new permanent responses"
        )
