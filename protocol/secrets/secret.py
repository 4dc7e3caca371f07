"""The secret that permanent responses are derived from: a file that is created once and never replaced."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from deniable.estimators.errors import DeniableError
from deniable.protocol.secrets.private_file import create_private, read_private

NEW_SECRET_BYTES = 32
MIN_SECRET_BYTES = 32
MAX_SECRET_BYTES = 4096
STORE_NAME = "producer.sqlite"
ELSEWHERE = ", or name another one as data_dir, or with --data-dir where the command has that"
LOSS = "would redraw every permanent response"

_log = logging.getLogger(__name__)


class SecretError(DeniableError, RuntimeError):
    """The secret file cannot be used. Its message names the file and the remedy, never the content."""


class Secret:
    """A keyed pseudo-random function whose key cannot be read back, printed or logged.

    Parameters
    ----------
    key : 32 to 4096 secret bytes.

    Raises
    ------
    SecretError if it has fewer or more.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if _is_wrong(key):
            raise SecretError(f"a secret {_wanted(key)}")
        # Keys longer than BLAKE2's are hashed first, as HMAC does.
        is_long = len(key) > blake2b.MAX_KEY_SIZE
        self._key = blake2b(key, person=b"deniable-secret").digest() if is_long else key

    def __repr__(self) -> str:
        return "Secret(…)"

    def function(self, purpose: bytes, size: int) -> blake2b:
        """Return keyed BLAKE2b of `size` bytes, to copy and update; different purposes are independent.

        Parameters
        ----------
        purpose : 1 to 16 bytes, BLAKE2's personalization.
        size : of the output, bytes, in [1, 64].
        """
        return blake2b(key=self._key, person=purpose, digest_size=size)


def secret_of(data_dir: Path, given: Path | None = None) -> Secret:
    """Read the secret of a producer's folder, or of a given file; create it only in a new folder.

    Raises
    ------
    SecretError like `load_secret`; and if the file is absent although the folder was used with one, or
    although it was given: a mistyped or unmounted path must not redraw every permanent response.
    """
    path = given or data_dir / "secret"
    was_used = (data_dir / STORE_NAME).exists()  # check first: a new folder gets its secret before its store
    if was_used and not path.exists():
        raise SecretError(
            f"secret file {path}: it is missing, but {data_dir} was used with one; restore it from a copy "
            "(to start again with new permanent responses and budgets, delete the folder too)"
        )
    if given and not given.exists():
        raise SecretError(
            f"secret file {given}: it is missing, and a configured one is never created; copy there the one "
            f"that all hosts share, or create the first: (umask 077; head -c 32 /dev/urandom > {given})"
        )
    _warn_of_open_folder(data_dir)
    return load_secret(path, elsewhere=ELSEWHERE)


def _warn_of_open_folder(data_dir: Path) -> None:
    if data_dir.is_dir() and data_dir.stat().st_mode & 0o022:
        _log.warning("other users may replace files in %s; run: chmod go-w %s", data_dir, data_dir)


def load_secret(path: Path, loss: str = LOSS, elsewhere: str = "") -> Secret:
    """Read the secret file; if absent, create it with mode 0600 and log that.

    An existing file is never replaced: a new secret would redraw every client's permanent responses, and two
    responses to one value reveal more than one.

    Parameters
    ----------
    path : of the file.
    loss : what another secret instead of this one does, for messages.
    elsewhere : what else helps where it cannot be created, for the message, with a comma before it.

    Raises
    ------
    SecretError like `read_secret`, or if the file or its folder cannot be created.
    """
    try:
        try:
            path.stat()
        except FileNotFoundError:
            if create_private(path, os.urandom(NEW_SECRET_BYTES)):
                _log.warning("created a new secret, %s: back it up; losing it %s", path, loss)
    except OSError as error:
        raise SecretError(
            f"secret file {path}: {error.strerror}; give this user access to its folder{elsewhere}"
        ) from None
    return read_secret(path, loss)


def read_secret(path: Path, loss: str = LOSS) -> Secret:
    """Read the secret file; for `loss` see `load_secret`.

    Raises
    ------
    SecretError if it cannot be read, if others than its owner may read it, or if it does not have 32 to 4096
    bytes.
    """
    with _secret_errors(path):
        key = read_private(path, MAX_SECRET_BYTES + 1)
    if _is_wrong(key):
        raise SecretError(
            f"secret file {path}: {_wanted(key)}; restore it from a copy, since a new one {loss}"
        )
    return Secret(key)


def _is_wrong(key: bytes) -> bool:
    return not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES


def _wanted(key: bytes) -> str:
    got = len(key) if len(key) <= MAX_SECRET_BYTES else "more"
    return f"must have {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes, got {got}"


@contextmanager
def _secret_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SecretError(f"secret file {path}: {error.strerror}") from None
    except ValueError as error:
        raise SecretError(f"secret file {path}: {error}") from None
