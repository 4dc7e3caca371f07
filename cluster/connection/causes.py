"""Turn errors of connecting to Kafka into a cause and a remedy."""

import errno
import re
import resource
import socket
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from cryptography import x509

from deniable.cluster.credential_files import SecurityError
from deniable.cluster.logins.mechanisms import (
    Login,
    MskIamLogin,
    OAuthLogin,
    TlsLogin,
    TokenLogin,
    name_of,
    tag_of,
)
from deniable.cluster.logins.token_sources import awaited_source, current_token
from deniable.cluster.logins.tokens import OPAQUE, TokenError, described_claims
from deniable.cluster.security import Security

NAMES_DIFFER = (62, 64)  # OpenSSL: X509_V_ERR_HOSTNAME_MISMATCH, _IP_ADDRESS_MISMATCH
EXPIRED, NOT_YET_VALID = 10, 9
#: TLS alerts of brokers for an absent, expired or untrusted client certificate; Java's are vague.
CERTIFICATE_ALERTS = (
    "CERTIFICATE_REQUIRED",
    "BAD_CERTIFICATE",
    "UNKNOWN_CA",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_EXPIRED",
)
SHOWN_MECHANISMS = 8
_MECHANISM = re.compile(r"[A-Z0-9_-]{1,20}")  # RFC 4422, section 3.1
TRUST = "set ca_file of kafka.security to the certificate of the CA that signed the broker's"


class TlsPort(ConnectionError):
    """A plaintext connection to a TLS port."""


class PlaintextPort(ConnectionError):
    """A TLS connection to a plaintext port."""


class NotKafka(ConnectionError):
    """Something listens there, but does not answer like Kafka."""


class LoginWanted(ConnectionError):
    """The broker accepts a connection without a login, but closes it at the first request."""


class Cause(NamedTuple):
    """Why a broker cannot be used.

    Parameters
    ----------
    what : is wrong.
    remedy : what to do about it.
    is_answer : whether something answered, so waiting does not help.
    is_of_token : whether the broker was not even asked, for want of a token.
    """

    what: str
    remedy: str
    is_answer: bool = True
    is_of_token: bool = False


def cause_of(error: BaseException, waited_seconds: float, security: Security | None) -> Cause:
    """Explain an error.

    Parameters
    ----------
    error : of asyncio, ssl, a socket or aiokafka; its causes are examined, too.
    waited_seconds : before giving up, for the message.
    security : of the connection.
    """
    for each in _chain(error):
        if found := _known(each, waited_seconds, security):
            return found
    return Cause(type(error).__name__, "look at the broker's log")


def _known(error: BaseException, waited_seconds: float, security: Security | None) -> Cause | None:
    match error:
        case SecurityError():
            return Cause(str(error), "mend the file or command that it names")
        case TokenError():
            return Cause(error.message, error.remedy, error.is_answer, is_of_token=True)
        case TimeoutError() if (source := _awaited(security)) is not None:
            return Cause(
                f"{source} has not answered within {waited_seconds:g} s",
                "check that it can be reached",
                is_answer=False,
                is_of_token=True,
            )
        case ssl.SSLCertVerificationError():
            return _of_certificate(error)
        case ssl.SSLError():
            return _of_tls(error, security)
        case TlsPort() | PlaintextPort() | NotKafka() | LoginWanted():
            return _of_speech(error, security)
        case KafkaConnectionError():
            return None  # aiokafka raises it for anything; its cause says more
        case KafkaError():
            return _of_login(error, security)
        case OSError():
            return _of_network(error, waited_seconds)
    return None


def _awaited(security: Security | None) -> str | None:
    """Return what a login waits for: the source of its token."""
    login = None if security is None else security.login
    return awaited_source(login) if isinstance(login, TokenLogin) else None


def _of_speech(error: ConnectionError, security: Security | None) -> Cause:
    match error:
        case TlsPort():
            return Cause("it requires TLS, and we connected without", "give kafka.security with its ca_file")
        case PlaintextPort():
            return Cause(
                "it is a Kafka listener without TLS, and we connected with it",
                "name the port of a TLS listener in kafka.bootstrap_servers",
            )
        case LoginWanted() if security is None:
            return Cause(
                "it requires a login without TLS, which deniable does not send",
                "name the port of a TLS listener, and give kafka.security",
            )
        case LoginWanted():
            return Cause(
                "it requires a login, and we gave none",
                "set mechanism of kafka.security to one in sasl.enabled.mechanisms of that listener, and its "
                "fields: username and password_file, or those of a token",
            )
    return Cause(
        f"the server there is not a Kafka broker with{'out' if security is None else ''} TLS",
        "correct kafka.bootstrap_servers",
    )


def refused_login(security: Security | None) -> str:
    """Say why brokers refuse a login, as far as they say it."""
    if security is not None and isinstance(security.login, TokenLogin):
        return f"it refuses our token: {_of_token(security.login)}"
    return "the password is wrong, or the user unknown (brokers do not say which)"


def _of_token(login: TokenLogin) -> str:
    if isinstance(login, MskIamLogin):
        return f"it is signed for region {login.region}"
    try:
        return described_claims(current_token(login).text)
    except (TokenError, SecurityError) as error:
        return str(error)


def _of_refusal(security: Security | None) -> Cause:
    """Explain a login that the broker refuses."""
    why = refused_login(security)
    match login := TlsLogin() if security is None else security.login:
        case OAuthLogin() if why.endswith(OPAQUE):
            remedy = (
                "look at the broker's log: with Kafka's own validator it takes JWTs alone, so get one from "
                f"{name_of(login)}; with another, the token may have expired"
            )
        case OAuthLogin():
            remedy = (
                "compare with the broker's sasl.oauthbearer.expected.issuer, .expected.audience and "
                ".jwks.endpoint.url; its log says which does not fit"
            )
        case MskIamLogin():
            remedy = "check region, and the policy's kafka-cluster:Connect"
        case _:
            tag = tag_of(login)
            users = "users of PLAIN" if tag == "PLAIN" else f"{tag} users"
            remedy = f"check username and {_source_of(login)} against the broker's {users}"
    return Cause(why, remedy)


def _source_of(login: Login) -> str:
    """Return where the password comes from."""
    for field in ("password_file", "password_command"):
        if getattr(login, field, None) is not None:
            return f"{field} of kafka.security"
    return "the password in the environment"


def _of_login(error: KafkaError, security: Security | None) -> Cause:
    login = TlsLogin() if security is None else security.login
    match error:
        case SaslAuthenticationFailed():
            return _of_refusal(security)
        case UnsupportedSaslMechanismError():
            return Cause(
                f"it does not accept {tag_of(login)}{_but(error)}",
                "set mechanism of kafka.security to one in sasl.enabled.mechanisms of that listener, add it "
                "there, or name the port of another one",
            )
        case IllegalSaslStateError():
            return Cause(
                "that listener identifies clients by certificate, and we gave a "
                f"{'token' if isinstance(login, TokenLogin) else 'user name'}",
                "leave the login out of kafka.security, or name the port of its SASL_SSL listener",
            )
    return Cause(f"it refused: {type(error).__name__}", "look at the broker's log")


def _but(error: UnsupportedSaslMechanismError) -> str:
    accepted = [each for each in error.args if isinstance(each, str) and _MECHANISM.fullmatch(each)]
    return f", but {', '.join(accepted[:SHOWN_MECHANISMS])}" if accepted else ""


def _of_network(error: OSError, waited_seconds: float) -> Cause:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        what = f"this process may open no more files (its limit is {limit})"
        return Cause(what, "raise it: LimitNOFILE in the systemd unit, ulimits nofile in Compose", False)
    match error:
        case socket.gaierror():
            return Cause(f"{error.strerror}", "correct the host name, or fix DNS", False)
        case TimeoutError():
            what = f"no answer within {waited_seconds:g} s"
            return Cause(what, "check that the broker runs and that no firewall is in between", False)
        case ConnectionRefusedError():
            return Cause("Connection refused", "check that the broker runs, and the port", False)
        case ConnectionError():
            return Cause(
                "it closed the connection",
                "look at the broker's log, its connections.max.idle.ms and its connection quotas",
                False,
            )
    return Cause(error.strerror or str(error), "check the network", False)


def _of_certificate(error: ssl.SSLCertVerificationError) -> Cause:
    if error.verify_code in NAMES_DIFFER:
        return Cause(
            "its certificate is for another host name",
            "use the name in its certificate (subjectAltName) in kafka.bootstrap_servers and in the broker's "
            "advertised.listeners",
        )
    if error.verify_code == EXPIRED:
        return Cause("its certificate, or its CA's, has expired", "renew the broker's certificate")
    if error.verify_code == NOT_YET_VALID:
        return Cause("its certificate is not valid yet", "check the clocks of this machine and of the CA")
    return Cause(f"its certificate is not trusted: {error.verify_message}", TRUST)


def _of_tls(error: ssl.SSLError, security: Security | None) -> Cause:
    reason = error.reason or type(error).__name__
    if any(alert in reason for alert in CERTIFICATE_ALERTS):
        return _of_our_certificate(security)
    if "PROTOCOL_VERSION" in reason or "HANDSHAKE_FAILURE" in reason or "NO_SHARED_CIPHER" in reason:
        return Cause(
            f"it has no TLS version or cipher in common with us ({reason})",
            "add TLSv1.3 or TLSv1.2 to the broker's ssl.enabled.protocols",
        )
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING"):
        return _of_speech(NotKafka(), security)
    return Cause(f"TLS failed: {reason}", "compare the broker's ssl.enabled.protocols and ciphers")


def _of_our_certificate(security: Security | None) -> Cause:
    file = None if security is None else security.certificate_file
    if file is None:
        return Cause(
            "it requires a client certificate, and we gave none",
            "set certificate_file and key_file of kafka.security, or name the port of its SASL_SSL listener",
        )
    ends = end_of_file(file)
    if ends is not None and ends < datetime.now(UTC):
        return Cause(f"our certificate expired on {ends:%Y-%m-%d}", f"renew certificate_file {file}")
    return Cause(
        "it does not trust our certificate",
        f"have certificate_file {file} signed, for clientAuth, by a CA in the broker's truststore",
    )


def end_of_file(certificate_file: Path) -> datetime | None:
    """Return when the first certificate of a PEM file expires; None if it cannot be read."""
    try:
        return x509.load_pem_x509_certificates(certificate_file.read_bytes())[0].not_valid_after_utc
    except (OSError, ValueError):
        return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error's causes before the error itself: the cause says most."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _chain(each)
    led = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if led is not None and not isinstance(error, (TlsPort, PlaintextPort, LoginWanted)):
        yield from _chain(led)
    yield error
