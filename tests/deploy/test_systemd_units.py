"""The units for systemd: what systemd itself says of them, and that they start what there is."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click import Context
from msgspec import structs

from deniable.aggregator.ledger.row_values import RowError
from deniable.cluster.permissions.roles import Role
from deniable.deploy.cli.commands import deniable
from deniable.deploy.services.aggregate.command import STOP_SECONDS
from deniable.deploy.services.relay import command as relay_command
from deniable.edge import server
from tests.support.deploy.collection_texts import WHOLE, read
from tests.support.needed import missing
from tests.support.paths import REPOSITORY

UNITS = REPOSITORY / "deploy" / "systemd"
INSTANCES = {
    "deniable-aggregator@.service": "8321",
    "deniable-producer@.service": "carrier",
    "deniable-relay@.service": "9111",
    "deniable-edge@.service": "8330",
}
#: Services with a secret: the variable that names it, and how long they take to stop.
WITH_SECRETS = {
    "deniable-relay@.service": ("DENIABLE_RELAY__SECRET_FILE", relay_command.STOP_SECONDS),
    "deniable-edge@.service": ("DENIABLE_EDGE__SIGNING_KEY_FILE", 2 * server.STOP_SECONDS),
}
#: Drop-ins that one service may have, and the section that they complete.
LOGINS = (
    (("kafka-password.conf", "kafka-certificates.conf"), "ca_file: /ca"),
    (
        ("kafka-client-secret.conf",),
        "ca_file: /ca, mechanism: OAUTHBEARER, token_endpoint: 'https://login.test/token'",
    ),
)
DROP_INS = [name for names, _ in LOGINS for name in names]
COMMAND = "/opt/deniable/bin/deniable"
MOST_EXPOSURE = 20  # 2.0 of systemd's 10; it calls up to 4.9 "OK"

each_unit = pytest.mark.parametrize("unit", INSTANCES)


def analyze(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze is missing: it is in Debian's package systemd")
    command = ["systemd-analyze", "--no-pager", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def installed(folder: Path, unit: str) -> str:
    """Put an instance of a unit, its drop-ins and its command into a folder; the instance's name."""
    command = folder / "deniable"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    text = (UNITS / unit).read_text(encoding="utf-8")
    assert COMMAND in text
    (folder / unit).write_text(text.replace(COMMAND, str(command)), encoding="utf-8")
    beside = folder / f"{unit}.d"
    beside.mkdir()
    for name in DROP_INS:
        shutil.copy(UNITS / name, beside)
    return unit.replace("@", f"@{INSTANCES[unit]}")


def setting(unit: str, name: str) -> str:
    found = re.search(rf"^{name}=(.*)$", (UNITS / unit).read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None, name
    return found[1]


@pytest.mark.slow
@each_unit
def test_systemd_finds_nothing_wrong(unit: str, tmp_path: Path) -> None:
    instance = installed(tmp_path, unit)
    verified = analyze("verify", "--man=no", f"./{instance}", folder=tmp_path)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")
    for name in DROP_INS:
        with (tmp_path / f"{unit}.d" / name).open("a") as drop_in:
            drop_in.write(f"Mistyped-{name}=yes\n")
    verified = analyze("verify", "--man=no", f"./{instance}", folder=tmp_path)
    assert all(f"Mistyped-{name}" in verified.stderr for name in DROP_INS)


@each_unit
def test_a_service_is_exposed_to_little(unit: str, tmp_path: Path) -> None:
    instance = installed(tmp_path, unit)
    judge = ("security", "--offline=true", f"--threshold={MOST_EXPOSURE}", f"./{instance}")
    judged = analyze(*judge, folder=tmp_path)
    assert judged.returncode == 0, judged.stdout
    file = tmp_path / unit
    file.write_text(file.read_text(encoding="utf-8").replace("SystemCallFilter=", "#"), encoding="utf-8")
    assert analyze(*judge, folder=tmp_path).returncode != 0


@each_unit
def test_unit_starts_an_existing_command(unit: str) -> None:
    command, *arguments = setting(unit, "ExecStart").replace("%i", INSTANCES[unit]).split()
    name, *options = [each for each in arguments if each != "$ARGS"]
    options += ["--field", "carrier", "--no-clients"] if name == "produce" else []
    with Context(deniable) as context:
        found = deniable.get_command(context, name)
        assert (command, found is not None) == (COMMAND, True)
        assert found is not None
        found.parse_args(Context(found, parent=context), options)


@each_unit
def test_systemd_waits_until_a_service_has_ended_by_itself(unit: str) -> None:
    _, seconds = WITH_SECRETS.get(unit, ("", STOP_SECONDS))
    assert int(setting(unit, "TimeoutStopSec")) > seconds
    assert str(RowError.exit_status) in setting(unit, "RestartPreventExitStatus").split()


@pytest.mark.parametrize(("names", "section"), LOGINS)
def test_drop_ins_set_what_the_collection_file_knows(
    tmp_path: Path, names: Sequence[str], section: str
) -> None:
    """Each service comes as the principal of its role, with a password and a key, or a secret, of its own."""
    message = "".join((UNITS / name).read_text(encoding="utf-8") for name in names)
    credentials = dict(re.findall(r"^LoadCredential=([a-z-]+):/etc/deniable/(.+)$", message, re.MULTILINE))
    variables = dict(re.findall(r"^Environment=(\w+)=(.+)$", message, re.MULTILINE))
    handed = {variable: text for variable, text in variables.items() if text.startswith("%d/")}
    assert {text.removeprefix("%d/") for text in handed.values()} == credentials.keys()
    secured = WHOLE.replace("revision: 1\n", "revision: 1\nkafka: {security: {" + section + "}}\n")
    for unit in INSTANCES:
        service = unit.partition("@")[0]  # %p
        environment = {
            name: text.replace("%p", service).replace("%d", "/x") for name, text in variables.items()
        }
        loaded = read(tmp_path / "deniable.yaml", secured, **environment)
        assert loaded.kafka.security is not None
        given = set(structs.asdict(loaded.kafka.security).values())
        shared = {None, "OAUTHBEARER", "https://login.test/token"}
        assert given - shared == {service, "/ca", *(f"/x/{credential}" for credential in credentials)}
        assert loaded.cluster.security is not None  # which nothing is missing in
        assert service in {f"deniable-{role}" for role in Role}
    assert all(file.startswith("%p.") for file in credentials.values())


def test_systemd_knows_the_specifiers_of_the_drop_ins(tmp_path: Path) -> None:
    """A file's name with a specifier that there is not would be ignored at the start of the service."""
    unit = next(iter(INSTANCES))
    instance = installed(tmp_path, unit)
    drop_in = tmp_path / f"{unit}.d" / DROP_INS[0]
    drop_in.write_text(drop_in.read_text(encoding="utf-8").replace("%p", "%Z"), encoding="utf-8")
    verified = analyze("verify", "--man=no", f"./{instance}", folder=tmp_path)
    assert verified.stderr.count("Failed to resolve") == 2, verified.stderr


def test_secrets_belong_only_to_their_service() -> None:
    producer = "deniable-producer@.service"
    assert (setting(producer, "StateDirectory"), setting(producer, "StateDirectoryMode")) == (
        "deniable",
        "0700",
    )
    users = (UNITS / "deniable.sysusers.conf").read_text(encoding="utf-8")
    assert f"\nu {setting(producer, 'User')} " in users
    for unit, (variable, _) in WITH_SECRETS.items():
        name = unit.partition("@")[0]
        assert (setting(unit, "User"), setting(unit, "StateDirectory")) == (name, name)
        assert setting(unit, "StateDirectoryMode") == "0700"
        assert setting(unit, "Environment").startswith(f"{variable}=/var/lib/{name}/")
        assert f"\nu {name} " in users


def test_edge_may_open_as_many_connections_as_it_takes() -> None:
    assert int(setting("deniable-edge@.service", "LimitNOFILE")) == (
        server.MOST_CONNECTIONS + server.RESERVED_FILES
    )


@pytest.mark.parametrize("unit", WITH_SECRETS)
def test_units_override_the_section_of_their_service(unit: str, tmp_path: Path) -> None:
    """The collection file needs the empty section alone."""
    variable, _, path = setting(unit, "Environment").partition("=")
    text = WHOLE.replace("revision: 1\n", "revision: 1\nedge: {}\nrelay: {}\n")
    loaded = read(tmp_path / "deniable.yaml", text, **{variable: path})
    assert loaded.edge is not None
    assert loaded.relay is not None
    assert path in (loaded.edge.signing_key_file, loaded.relay.secret_file)
