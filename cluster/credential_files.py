"""Read small files with a secret or a certificate."""

import os
import ssl
import stat
from pathlib import Path

from deniable.estimators.errors import DeniableError

MOST_BYTES = 1 << 20


class SecurityError(DeniableError, OSError):
    """A file of `kafka.security` cannot be used. The message names field and file, never the content."""


def read_small(field: str, path: Path) -> bytes:
    """Return the content of a regular file, possibly behind a link.

    Parameters
    ----------
    field : that names the file, for the message.
    path : of the file.

    Raises
    ------
    SecurityError if it cannot be read, is not a regular file, is empty or is larger than 1 MiB.
    """
    try:
        # Without O_NONBLOCK, opening a pipe without a writer would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = _read_whole(descriptor) if is_regular else b""
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SecurityError(f"{field} {path} cannot be read: {error.strerror}") from None
    if not is_regular:
        raise SecurityError(f"{field} {path} must be a regular file")
    if not 0 < len(content) <= MOST_BYTES:
        got = "more" if content else "none"
        raise SecurityError(f"{field} {path} must have 1 to {MOST_BYTES} bytes, got {got}")
    return content


def context_trusting(field: str, path: Path | None) -> ssl.SSLContext:
    """Return settings of a client of TLS 1.2 or newer that verifies the server.

    Parameters
    ----------
    field : that names the file, for the message.
    path : certificates of the authorities that it trusts, PEM; None: those that this system trusts.

    Raises
    ------
    SecurityError like `read_small`, and if these are no certificates.
    """
    try:
        pem = None if path is None else read_small(field, path).decode("ascii")
        return ssl.create_default_context(cadata=pem)
    except (UnicodeDecodeError, ssl.SSLError):
        raise SecurityError(f"{field} {path} must have certificates in PEM") from None


def _read_whole(descriptor: int) -> bytes:
    """Read a whole file, or enough to see that it is too large."""
    with open(descriptor, "rb", closefd=False) as stream:
        return stream.read(MOST_BYTES + 1)
