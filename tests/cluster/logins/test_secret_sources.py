"""A secret by command: its first line, within a limit of time, and never shown."""

import sys
from pathlib import Path

import pytest

from deniable.cluster.credential_files import SecurityError
from deniable.cluster.logins import secret_sources
from deniable.cluster.logins.secret_sources import current_secret
from deniable.cluster.security import Security
from tests.support.messages import PinMessages

SECRET = "hunter2 ✓"


def command(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-X", "utf8", "-c", code)


def printed(code: str) -> str:
    return current_secret("password", None, None, command(code))


def test_the_first_line_of_a_command_is_the_secret() -> None:
    assert printed(f"print({SECRET!r}); print('more')") == SECRET
    security = Security(username="a", password_command=command(f"print({SECRET!r})"))
    security.check()
    assert security.client_settings()["sasl_plain_password"].encode().decode() == SECRET


def test_no_shell_reads_the_words() -> None:
    assert current_secret("password", None, None, ("/bin/echo", "$HOME; id")) == "$HOME; id"


def test_a_command_runs_again_once_its_secret_may_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text("one")
    code = f"print(open({str(file)!r}).read())"
    assert printed(code) == "one"
    file.write_text("two")
    assert printed(code) == "one", "many connections run it once"
    monkeypatch.setattr(secret_sources, "REUSED_SECONDS", 0.0)
    assert printed(code) == "two"


def test_messages(pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = {
        "it fails": f"import sys; print({SECRET!r}); sys.exit({SECRET!r})",
        "it prints nothing": "pass",
        "it prints too much": "print('hunter2' * 1000)",
        "it prints no text": "import os; os.write(1, b'hunter2\\xff')",
        "it hangs": f"import time; print({SECRET!r}, flush=True); time.sleep(60)",
    }

    def refused(code: str) -> str:
        with pytest.raises(SecurityError) as caught:
            printed(code)
        assert "hunter" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
        return str(caught.value).replace(Path(sys.executable).name, "PROGRAM")

    monkeypatch.setattr(secret_sources, "COMMAND_SECONDS", 0.3)
    hangs = codes.pop("it hangs")
    messages = {"it hangs": refused(hangs)}
    monkeypatch.setattr(secret_sources, "COMMAND_SECONDS", 20.0)
    messages |= {what: refused(code) for what, code in codes.items()}
    with pytest.raises(SecurityError) as absent:
        current_secret("password", None, None, ("/nonexistent/program",))
    messages["it is absent"] = str(absent.value)
    pin_messages({what: (lambda message=message: message) for what, message in messages.items()})


def test_a_check_reads_every_file_of_a_token(tmp_path: Path, pin_messages: PinMessages) -> None:
    """Before anything is asked for one, so the messages are those at the start of any command."""
    good, bad, blank, absent = (tmp_path / name for name in ("good", "bad", "blank", "absent"))
    good.write_text("secret")
    bad.write_bytes(b"\nhunter2")
    blank.touch()
    endpoint = {"mechanism": "OAUTHBEARER", "token_endpoint": "https://login.test/", "client_id": "a"}
    sections = {
        f"{what}: {path.name}": Security(**section)
        for path in (bad, blank, absent, tmp_path)
        for what, section in {
            "client_secret_file": endpoint | {"client_secret_file": path},
            "token_ca_file": endpoint | {"client_secret_file": good, "token_ca_file": path},
        }.items()
    }

    def refused(security: Security) -> str:
        with pytest.raises(SecurityError) as caught:
            security.check()
        assert "hunter" not in str(caught.value)
        return str(caught.value).replace(str(tmp_path), "TMP")

    messages = {what: refused(security) for what, security in sections.items()}
    pin_messages({what: (lambda message=message: message) for what, message in messages.items()})
