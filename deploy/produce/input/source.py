"""Bytes of an input as they come: of a pipe, of a file, of a file that grows."""

import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from estimators.errors import DeniableError

CHUNK_BYTES = 1 << 16
POLL_SECONDS = 0.2
# After its rename a file may get lines until its writer has opened the new one.
LINGER_SECONDS = 1.0


class FeedError(DeniableError, RuntimeError):
    """The input cannot be used, or stops being of use at a line."""


class InputSource(Protocol):
    """What lines are read from."""

    def read(self) -> bytes | None:
        """Up to CHUNK_BYTES; none at the end; None when nothing came for POLL_SECONDS.

        Raises
        ------
        FeedError if it cannot be read.
        """


class Pipe:
    """A stream that cannot be read twice: stdin, a pipe, a terminal."""

    def __init__(self, stream: BinaryIO) -> None:
        self._descriptor = stream.fileno()

    def read(self) -> bytes | None:
        """As Source."""
        try:
            ready, _, _ = select.select([self._descriptor], [], [], POLL_SECONDS)
            return os.read(self._descriptor, CHUNK_BYTES) if ready else None
        except OSError as error:
            raise _unreadable(error) from error


class InputFile:
    """An open file. One that is followed ends when another takes its place, or when it becomes shorter.

    Parameters
    ----------
    path : of the file.
    descriptor : open for reading.
    follow : whether to wait for more at its end.

    Attributes
    ----------
    fate : why a followed file has ended.
    """

    def __init__(self, path: Path, descriptor: int, *, follow: bool) -> None:
        self.path = path
        self.descriptor = descriptor
        self.fate = ""
        self._follow = follow
        self._replaced_at: float | None = None

    @property
    def inode(self) -> int:
        """Of the file, in [0, 2**63): SQLite's integers have a sign."""
        return os.fstat(self.descriptor).st_ino & (2**63 - 1)

    @property
    def size(self) -> int:
        """Bytes of the file at this moment."""
        return os.fstat(self.descriptor).st_size

    def seek(self, position: int) -> None:
        """Read on from there."""
        os.lseek(self.descriptor, position, os.SEEK_SET)

    def read_up_to(self, size: int) -> bytes:
        """Up to size or CHUNK_BYTES bytes, none at the present end; FeedError if they cannot be read."""
        try:
            return os.read(self.descriptor, min(size, CHUNK_BYTES))
        except OSError as error:
            raise _unreadable(error) from error

    def read(self) -> bytes | None:
        """As Source."""
        try:
            is_over = self._follow and self._is_over()  # asked first: what was written before is still read
        except OSError as error:
            raise _unreadable(error) from error
        data = self.read_up_to(CHUNK_BYTES)
        if data or is_over or not self._follow:
            return data
        time.sleep(POLL_SECONDS)
        return None

    def _is_over(self) -> bool:
        if self.size < os.lseek(self.descriptor, 0, os.SEEK_CUR):
            self.fate = "was truncated"
            return True
        if not self._is_replaced():
            self._replaced_at = None
            return False
        now = time.monotonic()
        self._replaced_at = now if self._replaced_at is None else self._replaced_at
        self.fate = "was replaced"
        return now >= self._replaced_at + LINGER_SECONDS

    def _is_replaced(self) -> bool:
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(self.descriptor))
        except FileNotFoundError:
            return False  # until there is another


@contextmanager
def successor(path: Path) -> Iterator[InputFile]:
    """The file that has taken this place, to be followed; waits until there is one."""
    descriptor = _open(path)
    try:
        yield InputFile(path, descriptor, follow=True)
    finally:
        os.close(descriptor)


def open_at_once(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open for reading without waiting for the writer of a named pipe; reading waits as ever. OSError."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    return descriptor


def _open(path: Path) -> int:
    while True:
        try:
            return open_at_once(path)
        except FileNotFoundError:
            time.sleep(POLL_SECONDS)
        except OSError as error:
            raise _unreadable(error) from error


def _unreadable(error: OSError) -> FeedError:
    return FeedError(f"the input cannot be read: {error.strerror}")
