"""A file that only its owner may read, created once and never replaced: a secret, or a private key."""

import os
import stat
from pathlib import Path


def read_private(path: Path, most_bytes: int) -> bytes:
    """Read at most this many bytes.

    Raises
    ------
    OSError if it cannot be read; ValueError, whose message follows the file's name, if it is no regular file
    or others than its owner may read it.
    """
    # Without O_NONBLOCK, opening a pipe would block.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("must be a regular file")
        mode = stat.S_IMODE(status.st_mode)
        if mode & 0o077:
            raise ValueError(f"mode must be 0600 or stricter, got {mode:04o}; run: chmod 600 {path}")
        return file.read(most_bytes)


def create_private(path: Path, content: bytes) -> bool:
    """Create the file with mode 0600, durably; return False if another process was faster.

    Raises
    ------
    OSError if the file or its folder cannot be created.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A link appears atomically and never replaces a file: if two processes do this at once, one link remains
    # and both read it.
    name = path.with_name(f".{path.name}-{os.urandom(8).hex()}")
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(name, path)
        except FileExistsError:
            return False
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        os.unlink(name)
    return True
