"""Tokens: renewed before they expire, kept while their source is away, refused in a sentence, never shown."""

import asyncio
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
import structlog

from deniable.cluster.credential_files import SecurityError
from deniable.cluster.logins import token_sources, tokens
from deniable.cluster.logins.mechanisms import OAuthLogin, login_of
from deniable.cluster.logins.token_provider import TokenProvider
from deniable.cluster.logins.token_sources import current_token, of_endpoint, of_file, of_provider
from deniable.cluster.logins.tokens import (
    Token,
    TokenError,
    Tokens,
    claims_of,
    described_claims,
    of_security,
    token_of,
)
from deniable.cluster.security import Security
from tests.support.brokers.secured.certificates import Authority
from tests.support.brokers.secured.identity_provider import IdentityProvider
from tests.support.messages import PinMessages
from tests.support.processes import wait_until


def by_endpoint(provider: IdentityProvider, **fields: object) -> OAuthLogin:
    own = {
        "token_endpoint": provider.token_endpoint,
        "client_id": "app",
        "client_secret": provider.client_secret,
    }
    login = login_of("OAUTHBEARER", own | fields)
    assert isinstance(login, OAuthLogin)
    return login


def refusal(ask: "partial[object]") -> str:
    with pytest.raises(TokenError) as caught:
        ask()
    waiting = "waiting does not help" if caught.value.is_answer else "waiting helps"
    return f"{caught.value}; {caught.value.remedy}; {waiting}"


def test_an_endpoint_grants_a_token_for_a_scope() -> None:
    with IdentityProvider() as provider:
        token = of_endpoint(by_endpoint(provider, scope="a b"))
        assert claims_of(token.text)["sub"] == "app"
        assert token.ends == pytest.approx(time.time() + provider.lifetime_seconds, abs=5)
        assert provider.scopes == ["a b"]


def test_one_object_serves_both_clients() -> None:
    with IdentityProvider() as provider:
        login = by_endpoint(provider)
        own = TokenProvider(login)

        async def awaited() -> str:
            return await own.token()

        first = f"{own.token()}"
        assert first == asyncio.run(awaited()) == f"{TokenProvider(by_endpoint(provider)).token()}"
        assert claims_of(first)["sub"] == "app"
        assert provider.requests == 1, "of one process and login"
        assert first not in repr(own) + repr(own.token()) + str(own.token()) + repr(login)


def test_a_token_is_renewed_before_it_expires_and_nobody_waits() -> None:
    made = iter(range(1000))
    renewed = Tokens("a source", lambda: Token(str(next(made)), time.time() + 1.5))
    assert renewed.current().text == "0"
    deadline = time.monotonic() + 4
    while time.monotonic() < deadline:
        began = time.monotonic()
        token = renewed.current()
        assert time.monotonic() - began < 0.5
        assert token.is_valid()
        time.sleep(0.05)
    assert 2 <= int(renewed.current().text) <= 4


def test_the_last_token_is_used_while_the_source_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "FIRST_PAUSE_SECONDS", 0.05)
    is_away = False

    def fetch() -> Token:
        if is_away:
            raise TokenError("it is away", "wait")
        return Token("token", time.time() + 1.0)

    with structlog.testing.capture_logs() as lines:
        renewed = Tokens("a source", fetch)
        renewed.current()
        is_away = True
        assert wait_until(lambda: len(lines) == 1, 5)
        assert renewed.current().text == "token", "the last one"
        time.sleep(1.0)
        with pytest.raises(TokenError, match="it is away"):
            renewed.current()
        is_away = False
        assert wait_until(lambda: renewed.ready() is not None, 5)
        assert wait_until(lambda: len(lines) == 2, 5)
    assert [line["log_level"] for line in lines] == ["warning", "info"]


def test_tokens_that_nobody_uses_are_not_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "FIRST_PAUSE_SECONDS", 0.01)
    made = []

    def fetch() -> Token:
        made.append(1)
        return Token("token", time.time() + 0.1)

    renewed = Tokens("a source", fetch)
    renewed.current()
    assert wait_until(lambda: not renewed._is_running, 5)
    assert len(made) == 2
    assert renewed.current().text == "token"


def test_a_source_that_is_silent_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "WAIT_SECONDS", 0.2)
    silent = Tokens("a source", lambda: time.sleep(30) or Token("late", None))
    with pytest.raises(TokenError, match="does not answer"):
        silent.current()


def test_a_source_that_is_back_is_soon_asked_while_no_token_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_PAUSE_SECONDS", "LONGEST_PAUSE_SECONDS"):
        monkeypatch.setattr(tokens, name, 30.0)
    monkeypatch.setattr(tokens, "LONGEST_WITHOUT_SECONDS", 0.1)
    answers = iter(range(10))

    def fetch() -> Token:
        if next(answers) == 0:
            raise TokenError("it is away", "wait")
        return Token("token", None)

    renewed = Tokens("a source", fetch)
    with pytest.raises(TokenError):
        renewed.current()
    assert wait_until(lambda: renewed.ready() is not None, 5)


def test_a_token_that_is_not_valid_yet_says_so() -> None:
    with IdentityProvider() as provider:
        assert "valid only in" in described_claims(provider.token("app", nbf=time.time() + 60))
        assert "valid only" not in described_claims(provider.token("app", nbf=time.time() - 60))


def test_a_token_expires_when_its_answer_or_itself_says_first() -> None:
    with IdentityProvider() as provider:
        text = provider.token("app", exp=1000)
    assert token_of(text, 60.0).ends == 1000.0
    assert token_of("opaque", 60.0).ends == pytest.approx(time.time() + 60, abs=5)
    assert token_of("opaque").ends is None


@pytest.mark.parametrize(
    "ends", [1_800_000_000_000, float("inf"), pytest.param(10**400, id="400 digits"), -1]
)
def test_an_end_that_is_no_unix_second_is_none(ends: float) -> None:
    with IdentityProvider() as provider:
        token = token_of(provider.token("app", exp=ends, nbf=ends))
    assert token.ends is None
    assert "clock" not in described_claims(token.text)


def test_a_token_of_a_very_long_life_ends_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    died: list[object] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    tokens = Tokens("source", lambda: token_of("opaque", 1e12))
    assert tokens.current().text == "opaque"
    time.sleep(0.2)
    assert died == []


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority]:
    folder = tmp_path_factory.mktemp("authorities")
    return Authority("authority", folder), Authority("stranger", folder)


def test_messages_of_tls_to_the_endpoint(
    tmp_path: Path, pin_messages: PinMessages, authorities: tuple[Authority, Authority]
) -> None:
    """Each cause in one sentence with the remedy; the client's secret goes to nobody else."""
    authority, stranger = authorities
    garbage, absent = tmp_path / "garbage.pem", tmp_path / "absent.pem"
    garbage.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    own = authority.certificate_file
    good = authority.issue("provider", server=True)
    of_other_name = authority.issue("provider", server=True, addresses=("127.0.0.2",))
    expired = authority.issue("provider", server=True, not_after=datetime.now(UTC) - timedelta(days=1))
    said = {}
    with IdentityProvider(shown=good) as provider:

        def refused(file: Path | None) -> str:
            login = by_endpoint(provider, token_ca_file=file)
            with pytest.raises((TokenError, SecurityError)) as caught:
                of_endpoint(login)
            error = of_security(caught.value) if isinstance(caught.value, SecurityError) else caught.value
            return f"{error}; {error.remedy}; waiting {'does not help' if error.is_answer else 'helps'}"

        assert claims_of(of_endpoint(by_endpoint(provider, token_ca_file=own)).text)["sub"] == "app"
        said["authorities of the system"] = refused(None)
        said["of another authority"] = refused(stranger.certificate_file)
        said["no certificate"] = refused(garbage)
        said["no file"] = refused(absent)
        provider.shown = of_other_name
        said["for another name"] = refused(own)
        provider.shown = expired
        said["expired"] = refused(own)
        assert provider.requests == 1
        places = {provider.token_endpoint: "ENDPOINT", str(tmp_path): "TMP"}
    with IdentityProvider() as http:
        login = by_endpoint(http, token_endpoint=http.token_endpoint.replace("http:", "https:"))
        said["without TLS"] = refusal(partial(of_endpoint, login))
        places[str(login.token_endpoint)] = "ENDPOINT"
    for place, name in places.items():
        said = {what: each.replace(place, name) for what, each in said.items()}
    pin_messages({what: (lambda each=each: each) for what, each in said.items()})


def test_renewals_outlast_a_change_of_authorities(
    tmp_path: Path, authorities: tuple[Authority, Authority], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last token is used until token_ca_file, read for each renewal, fits again."""
    monkeypatch.setattr(tokens, "FIRST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(tokens, "LONGEST_PAUSE_SECONDS", 0.1)
    authority, stranger = authorities
    file = tmp_path / "ca.pem"
    file.write_bytes(authority.certificate_file.read_bytes())
    issued = authority.issue("provider", server=True)
    logs = structlog.testing.capture_logs()
    with logs as lines, IdentityProvider(lifetime_seconds=3.0, shown=issued) as provider:
        login = by_endpoint(provider, token_ca_file=file)
        first = current_token(login)
        for content in (b"garbage", stranger.certificate_file.read_bytes(), None):
            before = len(lines)
            file.unlink() if content is None else file.write_bytes(content)
            assert wait_until(lambda before=before: bool(current_token(login)) and len(lines) > before, 5)
            file.write_bytes(authority.certificate_file.read_bytes())
            assert wait_until(lambda before=before: bool(current_token(login)) and len(lines) > before + 1, 5)
        assert current_token(login) != first
    assert [line["log_level"] for line in lines] == ["warning", "info"] * 3
    assert provider.client_secret not in str(lines)


def test_a_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    login = login_of("OAUTHBEARER", {"token_file": file})
    assert isinstance(login, OAuthLogin)
    for text in ("one", "two"):
        file.write_text(f"{text}\n")
        assert f"{TokenProvider(login).token()}" == text


def test_a_start_does_not_refuse_a_file_that_is_not_written_yet(tmp_path: Path) -> None:
    """Before it connects; then it waits for the token, as for that of an identity provider that is away."""
    Security(mechanism="OAUTHBEARER", token_file=tmp_path / "token").check()


def test_a_function_returns_a_token_or_one_with_its_lifetime() -> None:
    here = __name__
    assert of_provider(f"{here}:plain") == Token("plain", None)
    assert of_provider(f"{here}:short").ends == pytest.approx(time.time() + 60, abs=5)


def plain() -> str:
    return "plain"


def short() -> tuple[str, float]:
    return "short", 60


def failing() -> str:
    raise RuntimeError("hunter2")


def spaced() -> str:
    return "hunter2 \x01auth=x"


def immortal() -> tuple[str, str]:
    return "token", "hunter2"


MODULES = {
    "a RuntimeError": "raise RuntimeError('hunter2')",
    "a SyntaxError": "hunter2 = = 1",
    "a module without a name": "raise ModuleNotFoundError('hunter2')",
    "an attribute that raises": "def __getattr__(name): raise RuntimeError('hunter2')",
    "a lifetime that is no number": "def token(): return 'hunter2', float('nan')",
    "a KeyError": "import os; os.environ['HUNTER2']",
    "another module": "import absent_package.module",
    "no function": "token = 'hunter2'",
    "a SystemExit": "raise SystemExit('hunter2')",
}


def test_messages_of_modules_that_cannot_be_used(
    tmp_path: Path, pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence without what the module said, and no traceback of the thread that asks for tokens."""
    died: list[object] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    monkeypatch.syspath_prepend(tmp_path)
    said = {}
    for number, (what, code) in enumerate(MODULES.items()):
        (tmp_path / f"provider_{number}.py").write_text(code)
        login = login_of("OAUTHBEARER", {"token_provider": f"provider_{number}:token"})
        assert isinstance(login, OAuthLogin)
        said[what] = refusal(partial(current_token, login))
        assert "hunter2" not in said[what].lower()
    assert died == []
    pin_messages({what: (lambda each=each: each) for what, each in said.items()})


def test_a_source_that_raises_anything_is_named_and_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    died: list[object] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    monkeypatch.setattr(tokens, "FIRST_PAUSE_SECONDS", 0.05)
    errors: list[BaseException] = [asyncio.CancelledError("hunter2"), RuntimeError("hunter2")]

    def fetch() -> Token:
        if errors:
            raise errors.pop()
        return Token("token", None)

    renewed = Tokens("a source", fetch)
    with pytest.raises(TokenError, match="a source raises RuntimeError"):
        renewed.current()
    assert wait_until(lambda: renewed.ready() is not None, 5)
    assert died == []


def test_messages_of_sources(
    tmp_path: Path, pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    with IdentityProvider() as provider:
        file.write_text(provider.token("app", exp=time.time() - 100))
        said = {"an expired token": re.sub(r"\d+ s", "N s", refusal(partial(of_file, file)))}
        file.write_text("two words")
        said["a file of two words"] = refusal(partial(of_file, file))
        file.write_text("")
        said["an empty file"] = refusal(partial(of_file, file))
        file.unlink()
        said["no file"] = refusal(partial(of_file, file))
        with pytest.raises(SecurityError) as caught:
            of_file(tmp_path)
        said["a folder"] = str(caught.value)
        for name in ("failing", "spaced", "immortal", "absent"):
            said[f"a function: {name}"] = refusal(partial(of_provider, f"{__name__}:{name}"))
        said["no module"] = refusal(partial(of_provider, "nowhere:function"))
        ask = partial(of_endpoint, by_endpoint(provider))
        said["a wrong secret"] = refusal(partial(of_endpoint, by_endpoint(provider, client_secret="hunter2")))
        for status, answer in (
            (200, b"hunter2"),
            (200, b'{"token": "hunter2"}'),
            (200, b'{"access_token": "hunter2 hunter2"}'),
            (200, b'{"access_token": "a", "expires_in": "hunter2"}'),
            (200, b'{"access_token": "' + b"a" * 300_000),
            (302, b""),
            (400, b'{"error": "hunter2"}'),
            (400, b'{"error": "invalid_scope"}'),
            (503, b"hunter2"),
        ):
            provider.status, provider.answer = status, answer
            said[f"{status} {answer[:50].decode()}"] = refusal(ask)
        provider.stop()
        said["away"] = refusal(ask)
    for each in said.values():
        assert "hunter" not in each
    endpoint, here = provider.token_endpoint, str(tmp_path)
    said = {
        what: each.replace(endpoint, "ENDPOINT").replace(here, "TMP").replace(__name__, "tests")
        for what, each in said.items()
    }
    pin_messages({what: (lambda each=each: each) for what, each in said.items()})


@pytest.mark.parametrize("status", [200, 500])
def test_a_slow_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr(token_sources, "ANSWER_SECONDS", 0.3)
    with IdentityProvider() as provider:
        provider.status, provider.answer, provider.pause_seconds = status, bytes(500), 0.1
        began = time.monotonic()
        with pytest.raises(TokenError, match="within" if status == 200 else "500"):
            of_endpoint(by_endpoint(provider))
    assert time.monotonic() - began < 5


def test_messages_of_fields(pin_messages: PinMessages) -> None:
    of = partial(partial, login_of, "OAUTHBEARER")
    whole = {"token_endpoint": "https://login.test/token", "client_id": "a", "client_secret": "hunter2"}
    pin_messages(
        {
            "nothing": of({}),
            "two sources": of({"token_file": Path("a"), "token_provider": "a:b"}),
            "a provider without a function": of({"token_provider": "package.module"}),
            "a scope of a file": of({"token_file": Path("a"), "scope": "b"}),
            "a secret of a file": of({"token_file": Path("a"), "client_secret": "hunter2"}),
            "http to another machine": of(whole | {"token_endpoint": "http://login.test/token"}),
            "a password in the address": of(whole | {"token_endpoint": "https://a:hunter2@login.test/token"}),
            "no address": of(whole | {"token_endpoint": "hunter2"}),
            "no secret": of({"token_endpoint": "https://login.test/token", "client_id": "a"}),
            "an empty secret": of(whole | {"client_secret": ""}),
            "an extension with a name of SASL": of(whole | {"token_extensions": {"auth": "hunter2"}}),
            "AWS without a region": partial(login_of, "AWS_MSK_IAM", {}),
        }
    )
