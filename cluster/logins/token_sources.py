"""Where tokens come from: an OIDC token endpoint, a file, a function, or the signer of AWS."""

import base64
import http.client
import json
import os
import ssl
import stat
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from deniable.cluster.credential_files import context_trusting, read_small
from deniable.cluster.logins.mechanisms import MskIamLogin, OAuthLogin, TokenLogin, name_of
from deniable.cluster.logins.tokens import Token, TokenError, Tokens, token_of

ANSWER_SECONDS = 5.0
MOST_ANSWER_BYTES = 2**18
MOST_TOKEN_CHARACTERS = 2**16
#: Of RFC 6749, section 5.2; other texts of an answer are not shown.
REFUSALS = (
    *("invalid_client", "invalid_request", "invalid_grant"),
    *("unauthorized_client", "unsupported_grant_type", "invalid_scope"),
)

#: Of certificates, by OpenSSL's code: for another host, for another IP address, expired.
_REMEDIES = dict.fromkeys((62, 64), "name an address for which it is issued") | {10: "renew it, or its CA's"}
_TRUST = "set token_ca_file of kafka.security to the certificate of the CA that signed it"

_tokens: dict[tuple[int, bytes], Tokens] = {}
_one_at_a_time = threading.Lock()


def current_token(login: TokenLogin) -> Token:
    """Return the present token; wait for the first. TokenError, or SecurityError of its file."""
    file = _file_of(login)
    return _tokens_of(login).current() if file is None else of_file(file)


def ready_token(login: TokenLogin) -> Token | None:
    """Return the present token if nobody needs to wait for it."""
    return _tokens_of(login).ready() if _file_of(login) is None else None


def awaited_source(login: TokenLogin) -> str | None:
    """Return the name of the source whose token is still waited for; None if there is one."""
    is_there = _file_of(login) is not None or ready_token(login) is not None
    return None if is_there else name_of(login)


def _file_of(login: TokenLogin) -> Path | None:
    return login.token_file if isinstance(login, OAuthLogin) else None


def _tokens_of(login: TokenLogin) -> Tokens:
    """Return the tokens of a login, the same ones within a process; a forked one has its own."""
    with _one_at_a_time:
        key = os.getpid(), msgspec.json.encode(login, enc_hook=str)
        return _tokens.setdefault(key, Tokens(name_of(login), partial(_ask_for, login)))


def _ask_for(login: TokenLogin) -> Token:
    if isinstance(login, MskIamLogin):
        return of_signer(str(login.region))
    return of_endpoint(login) if login.token_endpoint is not None else of_provider(str(login.token_provider))


def of_file(path: Path) -> Token:
    """Read the token of a file; TokenError without a valid one, SecurityError if it cannot be read."""
    if not _is_written(path):
        raise TokenError(f"token_file {path} is absent or empty", "check what writes the file")
    try:
        text = read_small("token_file", path).decode("ascii").strip()
    except UnicodeDecodeError:
        text = ""
    token = token_of(_checked(f"token_file {path}", text))
    if not token.is_valid():
        late = time.time() - (token.ends or 0)
        raise TokenError(
            f"token_file {path} has a token that expired {late:.0f} s ago",
            "check what writes the file, and the clock",
        )
    return token


def _is_written(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError as error:
        return not isinstance(error, FileNotFoundError)
    return status.st_size > 0 or not stat.S_ISREG(status.st_mode)


def of_provider(dotted: str) -> Token:
    """Call `package.module:function`, which returns a token, or a token and its lifetime in seconds."""
    module, _, name = dotted.partition(":")
    shown = f"token_provider {dotted}"
    try:
        function = getattr(import_module(module), name, None)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is not ours; its message may hold a secret
        if isinstance(error, ModuleNotFoundError) and error.name:
            raise TokenError(
                f"{shown} cannot be imported: there is no module {error.name}",
                "install its package, or let PYTHONPATH name its folder",
                True,
            ) from None
        raise TokenError(
            f"{shown} raises {type(error).__name__} while it is imported",
            "import it in Python to see why",
            True,
        ) from None
    if not callable(function):
        raise TokenError(f"{shown}: module {module} has no function {name}", "correct token_provider", True)
    try:
        answer: Any = function()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is not ours; its message may hold a secret
        raise TokenError(f"{shown} raises {type(error).__name__}", "call it in Python to see why") from None
    text, lifetime = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, None)
    if not isinstance(lifetime, int | float | None) or (lifetime is not None and not lifetime > 0):
        raise TokenError(f"{shown} must return a lifetime in seconds, > 0", "correct it", True)
    return token_of(_checked(shown, text), lifetime)


def of_signer(region: str) -> Token:
    """Sign a token for MSK with the credentials of AWS that its own tools would use."""
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError:
        raise TokenError(
            "mechanism AWS_MSK_IAM needs a library", "install the extra: pip install 'deniable[msk]'", True
        ) from None
    try:
        text, ends_milliseconds = MSKAuthTokenProvider.generate_auth_token(region)
    except Exception as error:  # noqa: BLE001 - it is not ours; its message may hold a secret
        is_without = isinstance(error, AttributeError)  # of the signer, where there are none
        raise TokenError(
            "AWS gives no credentials" + (": there are none" if is_without else f": {type(error).__name__}"),
            "check the environment, ~/.aws or the machine's role with aws sts get-caller-identity",
        ) from None
    return Token(_checked("the signer of AWS", text), ends_milliseconds / 1000)


def of_endpoint(login: OAuthLogin) -> Token:
    """Ask an OIDC token endpoint, by client credentials (RFC 6749, section 4.4)."""
    shown = f"token_endpoint {login.token_endpoint}"
    try:
        answer = json.loads(_ask(login, shown))
        text, lifetime = answer["access_token"], answer.get("expires_in")
        lifetime = None if lifetime is None else float(lifetime)
        if lifetime is not None and not lifetime > 0:
            raise TokenError(f"{shown} answers with expires_in that is not > 0", "check its settings", True)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise TokenError(
            f"{shown} does not answer with an access_token in JSON", "check the address", True
        ) from None
    return token_of(_checked(shown, text), lifetime)


def _ask(login: OAuthLogin, shown: str) -> bytes:
    form = {"grant_type": "client_credentials"} | ({"scope": login.scope} if login.scope else {})
    pair = ":".join(urllib.parse.quote(each, safe="") for each in (login.client_id or "", login.secret()))
    request = urllib.request.Request(  # noqa: S310 - https, or http to this machine
        str(login.token_endpoint),
        urllib.parse.urlencode(form).encode(),
        {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}", "Accept": "application/json"},
    )
    context = context_trusting("token_ca_file", login.token_ca_file)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirects)
    deadline = time.monotonic() + ANSWER_SECONDS
    try:
        with opener.open(request, timeout=ANSWER_SECONDS) as response:
            return _limited(response, deadline, shown)
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(shown, error, deadline) from None
    except TokenError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise _failure(shown, error.reason if isinstance(error, urllib.error.URLError) else error) from None


def _failure(shown: str, reason: object) -> TokenError:
    """Say why there was no answer; of TLS, too, where waiting does not help."""
    match reason:
        case TimeoutError():
            return TokenError(f"{shown} has not answered within {ANSWER_SECONDS:g} s", "check its load")
        case ssl.SSLCertVerificationError():
            said = f"its certificate is not trusted: {reason.verify_message.rstrip('.')}"
            return TokenError(f"{shown}: {said}", _REMEDIES.get(reason.verify_code, _TRUST), True)
        case ssl.SSLError():
            return TokenError(
                f"{shown}: TLS failed: {reason.reason}", "check that its port is of https", True
            )
    said = getattr(reason, "strerror", None) or type(reason).__name__
    return TokenError(f"{shown} cannot be reached: {said}", "check that it runs, and the address")


def _limited(response: Any, deadline: float, shown: str) -> bytes:
    """Read an answer that may be neither large nor slow."""
    answer = b""
    while part := response.read1(2**16):
        answer += part
        if len(answer) > MOST_ANSWER_BYTES:
            raise TokenError(
                f"{shown} answers with more than {MOST_ANSWER_BYTES} bytes", "check the address", True
            )
        if time.monotonic() > deadline:
            raise TokenError(f"{shown} has not answered within {ANSWER_SECONDS:g} s", "check its load")
    return answer


def _refusal(shown: str, error: urllib.error.HTTPError, deadline: float) -> TokenError:
    try:
        said = json.loads(_limited(error, deadline, shown)).get("error")
    except (OSError, http.client.HTTPException, ValueError, AttributeError, RecursionError):
        said = None
    is_answer = 300 <= error.code < 500 and error.code not in (408, 429)
    why = f" ({said})" if said in REFUSALS else ""
    remedy = (
        "check token_endpoint, client_id, the client's secret and scope" if is_answer else "check its log"
    )
    if 300 <= error.code < 400:
        remedy = "name the address that it redirects to: redirects are not followed"
    return TokenError(f"{shown} answers with status {error.code}{why}", remedy, is_answer)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The client's secret goes to the configured address alone."""

    def redirect_request(self, *_arguments: Any, **_keywords: Any) -> None:
        return None


def _checked(shown: str, text: object) -> str:
    """Return a token of the characters that HTTP and SASL allow: no space, nothing that ends a field."""
    if not isinstance(text, str) or not 1 <= len(text) <= MOST_TOKEN_CHARACTERS or not text.isascii():
        text = ""
    if not all("!" <= each <= "~" for each in text) or not text:
        raise TokenError(
            f"{shown} must give a token of 1 to {MOST_TOKEN_CHARACTERS} ASCII characters without space",
            "check that it gives a token alone",
            True,
        )
    return text
