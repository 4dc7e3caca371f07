"""The section `kafka.security` of the collection file and its variables, and what goes in clear."""

import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from deploy.cli.commands import deniable
from deploy.config.file import CollectionFileError, load
from tests.support.deploy.collection_texts import WHOLE, read, refusal
from tests.support.paths import REPOSITORY

SECRET = "hunter2 ✓"
FIELDS = (
    "kafka.security: must be a mapping of fields: ca_file, certificate_file, key_file, key_password_file, "
    "username, password_file"
)
S = "DENIABLE_KAFKA__SECURITY__"
KUBERNETES = REPOSITORY / "deploy" / "kubernetes" / "overlays"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deniable.yaml"


def secured(section: str) -> str:
    return f"kafka: {{bootstrap_servers: 'kafka.example:9093', security: {section}}}\n{WHOLE}"


def variable_refusal(file: Path, **environment: str) -> str:
    """The message about a variable, which does not blame the file."""
    with pytest.raises(CollectionFileError) as caught:
        read(file, WHOLE, **environment)
    assert str(caught.value).startswith("variable DENIABLE_")
    return str(caught.value)


def test_paths_are_relative_to_the_file_and_not_opened(file: Path) -> None:
    section = "{ca_file: ca.pem, certificate_file: /etc/x.crt, key_file: sub/x.key, key_password_file: p}"
    found = read(file, secured(section)).cluster.security
    assert found is not None
    assert (found.ca_file, found.certificate_file) == (file.parent / "ca.pem", Path("/etc/x.crt"))
    assert (found.key_file, found.key_password_file) == (file.parent / "sub/x.key", file.parent / "p")
    assert (found.username, found.password, found.password_file) == (None, None, None)


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
    message = (
        "kafka.security must not be empty: name its fields, or write {} for TLS with the authorities that "
        "this system trusts; leave it out for plaintext connections"
    )
    for kafka in ("{security: }", "{allow_plaintext: true, security: null}"):
        text = f"kafka: {kafka}\n{WHOLE}"
        assert refusal(file, text) == message
        assert refusal(file, text, **{f"{S}USERNAME": "a", f"{S}PASSWORD": SECRET}) == message
    assert refusal(file, secured("{}"), DENIABLE_KAFKA__SECURITY="null") == message


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
        assert message == (
            "kafka.security.password must not be in the file: name a password_file, or set the variable "
            f"{S}PASSWORD"
        )


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (SECRET, FIELDS),
        (f"[{SECRET}]", FIELDS),
        (f"{{password_file: [{SECRET}]}}", "kafka.security.password_file: must be text"),
        ("{username: 12345}", "kafka.security.username: must be text"),
        (
            f"{{pasword: {SECRET}}}",
            "kafka.security: unknown field `pasword`; did you mean `password_file`? Known fields: ca_file, "
            "certificate_file, key_file, key_password_file, username, password_file",
        ),
        ("{ca_file: ''}", "kafka.security: ca_file must not be empty: leave it out"),
        ("{username: ''}", "kafka.security: username must not be empty: leave it out"),
        (
            "{key_file: k}",
            "kafka.security: certificate_file and key_file belong together: give both or neither",
        ),
    ],
)
def test_a_wrong_section_is_reported_without_a_value(file: Path, section: str, message: str) -> None:
    assert refusal(file, secured(section)) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (f"{S}PASWORD", "unknown field `pasword`"),
        ("DENIABLE_KAFKA__PASSWORD", "unknown field `password`"),
        ("DENIABLE_KAFKA__SECURITY", "security: must be a mapping of fields"),
        ("DENIABLE_KAFKA_SECURITY__PASSWORD", "must begin with one of"),
        ("DENIABLE_KAFKA__SECURITY__TLS__PASSWORD", "must begin with one of"),
    ],
)
def test_wrong_variable_is_named_and_its_value_is_not(file: Path, name: str, message: str) -> None:
    whole = variable_refusal(file, **{name: SECRET})
    assert whole.startswith(f"variable {name}")
    assert message in whole
    assert "hunter2" not in whole


def test_password_variable_overrides_the_file(file: Path) -> None:
    text = secured("{username: a, password_file: p}")
    for name in (f"{S}PASSWORD", f"{S}PASSWORD".lower().replace("deniable", "DENIABLE")):
        found = read(file, text, **{name: SECRET}).cluster.security
        assert found is not None
        assert (found.current_password(), found.password_file) == (SECRET, None)
    found = read(file, text, **{f"{S}PASSWORD_FILE": "/q"}).cluster.security
    assert found is not None
    assert (found.password, found.password_file) == (None, Path("/q"))


def credentials_refusal(file: Path, text: str, **environment: str) -> str:
    """What a connection is refused with; the file itself is none to refuse."""
    loaded = read(file, text, **environment)
    with pytest.raises(CollectionFileError) as caught:
        _ = loaded.cluster
    return str(caught.value).removeprefix(f"{file}: ")


def test_variables_that_contradict_each_other_are_named(file: Path) -> None:
    both = {f"{S}PASSWORD": SECRET, f"{S}PASSWORD_FILE": "/p"}
    for names in (list(both), list(reversed(both))):
        assert credentials_refusal(
            file, secured("{username: a, password_file: p}"), **{name: both[name] for name in names}
        ) == (
            "kafka.security: username needs either password_file, or a password in the environment "
            f"(set by the environment: {', '.join(names)})"
        )
    assert refusal(file, WHOLE, DENIABLE_KAFKA__BOOTSTRAP_SERVERS="kafka.example:1").endswith(
        "(set by the environment: DENIABLE_KAFKA__BOOTSTRAP_SERVERS)"
    )


WITHOUT_USERNAME = "{password_file: p}"


def test_other_errors_are_reported_without_credentials(file: Path) -> None:
    wrong = secured(WITHOUT_USERNAME).replace("example:9093", "example")
    assert refusal(file, wrong).startswith("kafka.bootstrap_servers ")
    assert "belong together" in refusal(file, secured("{password_file: p, key_file: k}"))
    assert credentials_refusal(file, secured("{username: a}")).startswith("kafka.security: username needs ")


def test_check_needs_no_credentials_and_says_who_will(file: Path) -> None:
    file.write_text(secured(WITHOUT_USERNAME))
    checked = CliRunner().invoke(deniable, ["check", "--config", str(file)])
    assert (checked.exit_code, checked.stderr) == (
        0,
        f"commands that connect would refuse this: {file}: kafka.security: a password needs username\n",
    )


@pytest.mark.parametrize("overlay", ["small", "large"])
def test_kubernetes_file_is_valid(overlay: str) -> None:
    file = KUBERNETES / overlay / "settings" / "deniable.yaml"
    checked = CliRunner().invoke(deniable, ["check", "--config", str(file)])
    assert (checked.exit_code, "a password needs username" in checked.stderr) == (0, True)


COMMANDS = (
    *("aggregate", "topics create", "topics check", "replay", "replay --rebuild", "replay --accept-loss"),
    *("watch carrier", "inspect reports", "retire carrier"),
    *("rollup carrier --from 0", "decode destination --from 0 --candidates deniable.yaml"),
    *("produce carrier --field a --no-clients", "canary carrier", "demo --config deniable.yaml"),
)


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
        assert "another machine (kafka.example) and the connection is not encrypted" in str(ended.exception)
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
    assert str(ended.exception) == "deniable.yaml: kafka.security: a password needs username"
    assert [each.name for each in file.parent.iterdir()] == ["deniable.yaml"]


@pytest.mark.parametrize("kafka", ["security:password=hunter2", "{sasl_password=hunter2: 1}"])
def test_slip_beside_the_section_is_not_shown_either(file: Path, kafka: str) -> None:
    assert "hunter2" not in refusal(file, f"kafka: {kafka}\n{WHOLE}")


@pytest.mark.parametrize(
    ("section", "kind"),
    [
        ("{password: hunter2, password: hunter2}", ": found duplicate key …"),
        ("{password: \"hun'ter2'\", password: a}", ": found duplicate key …"),
        ("{password: *hunter2}", ": found undefined alias …"),
        ("{password: !hunter2 x}", ": could not determine a constructor for the tag …"),
        ("{password: !hunter2!x y}", ": found undefined tag handle …"),
        ("{password: !!timestamp hunter2}", ": failed to construct timestamp from …"),
        ("{password: @hunter2}", ": found character … that cannot start any token"),
        ('{password: "\\hunter2"}', ": found unknown escape character …"),
        ("{username: &a u, password: &a hunter2}", "an anchor (&…) is defined twice"),
        ("{password: [hunter2}", ": expected ',' or ']', but got '}'"),
        *(
            (f"{{password: {value}}}", "is not YAML: a value is no date, or not what its tag ")
            for value in ("!!int hunter2", "!!float hunter2", "!!bool hunter2", "!!int ''", "2001-02-30")
        ),
        ("{password:hunter2}", "kafka.security: unknown field `password…`"),
    ],
)
def test_broken_yaml_is_reported_without_its_text(file: Path, section: str, kind: str) -> None:
    message = refusal(file, secured(section))
    assert kind in message
    assert "hunter" not in message
    assert "…`" in kind or message.startswith("is not YAML: ")
