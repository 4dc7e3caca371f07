"""The store's file is private, durable and shared; its faults are reported clearly."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from deniable.producers.storage.input_progress import (
    InputProgress,
    forget_progress,
    get_progress,
    set_progress,
)
from deniable.producers.storage.lane_locks import claim_lane
from deniable.producers.storage.store import PAGE_BYTES, Store, StoreError
from deniable.protocol.secrets.secret import STORE_NAME
from tests.support.messages import PinMessages

PROGRESS = InputProgress(inode=7, bytes_done=1000, lines=10, digest=b"d" * 32)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "data", busy_seconds=0.05)
    yield store
    store.close()


def set_and_fail(store):
    with store.transaction():
        set_progress(store, "input", PROGRESS)
        raise KeyError


def test_file_is_private_and_durable(store):
    names = {path.name: path.stat().st_mode & 0o777 for path in store.path.parent.iterdir()}
    assert names == dict.fromkeys(("producer.sqlite", "producer.sqlite-wal", "producer.sqlite-shm"), 0o600)
    assert store.path.parent.stat().st_mode & 0o777 == 0o700
    settings = [store.rows(f"PRAGMA {name}") for name in ("journal_mode", "synchronous", "auto_vacuum")]
    assert settings == [[("wal",)], [(2,)], [(2,)]]


def test_transaction_is_atomic(store):
    with store.transaction():
        set_progress(store, "input", PROGRESS)
        set_progress(store, "input", PROGRESS)
    with store.transaction():
        set_progress(store, "other", PROGRESS)
        forget_progress(store, "other")
    another = Store(store.path.parent)
    assert get_progress(another, "input") == PROGRESS
    assert get_progress(another, "other") is None
    another.close()


def test_any_error_undoes_a_transaction(store):
    with pytest.raises(KeyError):
        set_and_fail(store)
    assert get_progress(store, "input") is None
    with store.transaction():
        set_progress(store, "input", PROGRESS)
    assert get_progress(store, "input") == PROGRESS


def test_reading_may_end_early_after_closing(store):
    """A signal's exception keeps a reader where it was, and is handled once the store is closed."""
    rows = store.each("SELECT 1 UNION ALL SELECT 2")
    assert next(rows) == (1,)
    store.close()
    rows.close()


def test_closing_twice_is_harmless(store):
    store.close()
    store.close()
    with pytest.raises(StoreError, match=str(store.path)):
        get_progress(store, "input")


def test_messages(store: Store, tmp_path: Path, pin_messages: PinMessages) -> None:
    def of_mode(mode: int) -> None:
        store.path.chmod(mode)
        try:
            Store(store.path.parent)
        finally:
            store.path.chmod(0o600)

    def of_another_program() -> None:
        path = tmp_path / "theirs" / STORE_NAME
        path.parent.mkdir()
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("CREATE TABLE theirs (a)")
        path.chmod(0o600)
        Store(path.parent)

    def of_no_database() -> None:
        path = tmp_path / "none" / STORE_NAME
        path.parent.mkdir()
        path.write_bytes(b"no database" * 1000)
        path.chmod(0o600)
        Store(path.parent)

    def below_a_file() -> None:
        (tmp_path / "file").touch()
        Store(tmp_path / "file" / "data")

    def failing(code: int) -> None:
        error = sqlite3.OperationalError("what the library says")
        error.sqlite_errorcode = code
        with store.transaction():
            raise error

    def without_a_table() -> None:
        store.rows("DROP TABLE identity")
        store.rows("SELECT digest FROM identity")

    def closed() -> None:
        store.close()
        get_progress(store, "input")

    pin_messages(
        {
            "mode is 0644": lambda: of_mode(0o644),
            "mode is 0620": lambda: of_mode(0o620),
            "it is of another program": of_another_program,
            "it is no database": of_no_database,
            "its folder is below a file": below_a_file,
            "the folder cannot be written": lambda: failing(sqlite3.SQLITE_READONLY_DIRECTORY),
            "it cannot be opened": lambda: failing(sqlite3.SQLITE_CANTOPEN),
            "the disk failed": lambda: failing(sqlite3.SQLITE_IOERR_WRITE),
            "a table is missing": without_a_table,
            "it was closed": closed,
        }
    )


def test_later_version_is_refused_and_left_unchanged(store: Store, pin_messages: PinMessages) -> None:
    store.rows("PRAGMA user_version = 3")
    pin_messages({"it is of a later version": lambda: Store(store.path.parent)})
    assert store.rows("PRAGMA user_version") == [(3,)]


def test_damaged_pages_are_reported_and_unchanged(tmp_path: Path, pin_messages: PinMessages) -> None:
    Store(tmp_path).close()
    path = tmp_path / "producer.sqlite"
    damaged = bytearray(path.read_bytes())
    damaged[PAGE_BYTES:] = b"\xff" * (len(damaged) - PAGE_BYTES)
    path.write_bytes(damaged)
    store = Store(tmp_path)
    pin_messages({"pages are damaged": lambda: set_and_fail(store)})
    store.close()
    assert path.read_bytes()[PAGE_BYTES:] == damaged[PAGE_BYTES:]


def test_full_disk_is_reported_and_changes_nothing(store: Store, pin_messages: PinMessages) -> None:
    (pages,) = store.rows("PRAGMA page_count")[0]
    store.rows(f"PRAGMA max_page_count = {pages + 3}")

    def fill():
        with store.transaction():
            set_progress(store, "input", PROGRESS)
            store.rows("INSERT INTO records VALUES (1, zeroblob(100000))")

    pin_messages({"the disk is full": fill})
    assert get_progress(store, "input") is None
    with store.transaction():
        set_progress(store, "input", PROGRESS)
    assert store.rows("PRAGMA integrity_check") == [("ok",)]


def test_locked_store_is_reported_after_the_time_allowed(store: Store, pin_messages: PinMessages) -> None:
    other = Store(store.path.parent)
    with other.transaction():
        begun = time.monotonic()
        pin_messages({"another process has locked it": lambda: set_and_fail(store)})
        assert 0.04 <= time.monotonic() - begun < 4.5
    with store.transaction():
        set_progress(store, "input", PROGRESS)
    assert get_progress(other, "input") == PROGRESS
    other.close()


def test_transactions_wait_for_each_other(store):
    """A second transaction begins after the first has ended, and sees its changes."""
    other, order = Store(store.path.parent), []

    def follow():
        with other.transaction():
            order.append(get_progress(other, "input"))

    with store.transaction():
        following = threading.Thread(target=follow)
        following.start()
        set_progress(store, "input", PROGRESS)
        following.join(0.1)
        assert order == []
    following.join()
    assert order == [PROGRESS]
    other.close()


def test_opening_a_second_store_keeps_the_locks_of_the_first(store):
    """POSIX drops all of a process's locks on a file when any descriptor of it is closed.

    Without them, another process considers itself the last user and deletes the log of the first.
    """
    Store(store.path.parent).close()
    log = store.path.with_name("producer.sqlite-wal")
    code = "import sys; from deniable.producers.storage.store import Store; from pathlib import Path"
    code += "; Store(Path(sys.argv[1])).close()"
    subprocess.run([sys.executable, "-c", code, str(store.path.parent)], check=True)
    assert log.exists()
    with store.transaction():
        set_progress(store, "input", PROGRESS)
    another = Store(store.path.parent)
    assert get_progress(another, "input") == PROGRESS
    another.close()


def test_opening_waits_for_nobody(store):
    with store.transaction():
        Store(store.path.parent, busy_seconds=0).close()


def test_store_open_during_a_fork_refuses_the_child(
    store: Store, tmp_path: Path, pin_messages: PinMessages
) -> None:
    """Through its copy or any path: SQLite would mistake the parent's locks for the child's."""
    (tmp_path / "link").symlink_to(store.path.parent)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        for use in (
            lambda: get_progress(store, "input"),
            lambda: Store(store.path.parent),
            lambda: Store(tmp_path / "link"),
        ):
            try:
                use()
            except StoreError as error:
                os.write(writing, f"{error}\n".encode())
        Store(tmp_path / "another").close()
        os.write(writing, b"but for another\n")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as shown:
        *refused, last = shown.read().splitlines()
    assert last == "but for another"
    assert len(refused) == 3
    pin_messages({"it was open when the process forked": lambda: "\n".join(refused)})
    os.waitpid(child, 0)
    with store.transaction():
        set_progress(store, "input", PROGRESS)
    assert store.rows("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("left", [None, b""])
def test_lost_store_is_not_recreated_silently(
    tmp_path: Path, left: bytes | None, pin_messages: PinMessages
) -> None:
    """Otherwise every client would get a new budget."""
    Store(tmp_path).close()
    claim_lane(tmp_path).release()
    (tmp_path / STORE_NAME).unlink()
    if left is not None:
        (tmp_path / STORE_NAME).write_bytes(left)
        (tmp_path / STORE_NAME).chmod(0o600)
    pin_messages({"the folder was used": lambda: Store(tmp_path)})
    (tmp_path / "lane-0.lock").unlink()
    Store(tmp_path).close()


def removed(folder):
    shutil.rmtree(folder)


def moved(folder):
    folder.rename(folder.with_name("elsewhere"))


def replaced(folder):
    moved(folder)
    Store(folder).close()


@pytest.mark.parametrize("lose", [removed, moved, replaced])
def test_store_that_is_no_longer_in_place_takes_nothing(
    store: Store, lose: Callable[[Path], None], pin_messages: PinMessages
) -> None:
    """Nor is it created anew when it is reopened."""
    lose(store.path.parent)
    with pytest.raises(StoreError) as refused:
        write(store)
    store.close()
    with pytest.raises(StoreError) as of_reopening:
        Store(store.path.parent, reopened=store.file_id)
    assert str(of_reopening.value) == str(refused.value)
    if lose is removed:
        pin_messages({"it was removed": lambda: str(refused.value)})
    assert store.path.exists() == (lose is replaced)


def write(store):
    with store.transaction():
        set_progress(store, "input", PROGRESS)
