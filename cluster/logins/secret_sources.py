"""A secret from the environment, the first line of a file, or the first line that a command prints."""

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from deniable.cluster.credential_files import SecurityError, read_small

MOST_SECRET_BYTES = 1024  # OpenSSL's limit for passwords of keys
COMMAND_SECONDS = 10.0
REUSED_SECONDS = 10.0  # a command does not run again for each of many connections

_printed: dict[tuple[str, ...], tuple[float, str]] = {}
_one_at_a_time = threading.Lock()


def current_secret(field: str, value: str | None, file: Path | None, command: Sequence[str] | None) -> str:
    """Return the present secret; empty if there is none of the three.

    Parameters
    ----------
    field : the secret's name, such as `password`, for messages.
    value : the secret itself, from the environment.
    file : its first line is the secret.
    command : prints the secret as its first line.

    Raises
    ------
    SecurityError if file or command cannot be used. It shows neither the secret nor what the command printed.
    """
    if file is not None:
        return first_line(f"{field}_file", file)
    if command is not None:
        return _first_line_of_command(f"{field}_command", tuple(command))
    return value or ""


def first_line(name: str, path: Path) -> str:
    """Return the first line of a file, 1 to 1024 bytes; SecurityError."""
    if not os.path.lexists(path):
        raise SecurityError(
            f"{name} does not name a file (not shown: it may be the {_secret(name)} itself): give the path "
            "of a file with it on its first line"
        )
    try:
        text = read_small(name, path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SecurityError(f"{name} {path} must be text in UTF-8") from None
    line = text.split("\n", 1)[0].rstrip("\r")
    size = len(line.encode())
    if not 1 <= size <= MOST_SECRET_BYTES:
        raise SecurityError(
            f"{name} {path} must have the {_secret(name)} on its first line, 1 to {MOST_SECRET_BYTES} bytes, "
            f"got {size}"
        )
    return line


def _secret(field: str) -> str:
    return "client secret" if field.startswith("client_secret") else "password"


def _first_line_of_command(name: str, command: tuple[str, ...]) -> str:
    with _one_at_a_time:
        at, line = _printed.get(command, (-REUSED_SECONDS, ""))
        if time.monotonic() - at >= REUSED_SECONDS:
            line = _run(f"{name} ({os.path.basename(command[0])} …)", command)
            _printed[command] = time.monotonic(), line
        return line


def _run(shown: str, command: tuple[str, ...]) -> str:
    """Run it without a shell. Its output, also to stderr, may hold the secret, so no message shows it."""
    try:
        ended = subprocess.run(  # noqa: S603 - the words are the operator's
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SecurityError(f"{shown} must end within {COMMAND_SECONDS:g} s") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "a word has a null character"
        raise SecurityError(f"{shown} cannot be run: {reason}") from None
    if ended.returncode != 0:
        raise SecurityError(f"{shown} must end with exit status 0, got {ended.returncode}: run it by hand")
    line = ended.stdout.split(b"\n", 1)[0].rstrip(b"\r")
    try:
        secret = line.decode()
    except UnicodeDecodeError:
        raise SecurityError(f"{shown} must print text in UTF-8") from None
    if not 1 <= len(line) <= MOST_SECRET_BYTES:
        raise SecurityError(
            f"{shown} must print the {_secret(shown)} as its first line, 1 to {MOST_SECRET_BYTES} bytes, "
            f"got {len(line)}"
        )
    return secret
