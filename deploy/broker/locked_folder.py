"""Folders that one process locks at a time: named by the user, or temporary ones in the cache."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from deniable.estimators.errors import DeniableError

CACHE_REMEDY = "set XDG_CACHE_HOME to a folder that this user may write"


class FolderError(DeniableError, RuntimeError):
    """A folder cannot be created or written, or another process has locked it."""


def cache_folder() -> Path:
    """Return `deniable` in the user's cache folder. Source: XDG Base Directory Specification.

    Raises
    ------
    FolderError if the user has none: one without a name, where HOME is not set.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deniable"
    except RuntimeError:
        raise FolderError(f"this user has no home directory, so no cache: {CACHE_REMEDY}") from None


def lock(folder: Path, wait: bool = True) -> IO[str]:
    """Lock a folder, created if absent, until the returned file is closed or this process ends.

    Raises
    ------
    FolderError if another process has locked it and `wait` is False, or if it cannot be created or written.
    """
    with _folder_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        held = (folder / "lock").open("a")
    try:
        fcntl.flock(held, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise FolderError(f"{folder} is in use by another process; choose another folder") from None
    except BaseException:
        held.close()
        raise
    return held


class HeldFolder:
    """A folder, locked until `release` or the end of the `with` block.

    Parameters
    ----------
    path : a folder, created if absent, which stays; None: a temporary one in the cache folder, mode 0700,
        deleted by `release` or, if this process is killed, by the next process that creates one.

    Raises
    ------
    FolderError if another process has locked it, or if it cannot be created or written.
    """

    path: Path

    def __init__(self, path: Path | None = None) -> None:
        self._temporary = path is None
        if path is None:
            self.path, self._lock = _make_temporary()
        else:
            self.path = path.resolve()
            self._lock = lock(self.path, wait=False)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def release(self) -> None:
        """Unlock the folder; delete it if it is temporary."""
        if self._temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _make_temporary() -> tuple[Path, IO[str]]:
    """Delete abandoned temporary folders; create a new one and lock it."""
    home = cache_folder() / "temporary"
    with lock(home):
        for path in home.iterdir():
            if path.is_dir():
                _delete_abandoned(path)
        with _folder_errors(home):
            path = Path(tempfile.mkdtemp(dir=home))
        return path, lock(path)


def _delete_abandoned(path: Path) -> None:
    with suppress(FolderError), lock(path, wait=False):
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _folder_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = CACHE_REMEDY if _is_in_cache(folder) else "name a folder that this user may write"
        raise FolderError(f"{folder} cannot be used: {error.strerror}; {remedy}") from error


def _is_in_cache(folder: Path) -> bool:
    with suppress(FolderError):
        return folder.is_relative_to(cache_folder())
    return False
