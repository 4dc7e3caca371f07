"""Security of connections to Kafka: TLS always; authentication by password (SCRAM-SHA-512) or certificate.

Files are read again for each connection, so certificates and passwords can be replaced under a running
process: existing connections continue, the next one uses the new content.
"""

import logging
import os
import re
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deniable.cluster.credential_files import SecurityError, read_small
from deniable.estimators.errors import DeniableError

HANDSHAKE_SECONDS = 10.0


class CurrentContext(ssl.SSLContext):
    """An SSLContext for Kafka's clients that builds a fresh context for each connection.

    Parameters
    ----------
    make : builds a context from the present files; OSError if they cannot be used.
    """

    _make: Callable[[], ssl.SSLContext]

    def __new__(cls, make: Callable[[], ssl.SSLContext]) -> "CurrentContext":
        """Create the outer context, which clients inspect but which secures no connection itself."""
        context = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        context._make = make
        return context

    def wrap_bio(self, *arguments: Any, **keywords: Any) -> ssl.SSLObject:
        """Wrap for aiokafka; asyncio limits the time of the handshake."""
        return self._make().wrap_bio(*arguments, **keywords)

    def wrap_socket(self, sock: socket.socket, *arguments: Any, **keywords: Any) -> ssl.SSLSocket:
        """Wrap for kafka-python, which would wait for a handshake forever: here it has 10 s."""
        blocking_seconds = sock.gettimeout()
        try:
            sock.settimeout(HANDSHAKE_SECONDS)
            keywords |= {"do_handshake_on_connect": True}
            wrapped = self._make().wrap_socket(sock, *arguments, **keywords)
        except BaseException:
            sock.close()  # nobody else closes it
            raise
        wrapped.settimeout(blocking_seconds)
        return wrapped


MECHANISM = "SCRAM-SHA-512"
MOST_PASSWORD_BYTES = 1024  # OpenSSL's limit for passwords of keys

# SCRAM delimits names by commas and equals signs, and Kafka's clients do not escape them.
_USERNAME = re.compile(r"[A-Za-z0-9._@+/:-]{1,255}")


class CredentialsError(DeniableError, ValueError):
    """User name or password is missing."""


@dataclass(frozen=True, kw_only=True)
class Security:
    """The section `kafka.security`. Files are read only when connecting, or by `check`.

    Parameters
    ----------
    ca_file : CA certificates that must have signed the brokers', PEM; None: those that this system trusts.
    certificate_file, key_file : our certificate with its chain and its private key, PEM; both or neither.
    key_password_file : its first line is the password of key_file, if that is encrypted.
    username : for SCRAM-SHA-512; with it one of password and password_file.
    password : of username. Never shown.
    password_file : file whose first line is the password.

    Raises
    ------
    ValueError that names the field, if fields are missing or contradict each other; CredentialsError, a
    ValueError, if the fields are username and password.
    """

    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    key_password_file: Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: Path | None = None

    def __post_init__(self) -> None:
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together: give both or neither")
        if self.key_password_file is not None and self.key_file is None:
            raise ValueError("key_password_file needs key_file")
        if self.username is not None and _USERNAME.fullmatch(self.username) is None:
            raise ValueError(
                "username must have 1 to 255 characters of A-Z a-z 0-9 . _ @ + / : - (the given one is not "
                f"shown: it may be the password), got {len(self.username)}"
            )
        if self.password == "":
            raise ValueError("the password must not be empty")
        has_password, has_file = self.password is not None, self.password_file is not None
        if self.username is None and (has_password or has_file):
            raise CredentialsError("a password needs username")
        if self.username is not None and has_password == has_file:
            raise CredentialsError("username needs either password_file, or a password in the environment")

    def check(self) -> None:
        """Read all files; SecurityError if one cannot be used."""
        self.new_context()
        self.current_password()

    def client_settings(self) -> dict[str, Any]:
        """Return keywords for both kafka-python and aiokafka; SecurityError like `check`."""
        self.check()
        tls: dict[str, Any] = {"security_protocol": "SSL", "ssl_context": CurrentContext(self.new_context)}
        if self.username is None:
            return tls
        # At level DEBUG these log salt and proof, from which a weak password can be guessed.
        for name in ("kafka.net", "kafka.protocol", "aiokafka.conn"):
            logging.getLogger(name).setLevel(logging.INFO)
        return tls | {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": self.username,
            "sasl_plain_password": CurrentPassword(self),
        }

    def current_password(self) -> str:
        """Return the present password; empty without a username. SecurityError if its file cannot be used."""
        if self.password_file is not None:
            return _first_line("password_file", self.password_file)
        return self.password or ""

    def new_context(self) -> ssl.SSLContext:
        """Build a context for TLS 1.2 or newer that verifies the broker; SecurityError like `check`."""
        context = ssl.create_default_context(cadata=self._authorities())
        if self.certificate_file is not None and self.key_file is not None:
            self._identify(context, self.certificate_file, self.key_file)
        return context

    def _authorities(self) -> str | None:
        """Return the PEM of trusted CAs; None for those that the system trusts."""
        if self.ca_file is None:
            return None
        content = read_small("ca_file", self.ca_file)
        try:
            text = content.decode("ascii")
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
        except (UnicodeDecodeError, ssl.SSLError):
            raise SecurityError(f"ca_file {self.ca_file} must have certificates in PEM") from None
        return text

    def _identify(self, context: ssl.SSLContext, certificate_file: Path, key_file: Path) -> None:
        for name, path in (("certificate_file", certificate_file), ("key_file", key_file)):
            read_small(name, path)  # for its error message: OpenSSL's names no file
        try:
            context.load_cert_chain(certificate_file, key_file, password=self._key_password)
        except SecurityError:
            raise
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                message = f"key_file {key_file} is not the key of certificate_file {certificate_file}"
            else:
                reason = f" (OpenSSL: {error.reason})" if error.reason else ""
                message = (
                    f"certificate_file {certificate_file} and key_file {key_file} must have PEM: a "
                    "certificate with its chain, and its private key, with its password in key_password_file "
                    f"if it is encrypted{reason}"
                )
            raise SecurityError(message) from None
        except OSError as error:  # the file changed between the two reads
            raise SecurityError(f"certificate_file or key_file cannot be read: {error.strerror}") from None

    def _key_password(self) -> str:
        if self.key_password_file is None:  # OpenSSL would prompt on the terminal
            raise SecurityError(f"key_file {self.key_file} is encrypted: give key_password_file")
        return _first_line("key_password_file", self.key_password_file)


class CurrentPassword:
    """A password for Kafka's clients that is read from its file whenever they encode it for a connection."""

    __slots__ = ("_security",)

    def __init__(self, security: Security) -> None:
        self._security = security

    def __repr__(self) -> str:
        return "CurrentPassword(…)"

    def encode(self, encoding: str = "utf-8") -> bytes:
        """Return the bytes of the present password; SecurityError if its file cannot be used."""
        return self._security.current_password().encode(encoding)


def _first_line(name: str, path: Path) -> str:
    if not os.path.lexists(path):
        raise SecurityError(f"{name} does not name a file (not shown: it may be the password itself)")
    try:
        text = read_small(name, path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SecurityError(f"{name} {path} must be text in UTF-8") from None
    line = text.split("\n", 1)[0].rstrip("\r")
    size = len(line.encode())
    if not 1 <= size <= MOST_PASSWORD_BYTES:
        raise SecurityError(
            f"{name} {path} must have the password on its first line, 1 to {MOST_PASSWORD_BYTES} bytes, "
            f"got {size}"
        )
    return line
