"""stdin, stdout and stderr when the caller has closed them, or when what they lead to is full or gone."""

import errno
import os
import sys
from contextlib import suppress


def open_closed() -> None:
    """Open those that the caller has closed, so that no socket and no file takes their numbers.

    stdin and stdout are opened in the contrary direction: who uses them gets an error, as from a closed one.
    stderr leads nowhere.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY))
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def flush() -> str:
    """Write out what is buffered; what cannot be written is thrown away.

    Returns
    -------
    Why output was lost; empty when none was, or when its reader has gone, who wants no more of it.
    """
    reasons = []
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        try:
            stream.flush()
        except OSError as error:
            if error.errno != errno.EPIPE:
                reasons.append(f"{name} cannot be written: {error.strerror}")
            # Python would fail at its end with what is still in the buffer.
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return "; ".join(reasons)
