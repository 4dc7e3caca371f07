"""Read bytes as they arrive: from a pipe, a file, or a growing file."""

import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from deniable.deploy.produce.timing import DEFAULT, RunTiming
from deniable.estimators.errors import DeniableError

CHUNK_BYTES = 1 << 16


class FeedError(DeniableError, RuntimeError):
    """The input cannot be used, or cannot be used beyond a line."""


class LineError(FeedError):
    """A line stops the run; the lines before it were processed."""


class InputSource(Protocol):
    """A source of bytes."""

    def read(self) -> bytes | None:
        """Read up to CHUNK_BYTES; empty at the end; None if nothing arrived within `timing.poll`.

        Raises
        ------
        FeedError if it cannot be read.
        """


class Pipe:
    """A stream that cannot be read twice: stdin, a pipe, a terminal."""

    def __init__(self, stream: BinaryIO, timing: RunTiming = DEFAULT) -> None:
        self._descriptor = stream.fileno()
        self._timing = timing

    def read(self) -> bytes | None:
        """As Source."""
        try:
            ready, _, _ = select.select([self._descriptor], [], [], self._timing.poll)
            return os.read(self._descriptor, CHUNK_BYTES) if ready else None
        except OSError as error:
            raise _unreadable(error) from error


class InputFile:
    """An open file. A followed file ends when another replaces it, or when it becomes shorter.

    Parameters
    ----------
    path : of the file.
    descriptor : open for reading.
    follow : whether to wait for more at its end.
    timing : of these waits.

    Attributes
    ----------
    fate : why a followed file ended.
    """

    def __init__(self, path: Path, descriptor: int, *, follow: bool, timing: RunTiming = DEFAULT) -> None:
        self.path = path
        self.descriptor = descriptor
        self.fate = ""
        self._follow = follow
        self._timing = timing
        self._replaced_at: float | None = None

    @property
    def inode(self) -> int:
        """The file's inode number, in [0, 2**63), since SQLite's integers are signed."""
        return os.fstat(self.descriptor).st_ino & (2**63 - 1)

    @property
    def size(self) -> int:
        """Present size of the file, bytes."""
        return os.fstat(self.descriptor).st_size

    def seek(self, position: int) -> None:
        """Continue reading from a position."""
        os.lseek(self.descriptor, position, os.SEEK_SET)

    def read_up_to(self, size: int) -> bytes:
        """Read up to `size` or CHUNK_BYTES bytes; empty at the present end; FeedError if reading fails."""
        try:
            return os.read(self.descriptor, min(size, CHUNK_BYTES))
        except OSError as error:
            raise _unreadable(error) from error

    def read(self) -> bytes | None:
        """As Source."""
        try:
            is_over = self._follow and self._is_over()  # before reading, so that no last lines are missed
        except OSError as error:
            raise _unreadable(error) from error
        data = self.read_up_to(CHUNK_BYTES)
        if data or is_over or not self._follow:
            return data
        time.sleep(self._timing.poll)
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
        return now >= self._replaced_at + self._timing.linger

    def _is_replaced(self) -> bool:
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(self.descriptor))
        except FileNotFoundError:
            return False  # wait until there is another file


@contextmanager
def successor(path: Path, timing: RunTiming = DEFAULT) -> Iterator[InputFile]:
    """Wait for the file that replaces the one at this path, and open it to be followed."""
    descriptor = _open(path, timing.poll)
    try:
        yield InputFile(path, descriptor, follow=True, timing=timing)
    finally:
        os.close(descriptor)


def open_at_once(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open for reading without waiting for the writer of a named pipe; reading still waits. OSError."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(descriptor, True)
    return descriptor


def _open(path: Path, poll_seconds: float) -> int:
    while True:
        try:
            return open_at_once(path)
        except FileNotFoundError:
            time.sleep(poll_seconds)
        except OSError as error:
            raise _unreadable(error) from error


def _unreadable(error: OSError) -> FeedError:
    return FeedError(f"the input cannot be read: {error.strerror}")
