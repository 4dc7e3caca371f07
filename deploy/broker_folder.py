"""Folders of the embedded broker: the cache, and data folders that one live process holds at a time."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from deploy.broker_errors import BrokerError


def cache_folder() -> Path:
    """`deniable` in the user's cache folder. Source: XDG Base Directory Specification."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deniable"


def lock(folder: Path, wait: bool = True) -> IO[str]:
    """Hold a folder against all other processes until the returned file is closed or this process ends.

    Raises
    ------
    BlockingIOError when another process holds it and `wait` is False.
    """
    held = (folder / "lock").open("a")
    try:
        fcntl.flock(held, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        held.close()
        raise
    return held


class BrokerFolder:
    """A data folder, held from here to `release`.

    Parameters
    ----------
    data_dir : an existing folder or one to be made, which stays; None: a temporary one, in the cache folder,
        deleted by `release`, or, when this process was killed, by the next process that makes one.

    Raises
    ------
    BrokerError when a live broker holds data_dir, or when it cannot be made or written.
    """

    path: Path

    def __init__(self, data_dir: Path | None) -> None:
        self._temporary = data_dir is None
        if data_dir is None:
            self.path, self._lock = _make_temporary()
            return
        self.path = data_dir.resolve()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = lock(self.path, wait=False)
        except BlockingIOError as error:
            raise BrokerError(f"{self.path} is in use by another broker; give another data folder") from error
        except OSError as error:
            raise BrokerError(f"{self.path} cannot be a data folder: {error.strerror}") from error

    def release(self) -> None:
        """Let go of the folder; delete it if it is temporary."""
        if self._temporary:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _make_temporary() -> tuple[Path, IO[str]]:
    """A new temporary folder and its lock, after those that nobody holds any more are deleted."""
    brokers = cache_folder() / "brokers"
    brokers.mkdir(parents=True, exist_ok=True)
    with lock(brokers):
        for path in brokers.iterdir():
            if path.is_dir():
                _delete_abandoned(path)
        path = Path(tempfile.mkdtemp(dir=brokers))
        return path, lock(path)


def _delete_abandoned(path: Path) -> None:
    with suppress(BlockingIOError), lock(path, wait=False):
        shutil.rmtree(path, ignore_errors=True)
