"""The token of one login: cached, renewed in the background before it expires, and claims as it states them.

Rule: no message shows a token, a secret or what a source answered, but for issuer, audience and key id.
"""

import base64
import binascii
import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import structlog

from deniable.cluster.credential_files import SecurityError
from deniable.estimators.errors import DeniableError

RENEWED_AT = 0.7  # of its lifetime
UNKNOWN_SECONDS = 300.0  # after which a token is renewed that does not say when it expires
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
LONGEST_WITHOUT_SECONDS = 5.0  # while no token is valid
LONGEST_SECONDS = 3600.0  # after which any token is renewed
WAIT_SECONDS = 5.2  # an endpoint may take 5 s, and the step of doctor that names the source 5.5 s
LAST_SECOND = 253_402_300_799  # of the year 9999; what lies beyond is no unix second
SHOWN_CHARACTERS = 80
OPAQUE = "it is opaque, no JWT, so it shows no issuer, audience or end"

_log = structlog.get_logger(__name__)


class TokenError(DeniableError, OSError):
    """No valid token can be had.

    Parameters
    ----------
    message : which source, and why.
    remedy : what to do about it.
    is_answer : whether the source refused, so waiting does not help.
    """

    def __init__(self, message: str, remedy: str, is_answer: bool = False) -> None:
        super().__init__(message)
        self.message, self.remedy, self.is_answer = message, remedy, is_answer


def of_security(error: SecurityError) -> TokenError:
    """Return the error of a source whose file cannot be used."""
    return TokenError(str(error), "mend the file or command that it names", is_answer=True)


class Token(NamedTuple):
    """A token and when it expires, unix seconds; None: it does not say."""

    text: str
    ends: float | None

    def __repr__(self) -> str:
        return "Token(…)"

    def is_valid(self) -> bool:
        """Whether it has not expired."""
        return self.ends is None or time.time() < self.ends


def token_of(text: str, lifetime_seconds: float | None = None) -> Token:
    """Return a token that expires after its lifetime, or when it says itself: whichever is first."""
    stated = _second_of(claims_of(text), "exp")
    ends = [] if stated is None else [stated]
    ends += [] if lifetime_seconds is None else [time.time() + lifetime_seconds]
    return Token(text, min(ends, default=None))


def _second_of(claims: Mapping[str, Any], name: str) -> float | None:
    second = claims.get(name)
    return float(second) if isinstance(second, int | float) and 0 <= second <= LAST_SECOND else None


def claims_of(text: str) -> Mapping[str, Any]:
    """Return the claims of a JWT, and `kid` of its header, without verifying them; empty if it is opaque."""
    claims: dict[str, Any] = {}
    try:
        header, payload, _ = text.split(".")
        for part in (header, payload):
            claims |= json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        return {}
    return claims


def described_claims(text: str) -> str:
    """Say what a broker compares: issuer, audience, key, whether it expired or is not valid yet."""
    claims = claims_of(text)
    if not claims:
        return OPAQUE
    names = {"issuer": "iss", "audience": "aud", "key": "kid"}
    said = [f"{name} {str(claims[key])[:SHOWN_CHARACTERS]!r}" for name, key in names.items() if key in claims]
    ends, begins = _second_of(claims, "exp"), _second_of(claims, "nbf")
    if ends is not None and ends <= time.time():
        said.insert(0, f"it expired {time.time() - ends:.0f} s ago by this machine's clock")
    if begins is not None and begins > time.time():
        said.insert(0, f"it is valid only in {begins - time.time():.0f} s by this machine's clock")
    return ", ".join(said)


class Tokens:
    """The tokens of one source. A thread renews them as long as they are used.

    Parameters
    ----------
    source : its name, for the log.
    fetch : returns a new token; TokenError or SecurityError.
    """

    def __init__(self, source: str, fetch: Callable[[], Token]) -> None:
        self._source, self._fetch = source, fetch
        self._changed = threading.Condition()
        self._token: Token | None = None
        self._failure: TokenError | None = None
        self._failed_at: float | None = None  # while an older token is valid
        self._is_running = self._is_used = False

    def ready(self) -> Token | None:
        """Return a valid token that is at hand; None if one must be waited for."""
        with self._changed:
            self._is_used = True
            if not self._is_running:
                self._is_running, self._failure = True, None
                threading.Thread(target=self._renew, name="tokens", daemon=True).start()
            return self._token if self._token is not None and self._token.is_valid() else None

    def current(self) -> Token:
        """Return a valid token; wait for the first one.

        Raises
        ------
        TokenError if the source was asked without success, or does not answer within 5.2 s.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            with self._changed:  # throughout: a token that comes between question and wait would wake nobody
                token = self.ready()
                if token is not None:
                    return token
                if self._failure is not None:
                    raise TokenError(self._failure.message, self._failure.remedy, self._failure.is_answer)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TokenError(f"{self._source} does not answer", "check that it can be reached")
                self._changed.wait(left)

    def _renew(self) -> None:
        try:
            self._renew_while_used()
        except BaseException:
            with self._changed:  # or no other thread would begin
                self._is_running = False
            raise

    def _renew_while_used(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                time.sleep(self._take(self._fetch()))
                pause = FIRST_PAUSE_SECONDS
            except BaseException as error:  # noqa: BLE001 - in a thread; its message may hold a secret
                self._note(error)
                time.sleep(min(pause, max(LONGEST_WITHOUT_SECONDS, self._left_seconds())))
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            with self._changed:
                is_valid = self._token is not None and self._token.is_valid()
                if not self._is_used and (self._failure is None or not is_valid):
                    self._is_running = False
                    return
                self._is_used = False

    def _left_seconds(self) -> float:
        """Return how long the last token is valid."""
        if self._token is None:
            return 0.0
        return math.inf if self._token.ends is None else self._token.ends - time.time()

    def _take(self, token: Token) -> float:
        """Keep a new token; return after how many seconds it is renewed."""
        with self._changed:
            self._token, self._failure = token, None
            if self._failed_at is not None:
                _log.info("tokens are renewed again", after_seconds=round(time.monotonic() - self._failed_at))
                self._failed_at = None
            self._changed.notify_all()
        if token.ends is None:
            return UNKNOWN_SECONDS
        return min(max(FIRST_PAUSE_SECONDS, RENEWED_AT * (token.ends - time.time())), LONGEST_SECONDS)

    def _note(self, error: BaseException) -> None:
        if isinstance(error, SecurityError):
            error = of_security(error)
        elif not isinstance(error, TokenError):
            error = TokenError(
                f"{self._source} raises {type(error).__name__}", "call it in Python to see why"
            )
        with self._changed:
            self._failure = error
            if self._failed_at is None and self._token is not None and self._token.is_valid():
                self._failed_at = time.monotonic()
                _log.warning("no new token; the last one is used until it expires", cause=error.message)
            self._changed.notify_all()
