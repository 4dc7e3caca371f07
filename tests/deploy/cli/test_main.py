"""The command line without a broker: help, refusals, exit codes, and what goes to which stream."""

import errno
import os
import re
import shlex
import signal
import socket
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from aggregator.ledger.row_values import RowError
from aggregator.ledger.terms_update import TermsError
from aggregator.records import estimate_schema
from deploy.cli.commands import COMMANDS as LISTED
from deploy.cli.commands import TASKS, deniable
from deploy.cli.main import KAFKA_ERRORS
from producers.storage.store import StoreError
from producers.transport.credential_files import SecurityError
from tests.deploy.cli.conftest import Run
from tests.support.deploy.collection_texts import WHOLE

PRODUCE = "produce carrier --input lines.csv --field carrier --no-clients"
NEEDING_KAFKA = [
    "topics create",
    "topics check",
    "aggregate",
    "replay",
    "watch carrier",
    "inspect counts",
    "rollup carrier --from 0",
    "decode destination --candidates lines.csv --from 0",
]
TALKING = [*NEEDING_KAFKA, PRODUCE]


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
        "init dev demo broker topics aggregate edge relay produce canary spent ready watch inspect rollup "
        "decode changes detect compare export replay retire check estimate account plan doctor"
    )
    assert set(LISTED) == set(words.split())
    assert {"deniable topics create", "deniable topics check"} <= set(COMMANDS)


@pytest.mark.parametrize(
    ("line", "guess"),
    [
        ("produc x", "No such command 'produc'. Did you mean 'produce'?"),
        ("aggregat", "No such command 'aggregat'. Did you mean 'aggregate'?"),
        ("xyzzy", "No such command 'xyzzy'."),
        ("topics crate", "No such command 'crate'. Did you mean 'create'?"),
        (
            "produce carrier --field x --format json",
            "Invalid value for '--format': 'json' is not one of 'csv', 'jsonl'. Did you mean 'jsonl'?",
        ),
        ("topics check --as reder", "Invalid value for '--as': 'reder' is not one of "),
        ("ready --adress x", "No such option: --adress Did you mean --address?"),
    ],
)
def test_misspelt_words_are_refused_with_the_nearest(line: str, guess: str, run: Run) -> None:
    ended = run(line)
    assert ended.code == 2
    assert ended.err.splitlines()[-1].startswith(f"Error: {guess}")
    assert ("Did you mean" in ended.err) == (not line.startswith("xyzzy"))


def test_absent_file_is_refused_with_what_to_do(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert run("check").err == (
        "Error: there is no deniable.yaml in this folder: cd to the one that has it, name it with --config "
        "FILE, or write one with deniable init\n"
    )
    assert "cannot be read: No such file or directory" in run("check --config other.yaml").err


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
    example = re.search(r"^  Example: (?:echo \S+ \| )?(deniable .*)$", ended.out, re.MULTILINE)
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
    assert {"--partition", "--offset", "--tail", "--follow", "--payload", "--json", "--schema"} <= options[
        "deniable inspect"
    ]
    config = next(parameter for parameter in COMMANDS["deniable check"].params if parameter.name == "config")
    assert str(config.default) == "deniable.yaml"


def test_the_version_is_that_of_the_distribution(run: Run) -> None:
    assert run("--version") == (0, f"deniable, version {version('deniable')}\n", "")


def test_schema_of_estimates_is_printed_and_nothing_connects(run: Run) -> None:
    assert run("inspect estimates --schema") == (0, estimate_schema.PATH.read_text(encoding="utf-8"), "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("reports --schema", "--schema is for the topic estimates, got reports"),
        ("reports --offset 1 --tail 1", "give either --offset or --tail"),
        (
            "nonsense",
            "'nonsense' is not one of 'reports', 'counts', 'rejected', 'estimates', 'windows', 'state', "
            "'collections', 'uploads', 'rejected-uploads'.",
        ),
        ("reports --tail 0", "0 is not in the range 1<=x<=1000000."),
    ],
)
def test_wrong_usage_of_inspect_is_reported(run: Run, line: str, message: str) -> None:
    ended = run(f"inspect {line}")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1].endswith(message)


def test_check_shows_programs_of_every_collection(run: Run) -> None:
    ended = run("check")
    assert (ended.code, ended.err) == (0, "")
    assert [line.partition(":")[0] for line in ended.out.splitlines() if line[0] != " "] == [
        "carrier",
        "destination",
        "several",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "Usage: deniable"),
        ("topics", "Usage: deniable topics"),
        ("nope", "No such command 'nope'"),
        ("check --nope", "No such option"),
        ("watch", "Missing argument 'COLLECTION'"),
        ("produce carrier --no-clients", "Missing option '--field'"),
        (
            "produce carrier --field x",
            "give either --clients NAME, or --no-clients if every line is a different client",
        ),
        ("produce carrier --field x --clients y --no-clients", "give either --clients NAME, or --no-clients"),
        ("produce carrier --field x --no-clients --format xml", "'xml' is not one of 'csv', 'jsonl'"),
        ("produce carrier --field x --no-clients --input none.csv", "'none.csv': No such file or directory"),
        ("produce carrier --field x --no-clients --input .", "'.': Is a directory"),
        ("produce carrier --field x --no-clients --metrics-port -1", "-1 is not in the range 0<=x<=65535"),
        ("produce carrier --field x --no-clients --data-dir lines.csv", "Directory 'lines.csv' is a file"),
        (
            "produce carrier --field x --no-clients --follow --input /dev/null",
            "--follow needs --input with a regular file",
        ),
        ("produce several --field x --no-clients --input lines.csv", "give JSON lines, --format jsonl"),
        ("aggregate --web-port 65536", "65536 is not in the range 0<=x<=65535"),
        ("broker --port -1", "-1 is not in the range 0<=x<=65535"),
        ("broker --data-dir lines.csv", "Directory 'lines.csv' is a file"),
        ("topics create --partitions 0", "0 is not in the range 1<=x<=1000"),
        ("replay --wait -1", "-1.0 is not in the range x>=0"),
    ],
)
def test_wrong_usage_is_status_2(line: str, message: str, run: Run) -> None:
    ended = run(line)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_a_huge_argument_is_not_repeated_whole(run: Run) -> None:
    ended = run(f"plan --values {'9' * 5000} --epsilon 1 --reports 10")
    assert ended.code == 2
    assert "'--values': '" + 99 * "9" + "… is not a valid integer range" in ended.err


@pytest.mark.parametrize("line", ["watch carrier", "aggregate"])
def test_servers_without_a_port_are_wrong_usage(line: str, run: Run) -> None:
    ended = run(f"{line} --bootstrap-servers here")
    assert ended.code == 2
    assert ended.err.startswith("Error: --bootstrap-servers must be HOST:PORT")


def test_an_unknown_collection_is_refused_with_the_known_ones(run: Run) -> None:
    assert run("watch nope") == (
        2,
        "",
        "Error: deniable.yaml: there is no collection 'nope'; known ones: carrier, destination, several\n",
    )


def test_too_expensive_reports_are_refused_before_connecting(run: Run) -> None:
    Path("lines.jsonl").touch()
    ended = run("produce several --format jsonl --input lines.jsonl --field x --no-clients")
    assert (ended.code, ended.out) == (1, "")
    assert re.fullmatch(
        r"Error: epsilon of one report to several must be in \(0, 0\.5\], its budget, got 2\.04\d+; "
        r"every line would be refused\n",
        ended.err,
    )


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
    assert ended == (
        1,
        "",
        "Error: deniable.yaml:4: collections[0] (carrier): epsilon must be in (0, 16], got 17.0\n",
    )


@pytest.mark.parametrize("line", [*NEEDING_KAFKA, "demo --once"])
def test_absent_broker_is_named(line: str, run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = run(f"{line} --bootstrap-servers {address}")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        f"Error: no Kafka broker answers ({address}: Connection refused); start one with deniable dev, which "
        "keeps its data, or with deniable broker; or name an existing one in "
        "kafka.bootstrap_servers, or with --bootstrap-servers HOST:PORT\n"
    )


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

    monkeypatch.setattr("deploy.offline.check.load", fail)
    ended = run("check")
    assert (ended.code, ended.out) == (status, "")
    assert re.fullmatch(r"Error: (\w+: )?do this\n", ended.err)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (PermissionError(errno.EACCES, "Permission denied", "x.yaml"), "x.yaml: Permission denied"),
        (TimeoutError(), "Kafka did not answer in time"),
    ],
)
def test_system_errors_are_one_line(
    error: OSError, message: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("deploy.offline.check.load", fail)
    assert run("check") == (1, "", f"Error: {message}\n")


def test_output_that_is_lost_at_the_end_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:

        def write(*_: object) -> SimpleNamespace:
            full.write("not flushed")
            return SimpleNamespace(allowances=(), cluster=None, is_without_kafka=False)

        monkeypatch.setattr("deploy.offline.check.load", write)
        monkeypatch.setattr("sys.stdout", full)
        assert run("check") == (1, "", "Error: stdout cannot be written: No space left on device\n")


def test_absent_file_is_wrong_use_and_an_unreadable_one_is_tried(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("check --config none.yaml") == (
        2,
        "",
        "Error: none.yaml: cannot be read: No such file or directory\n",
    )
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # what click asks; the superuser may read all
    assert run("check").code == 0


def test_an_interruption_is_status_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deploy.offline.check.load", interrupt)
    assert run("check") == (130, "", "\n")


def test_signals_end_in_good_order_unless_ignored(run: Run) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    run("check")
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    with pytest.raises(SystemExit) as ended:
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
