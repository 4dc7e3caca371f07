"""The key that signs the list of collections: Ed25519, a PEM file that is never replaced.

Clients pin the public key, so a new one would shut out every client that is installed.
"""

import logging
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from deniable.estimators.errors import DeniableError
from deniable.protocol.secrets.private_file import create_private, read_private

MOST_BYTES = 4096

_log = logging.getLogger(__name__)


class SigningKeyError(DeniableError, RuntimeError):
    """The key file cannot be used. Its message names the file and the remedy, never the content."""


class SigningKey:
    """A private key that cannot be printed or logged.

    Parameters
    ----------
    key : an Ed25519 private key.
    """

    __slots__ = ("_key",)

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    def __repr__(self) -> str:
        return "SigningKey(…)"

    @property
    def public_key(self) -> str:
        """The public key that clients pin: 32 bytes in standard base64 with padding."""
        return b64encode(self._key.public_key().public_bytes_raw()).decode()

    def sign(self, message: bytes) -> str:
        """Return the signature: 64 bytes in standard base64 with padding; the same for the same message."""
        return b64encode(self._key.sign(message)).decode()


def parse_signing_key(pem: bytes) -> SigningKey:
    """Read a private key in PEM, not encrypted; ValueError if it is another kind of key, or none."""
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError:
        raise ValueError("it is encrypted") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("it is not an Ed25519 key")
    return SigningKey(key)


def open_signing_key(default: Path, given: Path | None) -> SigningKey:
    """Read the key file; create the default one if it is absent.

    Parameters
    ----------
    default : path of the key if none is configured.
    given : the configured path, or None.

    Raises
    ------
    SigningKeyError if the file cannot be used, or if a configured one is absent.
    """
    path = given or default
    with _key_errors(path):
        is_missing = not path.exists()
        if given and is_missing:
            raise SigningKeyError(
                f"signing key {given}: it is missing, and a configured one is never created; copy there the "
                f"one that all edges share, or create the first: (umask 077; openssl genpkey -algorithm "
                f"ed25519 -out {given})"
            )
        if is_missing and create_private(path, _new()):
            _log.warning(
                "created a new signing key, %s: back it up, and copy it to all other edges; clients that "
                "pin it accept no other",
                path,
            )
        pem = read_private(path, MOST_BYTES + 1)
    try:
        return parse_signing_key(pem)
    except ValueError:
        raise SigningKeyError(
            f"signing key {path}: must be an Ed25519 private key in PEM, not encrypted; restore it from a "
            "copy, since clients accept no other key than the one that they pin"
        ) from None


@contextmanager
def _key_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SigningKeyError(f"signing key {path}: {error.strerror}") from None
    except ValueError as error:
        raise SigningKeyError(f"signing key {path}: {error}") from None


def _new() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
