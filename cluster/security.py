"""Security of connections to Kafka: TLS always; a login by certificate, or one of `logins`.

Files are read again for each connection, so certificates and passwords can be replaced under a running
process: existing connections continue, the next one uses the new content.
"""

import logging
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from deniable.cluster.credential_files import SecurityError, context_trusting, read_small
from deniable.cluster.logins.mechanisms import CredentialsError as CredentialsError
from deniable.cluster.logins.mechanisms import (
    Login,
    LoginMechanism,
    MskIamLogin,
    OAuthLogin,
    PasswordLogin,
    TlsLogin,
    TokenLogin,
    login_of,
    name_of,
    tag_of,
)
from deniable.cluster.logins.passwords import CurrentPassword
from deniable.cluster.logins.secret_sources import first_line

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


@dataclass(frozen=True, init=False)
class Security:
    """The section `kafka.security`. Files are read only when connecting, or by `check`.

    Parameters
    ----------
    ca_file : CA certificates that must have signed the brokers', PEM; None: those that this system trusts.
    certificate_file, key_file : our certificate with its chain and its private key, PEM; both or neither.
    key_password_file : its first line is the password of key_file, if that is encrypted.
    mechanism : of the login, of `logins.mechanisms`; None: SCRAM-SHA-512 with a user name, else TLS.
    login : fields of that mechanism, such as username and password.

    Raises
    ------
    ValueError that names the field, if fields are missing or contradict each other; CredentialsError, a
    ValueError, if a credential of the login is missing; TypeError if no mechanism has such a field.
    """

    ca_file: Path | None
    certificate_file: Path | None
    key_file: Path | None
    key_password_file: Path | None
    _login: Login

    def __init__(
        self,
        *,
        ca_file: Path | None = None,
        certificate_file: Path | None = None,
        key_file: Path | None = None,
        key_password_file: Path | None = None,
        mechanism: str | None = None,
        **login: Any,
    ) -> None:
        if (certificate_file is None) != (key_file is None):
            raise ValueError("certificate_file and key_file belong together: give both or neither")
        if key_password_file is not None and key_file is None:
            raise ValueError("key_password_file needs key_file")
        vars(self).update(  # setattr is forbidden: the class is frozen
            ca_file=ca_file,
            certificate_file=certificate_file,
            key_file=key_file,
            key_password_file=key_password_file,
            _login=login_of(mechanism, login),
        )

    @property
    def login(self) -> Login:
        """The login, with its own fields."""
        return self._login

    @property
    def username(self) -> str | None:
        """Who logs in by password; None for other logins."""
        return self._login.username if isinstance(self._login, PasswordLogin) else None

    @property
    def token_source(self) -> str | None:
        """Where our token comes from, for messages; None without one."""
        login = self._login
        if isinstance(login, OAuthLogin):
            return login.client_id or name_of(login)
        return f"AWS in {login.region}" if isinstance(login, MskIamLogin) else None

    def check(self) -> None:
        """Read all files, and run a command for a secret; SecurityError if one cannot be used."""
        self.new_context()
        self._login.check()

    def client_settings(self) -> dict[str, Any]:
        """Return keywords for both kafka-python and aiokafka; SecurityError if a file cannot be used."""
        self.new_context()
        tls: dict[str, Any] = {"security_protocol": "SSL", "ssl_context": CurrentContext(self.new_context)}
        login = self.login
        if isinstance(login, TlsLogin):
            return tls
        # At level DEBUG these log salt and proof, from which a weak password can be guessed, and tokens.
        for name in ("kafka.net", "kafka.protocol", "aiokafka.conn"):
            logging.getLogger(name).setLevel(logging.INFO)
        return tls | {"security_protocol": "SASL_SSL"} | _credentials(login)

    def current_password(self) -> str:
        """Return the present password; empty without a username. SecurityError if it cannot be read."""
        login = self.login
        return login.current_password() if isinstance(login, PasswordLogin) else ""

    def new_context(self) -> ssl.SSLContext:
        """Build a context for TLS 1.2 or newer that verifies the broker; SecurityError like `check`."""
        context = context_trusting("ca_file", self.ca_file)
        if self.certificate_file is not None and self.key_file is not None:
            self._identify(context, self.certificate_file, self.key_file)
        return context

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
        return first_line("key_password_file", self.key_password_file)


def field_types() -> dict[str, Any]:
    """Return the type of each field of the section as a file has it, by name: of TLS, then of each login."""
    types = get_type_hints(Security) | {"mechanism": LoginMechanism | None}
    for login in get_args(types.pop("_login")):
        types |= {each.name: each.type for each in msgspec.structs.fields(login)}
    return {name: str | None if kind == Path | None else kind for name, kind in types.items()}


def _credentials(login: PasswordLogin | TokenLogin) -> dict[str, Any]:
    """Return keywords for clients, which are imported here: who only reads a file needs none."""
    from deniable.cluster.logins import of_aiokafka, of_kafka_python
    from deniable.cluster.logins.token_provider import TokenProvider

    of_aiokafka.renew_sessions()
    if not isinstance(login, PasswordLogin):
        return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": TokenProvider(login)}
    of_kafka_python.read_passwords_again()
    if login.password_command is None:  # which may take seconds
        login.current_password()
    return {
        "sasl_mechanism": tag_of(login),
        "sasl_plain_username": login.username,
        "sasl_plain_password": CurrentPassword(login),
    }
