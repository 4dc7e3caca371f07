"""TLS by the edge itself: certificate and key are read again when their files change."""

import os
import ssl
from pathlib import Path

from deniable.estimators.errors import DeniableError


class TlsFilesError(DeniableError, ValueError):
    """Certificate or key cannot be used. The message names the file and the remedy."""


class TlsFiles:
    """A server's context, TLS 1.2 or newer, from two PEM files.

    Parameters
    ----------
    certificate_file : the certificate with its chain.
    key_file : its private key, not encrypted.

    Raises
    ------
    TlsFilesError if they cannot be used.
    """

    def __init__(self, certificate_file: Path, key_file: Path) -> None:
        self._files = (certificate_file, key_file)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.set_alpn_protocols(["http/1.1"])
        self._read_at = self._changed()
        self._load(self.context)

    def refresh(self) -> None:
        """Use changed files for new connections; TlsFilesError if they cannot be used."""
        if (changed := self._changed()) == self._read_at:
            return
        self._read_at = changed
        self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))  # fails without a change to the one in use
        self._load(self.context)

    def _changed(self) -> tuple[tuple[int, int], ...]:
        found = []
        for name, path in zip(("certificate_file", "key_file"), self._files, strict=True):
            try:
                status = os.stat(path)
            except OSError as error:
                raise TlsFilesError(f"{name} {path}: {error.strerror}") from None
            found.append((status.st_mtime_ns, status.st_ino))
        return tuple(found)

    def _load(self, context: ssl.SSLContext) -> None:
        certificate, key = self._files
        try:
            context.load_cert_chain(certificate, key, password=self._refuse_password)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise TlsFilesError(
                    f"key_file {key} is not the key of certificate_file {certificate}"
                ) from None
            raise TlsFilesError(
                f"certificate_file {certificate} and key_file {key} must have PEM: a certificate with its "
                "chain, and its private key, not encrypted"
            ) from None
        except OSError as error:
            raise TlsFilesError(f"certificate_file or key_file cannot be read: {error.strerror}") from None

    def _refuse_password(self) -> str:
        raise TlsFilesError(f"key_file {self._files[1]} is encrypted: give one without a password")
