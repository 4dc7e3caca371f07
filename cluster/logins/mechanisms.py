"""The mechanisms by which we log in at Kafka, each with the fields that it needs."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from deniable.cluster.credential_files import context_trusting
from deniable.cluster.logins.secret_sources import current_secret
from deniable.cluster.loopback import is_loopback
from deniable.estimators.errors import DeniableError

LoginMechanism = Literal["TLS", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"]
FORMER = "SCRAM-SHA-512"  # of a user name without a mechanism
_OF_PASSWORD = ("username", "password")

# SCRAM delimits names by commas and equals signs, and Kafka's clients do not escape them.
_SCRAM_USERNAME = re.compile(r"[A-Za-z0-9._@+/:-]{1,255}")
_PLAIN_USERNAME = re.compile(r"[!-~]{1,255}")
_PROVIDER = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_EXTENSION = re.compile(r"(?!auth=)[A-Za-z]+=[ -~]+")
_REGION = re.compile(r"[a-z0-9-]{1,40}")


class CredentialsError(DeniableError, ValueError):
    """User name, password or another credential is missing."""


class _Login(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="mechanism"):
    """What all logins share."""

    def check(self) -> None:
        """Read its files, and run a command for its secret; SecurityError if one cannot be used."""


class TlsLogin(_Login, frozen=True, tag="TLS"):
    """No login beyond TLS: our certificate, if there is one, says who we are."""


class PasswordLogin(_Login, frozen=True, kw_only=True):
    """A user name, and a password from exactly one source."""

    username: str | None = None
    password: str | None = None
    password_file: Path | None = None
    password_command: list[str] | None = None

    def __post_init__(self) -> None:
        if self.username is not None and self._allowed().fullmatch(self.username) is None:
            characters = (
                "A-Z a-z 0-9 . _ @ + / : -" if self._allowed() is _SCRAM_USERNAME else "ASCII, no space"
            )
            raise ValueError(
                f"username must have 1 to 255 characters of {characters} (the given one is not "
                f"shown: it may be the password), got {len(self.username)}"
            )
        _check_secret("password", self.password, self.password_command)
        sources = [self.password, self.password_file, self.password_command]
        given = sum(each is not None for each in sources)
        if self.username is None and given:
            raise CredentialsError("a password needs username")
        if self.username is None:
            raise CredentialsError(f"mechanism {tag_of(self)} needs username")
        if given > 1:
            raise ValueError("password, password_file and password_command exclude each other: give one")
        if not given:
            raise CredentialsError(
                "username needs one of password_file, password_command, or a password in the environment"
            )

    def _allowed(self) -> re.Pattern[str]:
        return _SCRAM_USERNAME

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def check(self) -> None:
        """Read the password, by a command, too; SecurityError."""
        self.current_password()

    def current_password(self) -> str:
        """Return the present password; SecurityError if its source cannot be used."""
        return current_secret("password", self.password, self.password_file, self.password_command)


class PlainLogin(PasswordLogin, frozen=True, kw_only=True, tag="PLAIN"):
    """SASL PLAIN, which hands the password to the broker: always within TLS."""

    def _allowed(self) -> re.Pattern[str]:
        return _PLAIN_USERNAME


class Scram256Login(PasswordLogin, frozen=True, kw_only=True, tag="SCRAM-SHA-256"):
    """SCRAM with SHA-256."""


class Scram512Login(PasswordLogin, frozen=True, kw_only=True, tag="SCRAM-SHA-512"):
    """SCRAM with SHA-512."""


class OAuthLogin(_Login, frozen=True, kw_only=True, tag="OAUTHBEARER"):
    """A token of an OIDC endpoint by client credentials, of a file, or of a function."""

    token_endpoint: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    client_secret_file: Path | None = None
    client_secret_command: list[str] | None = None
    scope: str | None = None
    token_ca_file: Path | None = None
    token_file: Path | None = None
    token_provider: str | None = None
    token_extensions: dict[str, str] | None = None

    def __post_init__(self) -> None:
        given = sum(each is not None for each in (self.token_endpoint, self.token_file, self.token_provider))
        if given > 1:
            raise ValueError("token_endpoint, token_file and token_provider exclude each other: give one")
        if not given:
            raise CredentialsError("OAUTHBEARER needs one of token_endpoint, token_file and token_provider")
        if self.token_provider is not None and _PROVIDER.fullmatch(self.token_provider) is None:
            raise ValueError("token_provider must be package.module:function")
        for name, value in (self.token_extensions or {}).items():
            if _EXTENSION.fullmatch(f"{name}={value}") is None:
                raise ValueError("token_extensions must map letters, other than auth, to ASCII text")
        if self.token_endpoint is not None:
            self._check_endpoint(self.token_endpoint)
            return
        for field in (*_OF_ENDPOINT, "client_secret"):
            if getattr(self, field) is not None:
                raise ValueError(f"{field} needs token_endpoint")

    def _check_endpoint(self, address: str) -> None:
        try:
            url = urlsplit(address)
            is_safe = url.scheme == "https" or (url.scheme == "http" and is_loopback(url.hostname or ""))
            is_valid = is_safe and bool(url.hostname) and url.port != 0 and url.username is None
        except ValueError:
            is_valid = False
        if not is_valid or not all("!" <= each <= "~" for each in address):
            raise ValueError(
                "token_endpoint must be an address such as https://login.example/oauth2/token, http only to "
                "this machine, without a user name or a password"
            )
        sources = (self.client_secret, self.client_secret_file, self.client_secret_command)
        if self.client_id is None or sum(each is not None for each in sources) != 1:
            raise CredentialsError(
                "token_endpoint needs client_id, and one of client_secret_file, client_secret_command, or a "
                "client_secret in the environment"
            )
        _check_secret("client_secret", self.client_secret, self.client_secret_command)

    def __repr__(self) -> str:
        return "OAuthLogin(…)"

    def check(self) -> None:
        """Read the client's secret and authorities, but no token, which may be waited for; SecurityError."""
        if self.token_endpoint is not None:
            self.secret()
            context_trusting("token_ca_file", self.token_ca_file)

    def secret(self) -> str:
        """Return the client's present secret; SecurityError if its source cannot be used."""
        return current_secret(
            "client_secret", self.client_secret, self.client_secret_file, self.client_secret_command
        )


_OF_ENDPOINT = ("client_id", "client_secret_file", "client_secret_command", "scope", "token_ca_file")


class MskIamLogin(_Login, frozen=True, kw_only=True, tag="AWS_MSK_IAM"):
    """A token that the credentials of AWS sign, from where AWS's own tools find them."""

    region: str | None = None

    def __post_init__(self) -> None:
        if self.region is None or _REGION.fullmatch(self.region) is None:
            raise ValueError("AWS_MSK_IAM needs region: that of the cluster, such as eu-central-1")


TokenLogin = OAuthLogin | MskIamLogin
Login = TlsLogin | PlainLogin | Scram256Login | Scram512Login | TokenLogin
_LOGINS: Mapping[str, type[msgspec.Struct]] = {
    str(login.__struct_config__.tag): login for login in get_args(Login)
}


def _check_secret(name: str, value: str | None, command: Sequence[str] | None) -> None:
    if value == "":
        raise ValueError(f"the {name} must not be empty")
    if command is not None and not any(command[:1]):
        raise ValueError(f"{name}_command must be a list of words, the program first")


def login_of(mechanism: str | None, fields: Mapping[str, Any]) -> Login:
    """Return the login of a section's fields.

    Parameters
    ----------
    mechanism : None: SCRAM-SHA-512 if there is a user name or a password, else TLS.
    fields : of any login; None: not given.

    Raises
    ------
    ValueError that names the field; CredentialsError, a ValueError, if a credential is missing; TypeError if
    no login has such a field.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    mechanism = mechanism or (FORMER if any(name.startswith(_OF_PASSWORD) for name in given) else "TLS")
    if mechanism not in _LOGINS:
        raise ValueError(f"mechanism must be one of {', '.join(_LOGINS)}")
    for name in given:
        fits = [tag for tag, login in _LOGINS.items() if name in login.__struct_fields__]
        if fits and mechanism not in fits:
            raise ValueError(f"{name} does not belong to mechanism {mechanism}, but to {', '.join(fits)}")
    login: Login = _LOGINS[mechanism](**given)  # type: ignore[assignment]
    return login


def tag_of(login: msgspec.Struct) -> str:
    """Return the mechanism's name in the file."""
    return str(login.__struct_config__.tag)


def name_of(login: TokenLogin) -> str:
    """Return what the source of a login's tokens is called in messages."""
    if isinstance(login, MskIamLogin):
        return "the signer of AWS"
    fields = ("token_endpoint", "token_file", "token_provider")
    return next(f"{field} {getattr(login, field)}" for field in fields if getattr(login, field) is not None)
