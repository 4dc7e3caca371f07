"""Standard streams that are closed, cannot hold a character, or whose disk is full or reader gone."""

import errno
import io
import os
import sys
from contextlib import suppress


def open_closed() -> None:
    """Open closed streams on /dev/null, so that no socket or file gets their descriptors.

    stdin is opened for writing and stdout for reading, so using them fails as with a closed one. stderr is
    discarded.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def escape_unknown() -> None:
    """Write characters that the locale's encoding lacks as numbers, as on stderr, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def flush() -> str:
    """Write out the buffers of stdout and stderr; discard what cannot be written.

    Returns
    -------
    Why output was lost; empty if none was lost, or if only the reader of a pipe is gone.
    """
    reasons = []
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            if error.errno != errno.EPIPE:
                reasons.append(f"{name} cannot be written: {error.strerror}")
            # Python's flush at exit would fail on what is still buffered.
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return "; ".join(reasons)
