"""The command line without a broker: help, refusals, exit codes, and what goes to which stream."""

import errno
import os
import re
import shlex
import signal
import socket
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from deniable.aggregator.ledger.row_values import RowError
from deniable.aggregator.ledger.terms_update import TermsError
from deniable.aggregator.records import estimate_schema
from deniable.cluster.credential_files import SecurityError
from deniable.deploy.cli.commands import COMMANDS as LISTED
from deniable.deploy.cli.commands import TASKS, deniable
from deniable.deploy.cli.main import KAFKA_ERRORS
from deniable.producers.storage.store import StoreError
from tests.deploy.cli.conftest import Run
from tests.support.deploy.collection_texts import WHOLE
from tests.support.messages import PinMessages

PRODUCE = "produce carrier --input lines.csv --field carrier --no-clients"
NEEDING_KAFKA = [
    "topics create",
    "topics check",
    "replay",
    "watch carrier",
    "inspect counts",
    "rollup carrier --from 0",
    "decode destination --candidates lines.csv --from 0",
]
TALKING = [*NEEDING_KAFKA, "aggregate", PRODUCE]


def leaves(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command, by its whole name, groups included."""
    yield name, group
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


COMMANDS = dict(leaves(deniable, "deniable"))


def test_the_commands_are_those_that_were_promised() -> None:
    words = (
        "init dev demo broker topics aggregate edge relay produce backfill canary spent ready watch inspect "
        "rollup decode changes detect compare export replay retire check generate estimate account plan "
        "doctor"
    )
    assert set(LISTED) == set(words.split())
    assert {"deniable topics create", "deniable topics check"} <= set(COMMANDS)


def test_absent_file_is_refused_with_what_to_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    pin_messages({"a folder without deniable.yaml": lambda: run("check").err})


def test_list_of_commands_fits_a_terminal_and_loads_none(run: Run) -> None:
    listed = run("--help").out.partition("Try it:\n")[2].splitlines()
    assert [line.split()[0] for line in listed if line.startswith("  ")] == list(LISTED)
    assert [line.rstrip(":") for line in listed if line.endswith(":")] == list(TASKS)[1:]
    assert max(map(len, listed)) < 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_a_working_example(name: str, run: Run) -> None:
    for file in ("f.csv", "p.csv", "c.csv", "m.csv"):
        Path(file).touch()
    ended = run(f"{name.removeprefix('deniable')} --help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: {name} ")
    example = re.search(r"^  Example: (?:echo \S+ \| )?(deniable .*?)(?: > \S+)?$", ended.out, re.MULTILINE)
    assert example, ended.out
    words = shlex.split(example[1])
    leaf = max((known for known in COMMANDS if f"{example[1]} ".startswith(f"{known} ")), key=len)
    assert leaf.startswith(name)
    COMMANDS[leaf].make_context(leaf, words[len(leaf.split()) :]).close()


def test_options_and_defaults_are_those_that_were_promised() -> None:
    options = {
        name: {word for parameter in command.params for word in parameter.opts}
        for name, command in COMMANDS.items()
    }
    for name in (
        "topics create",
        "topics check",
        "produce",
        "aggregate",
        "watch",
        "inspect",
        "replay",
        "rollup",
        "compare",
        "decode",
        "export",
    ):
        assert {"--config", "--bootstrap-servers"} <= options[f"deniable {name}"]
    assert {"--data-dir", "--port"} <= options["deniable broker"]
    assert {"--web-port", "--metrics-listen"} <= options["deniable aggregate"]
    assert "--partitions" in options["deniable topics create"]
    assert {"--once", "--bootstrap-servers"} <= options["deniable demo"]
    assert {"--input", "--format", "--field", "--clients", "--no-clients"} <= options["deniable produce"]
    assert {"--follow", "--strict", "--data-dir", "--metrics-port"} <= options["deniable produce"]
    assert {"--input", "--time-field", "--output", "--counts", "--files", "--data-dir"} <= options[
        "deniable backfill"
    ]
    assert {"--partition", "--offset", "--tail", "--follow", "--payload", "--json", "--schema"} <= options[
        "deniable inspect"
    ]
    config = next(parameter for parameter in COMMANDS["deniable check"].params if parameter.name == "config")
    assert str(config.default) == "deniable.yaml"


def test_the_version_is_that_of_the_distribution(run: Run) -> None:
    assert run("--version") == (0, f"deniable, version {version('deniable')}\n", "")


def test_schema_of_estimates_is_printed_and_nothing_connects(run: Run) -> None:
    assert run("inspect estimates --schema") == (0, estimate_schema.PATH.read_text(encoding="utf-8"), "")


def test_check_shows_programs_of_every_collection(run: Run) -> None:
    ended = run("check")
    assert (ended.code, ended.err) == (0, "")
    assert [line.partition(":")[0] for line in ended.out.splitlines() if line[0] != " "] == [
        "carrier",
        "destination",
        "several",
    ]


@pytest.mark.parametrize("line", ["", "topics"])
def test_groups_show_their_help(line: str, run: Run) -> None:
    ended = run(line)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("Usage: deniable")


def test_a_huge_argument_is_not_repeated_whole(run: Run) -> None:
    ended = run(f"plan --values {'9' * 5000} --epsilon 1 --reports 10")
    assert ended.code == 2
    assert f"'--values': '{99 * '9'}… " in ended.err


@pytest.mark.parametrize("line", [*TALKING, "check"])
def test_a_bad_file_is_refused_before_anything_connects(line: str, run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        servers = f"127.0.0.1:{server.getsockname()[1]}"
        text = WHOLE.replace("epsilon: 1.0986", "epsilon: 17")
        Path("deniable.yaml").write_text(f"kafka: {{bootstrap_servers: '{servers}'}}\n{text}")
        ended = run(line)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("Error: deniable.yaml:4: collections[0].epsilon: ")


@pytest.mark.slow
@pytest.mark.parametrize("line", [*NEEDING_KAFKA, "demo --once"])
def test_absent_broker_is_named(line: str, run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = run(f"{line} --bootstrap-servers {address}")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("Error: ")
    assert f"({address}: " in ended.err


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        *((getattr(import_module(module), name), 1) for module, name in KAFKA_ERRORS),
        (StoreError, 1),
        (SecurityError, 1),  # an OSError, too
        (RowError, 3),
        (TermsError, 3),
    ],
)
def test_an_expected_error_is_one_line(
    kind: type[Exception], status: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ledgers refuse has a status of its own: who started the worker need not do so again."""

    def fail(*_: object) -> None:
        raise kind("do this")

    monkeypatch.setattr("deniable.deploy.offline.check.load", fail)
    ended = run("check")
    assert (ended.code, ended.out) == (status, "")
    assert re.fullmatch(r"Error: (\w+: )?do this\n", ended.err)


def test_messages_of_system_errors(
    run: Run, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    def refusal(error: OSError) -> str:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr("deniable.deploy.offline.check.load", fail)
        ended = run("check")
        assert (ended.code, ended.out) == (1, "")
        return ended.err

    errors = {
        "the disk is full": OSError(errno.ENOSPC, "No space left on device"),
        "a file may not be read": PermissionError(errno.EACCES, "Permission denied", "x.yaml"),
        "a time limit without words": TimeoutError(),
    }
    pin_messages({what: partial(refusal, error) for what, error in errors.items()})


def test_output_that_is_lost_at_the_end_is_reported(
    run: Run, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    with open("/dev/full", "w") as full:

        def write(*_: object) -> SimpleNamespace:
            full.write("not flushed")
            return SimpleNamespace(allowances=(), cluster=None, is_without_kafka=False)

        monkeypatch.setattr("deniable.deploy.offline.check.load", write)
        monkeypatch.setattr("sys.stdout", full)
        ended = run("check")
    assert (ended.code, ended.out) == (1, "")
    pin_messages({"stdout is on a full disk": lambda: ended.err})


def test_unreadable_file_is_tried(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # what click asks; the superuser may read all
    assert run("check").code == 0


def test_an_interruption_is_status_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deniable.deploy.offline.check.load", interrupt)
    assert run("check") == (130, "", "\n")


def test_signals_end_in_good_order_unless_ignored(run: Run) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    run("check")
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    with pytest.raises(SystemExit) as ended:
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
