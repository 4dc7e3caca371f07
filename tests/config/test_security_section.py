"""The section `kafka.security` of the collection file and its variables, and what goes in clear."""

import os
import socket
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.cluster.logins.mechanisms import TlsLogin, tag_of
from deniable.cluster.security import Security
from deniable.config.file import CollectionFileError, load
from deniable.deploy.cli.commands import deniable
from deniable.deploy.demo.flights import Flights
from deniable.deploy.demo.setup import configure
from tests.support.deploy.collection_texts import WHOLE, read, refusal
from tests.support.messages import PinMessages
from tests.support.paths import REPOSITORY

SECRET = "hunter2 ✓"
S = "DENIABLE_KAFKA__SECURITY__"
KUBERNETES = REPOSITORY / "deploy" / "kubernetes" / "overlays"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deniable.yaml"


def secured(section: str) -> str:
    return f"kafka: {{bootstrap_servers: 'kafka.example:9093', security: {section}}}\n{WHOLE}"


def test_paths_are_relative_to_the_file_and_not_opened(file: Path) -> None:
    section = "{ca_file: ca.pem, certificate_file: /etc/x.crt, key_file: sub/x.key, key_password_file: p}"
    found = read(file, secured(section)).cluster.security
    assert found is not None
    assert (found.ca_file, found.certificate_file) == (file.parent / "ca.pem", Path("/etc/x.crt"))
    assert (found.key_file, found.key_password_file) == (file.parent / "sub/x.key", file.parent / "p")
    assert isinstance(found.login, TlsLogin)


SECTIONS = (
    "{ca_file: ca.pem, certificate_file: a.crt, key_file: a.key, key_password_file: p}",
    "{mechanism: PLAIN, username: a, password_command: [pass, show]}",
    "{username: a, password_file: p}",
    "{mechanism: OAUTHBEARER, token_endpoint: 'https://login.test/', client_id: a, client_secret_file: s, "
    "scope: b, token_ca_file: ca.pem, token_extensions: {logicalCluster: c}}",
    "{mechanism: OAUTHBEARER, token_file: t}",
    "{mechanism: OAUTHBEARER, token_provider: 'a:b'}",
    "{mechanism: AWS_MSK_IAM, region: eu-central-1}",
)
FLIGHTS = Flights(["AA", "B6"], ["BOS", "ORD"], ["JFK", "LGA"], [60.0, 90.0], ["ANC"])


@pytest.mark.parametrize("section", SECTIONS)
def test_a_demo_connects_like_its_file(file: Path, tmp_path: Path, section: str) -> None:
    """Whose own file has each field that the login has."""
    cluster = read(file, secured(section)).cluster
    elsewhere = tmp_path / "demo"
    elsewhere.mkdir()
    assert configure(elsewhere, cluster, FLIGHTS).cluster.security == cluster.security


def test_a_field_of_no_mechanism_is_refused() -> None:
    with pytest.raises(TypeError, match="pasword"):
        Security(pasword="hunter2")


def test_a_relative_file_holds_from_another_folder_too(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(secured("{username: a, password_file: secrets/password}"))
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/password").write_text(SECRET, encoding="utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for path in (file, Path(os.path.relpath(file))):
        security = load(path, environment={}).cluster.security
        assert security is not None
        assert security.current_password() == SECRET


def test_empty_section_means_tls_with_system_authorities(file: Path) -> None:
    assert read(file, secured("{}")).cluster.security is not None


def test_a_section_without_a_line_is_refused(file: Path) -> None:
    """Who comments its fields out does not mean connections in clear."""
    for kafka in ("{security: }", "{allow_plaintext: true, security: null}"):
        text = f"kafka: {kafka}\n{WHOLE}"
        assert refusal(file, text).startswith("kafka.security ")
        assert refusal(file, text, **{f"{S}USERNAME": "a", f"{S}PASSWORD": SECRET}) == refusal(file, text)
    assert refusal(file, secured("{}"), DENIABLE_KAFKA__SECURITY="null").startswith("kafka.security ")


def test_environment_makes_the_section_or_wins_over_it(file: Path) -> None:
    alone = read(file, WHOLE, **{f"{S}USERNAME": "a", f"{S}PASSWORD": SECRET}).cluster.security
    assert alone is not None
    assert alone.current_password() == SECRET
    both = read(file, secured("{ca_file: ca.pem, username: b}"), **{f"{S}PASSWORD": SECRET}).cluster.security
    assert both is not None
    assert (both.ca_file, both.username) == (file.parent / "ca.pem", "b")
    for text in ("null", "12345", "true", "{}", " "):
        odd = read(file, WHOLE, **{f"{S}USERNAME": "a", f"{S}PASSWORD": text}).cluster.security
        assert odd is not None
        assert odd.current_password() == text


def test_password_in_the_file_is_refused_and_not_shown(file: Path) -> None:
    for written in (f"'{SECRET}'", "null", "5", f"[{SECRET}]"):
        message = refusal(file, secured(f"{{username: a, password: {written}}}"), **{f"{S}PASSWORD": SECRET})
        assert message.startswith("kafka.security.password ")
        assert "hunter" not in message


@pytest.mark.slow
def test_messages_of_sections(file: Path, pin_messages: PinMessages) -> None:
    sections = {
        "null": "",
        "text": SECRET,
        "a list": f"[{SECRET}]",
        "the name of a file is a list": f"{{password_file: [{SECRET}]}}",
        "the username is a number": "{username: 12345}",
        "a field is misspelt": f"{{pasword: {SECRET}}}",
        "a password": f"{{username: a, password: {SECRET}}}",
        "the name of a file is empty": "{ca_file: ''}",
        "the username is empty": "{username: ''}",
        "a key without a certificate": "{key_file: k}",
        "an unknown mechanism": f"{{mechanism: {SECRET}}}",
        "a field of another mechanism": "{mechanism: TLS, username: a}",
        "a command as text": f"{{username: a, password_command: {SECRET}}}",
        "a password's file and a key without a certificate": "{password_file: p, key_file: k}",
    }
    texts = {what: secured(section) for what, section in sections.items()}
    for text in texts.values():
        assert "hunter" not in refusal(file, text)
    pin_messages({what: partial(read, file, text) for what, text in texts.items()})


def test_messages_of_variables(file: Path, pin_messages: PinMessages) -> None:
    """They name the variable, not the file, and not its value."""
    names = {
        "a field is misspelt": f"{S}PASWORD",
        "a field of another section": "DENIABLE_KAFKA__PASSWORD",
        "a whole section": "DENIABLE_KAFKA__SECURITY",
        "a section is misspelt": "DENIABLE_KAFKA_SECURITY__PASSWORD",
        "a section in another that has none": "DENIABLE_KAFKA__SECURITY__TLS__PASSWORD",
    }
    for name in names.values():
        with pytest.raises(CollectionFileError) as refused:
            read(file, WHOLE, **{name: SECRET})
        assert str(refused.value).startswith(f"variable {name}")
        assert "hunter2" not in str(refused.value)
    pin_messages({what: partial(read, file, WHOLE, **{name: SECRET}) for what, name in names.items()})


def test_password_variable_overrides_the_file(file: Path) -> None:
    text = secured("{username: a, password_file: p}")
    for name in (f"{S}PASSWORD", f"{S}PASSWORD".lower().replace("deniable", "DENIABLE")):
        found = read(file, text, **{name: SECRET}).cluster.security
        assert found is not None
        assert (found.current_password(), found.login.password_file) == (SECRET, None)
    found = read(file, text, **{f"{S}PASSWORD_FILE": "/q"}).cluster.security
    assert found is not None
    assert (found.login.password, found.login.password_file) == (None, Path("/q"))


def test_password_variable_replaces_a_command(file: Path) -> None:
    text = secured("{mechanism: PLAIN, username: a, password_command: [pass, show, kafka]}")
    found = read(file, text).cluster.security
    assert found is not None
    assert (tag_of(found.login), found.login.password_command) == ("PLAIN", ["pass", "show", "kafka"])
    replaced = read(file, text, **{f"{S}PASSWORD": SECRET}).cluster.security
    assert replaced is not None
    assert (replaced.login.password_command, replaced.current_password()) == (None, SECRET)
    other = read(file, text, **{f"{S}MECHANISM": "SCRAM-SHA-256"}).cluster.security
    assert other is not None
    assert tag_of(other.login) == "SCRAM-SHA-256"


def connect(file: Path, text: str, **environment: str) -> object:
    """The file is none to refuse; a connection may be."""
    return read(file, text, **environment).cluster


WITHOUT_USERNAME = "{password_file: p}"


def test_messages_of_connections(file: Path, pin_messages: PinMessages) -> None:
    """Without credentials, other errors of the file are reported as well."""
    text = secured("{username: a, password_file: p}")
    both = {f"{S}PASSWORD": SECRET, f"{S}PASSWORD_FILE": "/p"}
    with pytest.raises(CollectionFileError) as refused:
        connect(file, text, **both)
    assert "hunter" not in str(refused.value)
    pin_messages(
        {
            "two variables contradict each other": partial(connect, file, text, **both),
            "two variables in another order": partial(
                connect, file, text, **{name: both[name] for name in reversed(both)}
            ),
            "a variable names another machine": partial(
                connect, file, WHOLE, DENIABLE_KAFKA__BOOTSTRAP_SERVERS="kafka.example:1"
            ),
            "a username without a password": partial(connect, file, secured("{username: a}")),
            "a password without a username": partial(connect, file, secured(WITHOUT_USERNAME)),
            "an address without a port": partial(
                connect, file, secured(WITHOUT_USERNAME).replace("example:9093", "example")
            ),
        }
    )


def test_check_needs_no_credentials_and_says_who_will(file: Path, pin_messages: PinMessages) -> None:
    file.write_text(secured(WITHOUT_USERNAME))
    checked = CliRunner().invoke(deniable, ["check", "--config", str(file)])
    assert checked.exit_code == 0
    pin_messages({"a password without a username": lambda: checked.stderr})


@pytest.mark.parametrize("overlay", ["small", "large"])
def test_kubernetes_file_is_valid(overlay: str) -> None:
    file = KUBERNETES / overlay / "settings" / "deniable.yaml"
    checked = CliRunner().invoke(deniable, ["check", "--config", str(file)])
    assert (checked.exit_code, "kafka.security" in checked.stderr) == (0, True)


COMMANDS = (
    *("aggregate", "topics create", "topics check", "replay", "replay --rebuild", "replay --accept-loss"),
    *("watch carrier", "inspect reports", "retire carrier"),
    *("rollup carrier --from 0", "decode destination --from 0 --candidates deniable.yaml"),
    *("produce carrier --field a --no-clients", "canary carrier", "demo --config deniable.yaml"),
)


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS)
def test_no_command_connects_to_another_machine_in_clear(
    file: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even a name is looked up."""
    reached: list[str] = []

    def look_up(host: str, *_: object, **__: object) -> list[object]:
        reached.append(host)
        raise socket.gaierror(-2, "not in a test")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.chdir(file.parent)
    for more in ("", ", allow_plaintext: false"):
        file.write_text(f"kafka: {{bootstrap_servers: 'kafka.example:9092'{more}}}\n{WHOLE}")
        ended = CliRunner().invoke(deniable, line.split(), input="")
        assert isinstance(ended.exception, CollectionFileError), ended.output
        assert "kafka.example" in str(ended.exception)
        assert reached == []


@pytest.mark.parametrize(
    "line", [*COMMANDS, "doctor", "detect carrier --from 2026-01-01T00:00Z --to 2026-01-02T00:00Z"]
)
def test_every_command_that_connects_refuses_missing_credentials(
    file: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    text = secured(WITHOUT_USERNAME)
    if line.startswith("canary"):
        text = text.replace("epsilon: 1.0986", "canary: true, minimum_reports: 1000, epsilon: 1.0986")
    file.write_text(text)
    ended = CliRunner().invoke(deniable, line.split(), input="a\nAA\n")
    assert isinstance(ended.exception, CollectionFileError), ended.output
    assert str(ended.exception).startswith("deniable.yaml: kafka.security: ")
    assert [each.name for each in file.parent.iterdir()] == ["deniable.yaml"]


@pytest.mark.parametrize("kafka", ["security:password=hunter2", "{sasl_password=hunter2: 1}"])
def test_slip_beside_the_section_is_not_shown_either(file: Path, kafka: str) -> None:
    assert "hunter2" not in refusal(file, f"kafka: {kafka}\n{WHOLE}")


def test_messages_of_broken_yaml(file: Path, pin_messages: PinMessages) -> None:
    """They do not quote it."""
    sections = {
        "a field twice": "{password: hunter2, password: hunter2}",
        "a field twice, one with a quote": "{password: \"hun'ter2'\", password: a}",
        "an alias of nothing": "{password: *hunter2}",
        "an unknown tag": "{password: !hunter2 x}",
        "an unknown tag handle": "{password: !hunter2!x y}",
        "no timestamp": "{password: !!timestamp hunter2}",
        "begins with @": "{password: @hunter2}",
        "an unknown escape": '{password: "\\hunter2"}',
        "an anchor twice": "{username: &a u, password: &a hunter2}",
        "a list without its end": "{password: [hunter2}",
        "no integer": "{password: !!int hunter2}",
        "no integer, but empty": "{password: !!int ''}",
        "no number": "{password: !!float hunter2}",
        "neither true nor false": "{password: !!bool hunter2}",
        "no day of the calendar": "{password: 2001-02-30}",
        "no space after the colon": "{password:hunter2}",
    }
    texts = {what: secured(section) for what, section in sections.items()}
    for text in texts.values():
        assert "hunter" not in refusal(file, text)
    pin_messages({what: partial(read, file, text) for what, text in texts.items()})
