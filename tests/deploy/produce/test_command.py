"""`deniable produce` where Kafka is away, and where its input is a pipe."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from deniable.deploy.produce import command as produce_command
from deniable.deploy.produce.command import produce as command
from deniable.deploy.produce.input import source as input_source
from deniable.deploy.produce.input.inputs import InputParameter, is_file
from deniable.deploy.produce.input.source import FeedError, Pipe
from deniable.deploy.produce.run import KEPT, WAITING, run_produce
from deniable.deploy.produce.timing import RunTiming
from deniable.producers.errors import DeliveryError
from deniable.producers.pipeline import storing_thread
from deniable.producers.transport import console
from tests.support.deploy.collection_texts import WHOLE
from tests.support.messages import PinMessages

PRODUCE = ["produce", "carrier", "--field", "carrier", "--no-clients"]


@click.group()
@click.option("--verbose", is_flag=True)
def root(verbose: bool) -> None:
    """Stands for `deniable`, whose logs and signals are the process's."""


root.add_command(command)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An address where nothing listens, that of the Kafka of the deployment in the present folder."""
    monkeypatch.chdir(tmp_path)
    Path("deniable.yaml").write_text(WHOLE)
    Path("lines.csv").write_text("carrier\n" + "AA\n" * 1_500)

    def fail(*_: object) -> None:
        raise DeliveryError("no Kafka broker answers")

    monkeypatch.setattr(
        storing_thread, "connect", fail
    )  # a client that is still connecting leaves sockets open
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def run(*arguments: str, address: str) -> Result:
    return CliRunner().invoke(root, [*PRODUCE, "--bootstrap-servers", address, *arguments])


PAIR = """\
  - name: route
    mechanism: k-rr-pair
    fields: [{name: carrier, values: [AA, B6]}, {name: origin, values: [JFK]}]
    epsilon: 2
    window_seconds: 60
    grace_seconds: 10
    budget: none
"""


def test_a_value_is_neither_client_nor_time(nowhere: str, pin_messages: PinMessages) -> None:
    """Three values would be three cohorts, in clear."""
    file = Path("deniable.yaml")
    file.write_text(file.read_text().replace("collections:\n", f"collections:\n{PAIR}", 1))

    def refusal(name: str, *options: str) -> str:
        ended = CliRunner().invoke(root, ["produce", name, "--input", "lines.csv", *options])
        assert ended.exit_code == 2
        assert ended.stdout == ""
        return ended.stderr[ended.stderr.index("Error: ") :]

    lines = {
        "one column twice for a pair": "route --field carrier --second-field carrier --no-clients",
        "the value as client": "carrier --field who --clients who",
        "a value of a pair as client": "route --field a --second-field b --clients b",
        "the value as time": "carrier --field when --time-field when --no-clients",
    }
    pin_messages({what: partial(refusal, *line.split()) for what, line in lines.items()})


def test_console_prints_randomized_reports_and_leaves_nothing(
    nowhere: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each line is a pack, and no folder is left; 1,500 reports of epsilon ln 3 are 60 % true values."""
    folders = tmp_path / "temporary"
    folders.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folders))
    before = sorted(tmp_path.iterdir())
    ended = CliRunner().invoke(root, [*PRODUCE, "--input", "lines.csv", "--console"])
    assert ended.exit_code == 0, ended.output
    packs = [json.loads(line) for line in ended.stdout.splitlines()]
    reports = [report for pack in packs for report in pack["reports"]]
    assert len(reports) == 1_500
    assert 0.5 < reports.count("AA") / 1_500 < 0.7
    assert set(reports) == {"AA", "B6", "9E"}
    assert (ended.stderr.count("\n"), ended.stderr[-16:]) == (2, " to the console\n")
    assert (sorted(tmp_path.iterdir()), list(folders.iterdir())) == (before, [])


def test_console_whose_reader_is_gone_keeps_nothing(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError("no reader")

    monkeypatch.setattr(console, "print", gone, raising=False)
    ended = CliRunner().invoke(root, [*PRODUCE, "--input", "lines.csv", "--console"])
    assert isinstance(ended.exception, DeliveryError)
    assert "kept" not in ended.stderr + str(ended.exception)


def test_console_ends_quietly_with_its_reader(nowhere: str) -> None:
    """As of `| head`: more packs than a pipe holds."""
    Path("lines.csv").write_text("carrier\n" + "AA\n" * 50_000)
    command = [sys.executable, "-m", "deniable", *PRODUCE, "--input", "lines.csv", "--console"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("{")
        process.stdout.close()
        _, said = process.communicate(timeout=60)
    assert (process.returncode, "Error" in said) == (0, False), said


def test_messages_of_console(nowhere: str, pin_messages: PinMessages) -> None:
    def refusal(*options: str) -> str:
        ended = CliRunner().invoke(root, [*PRODUCE, "--input", "lines.csv", "--console", *options])
        assert (ended.exit_code, ended.stdout) == (2, "")
        return ended.stderr[ended.stderr.index("Error: ") :]

    pin_messages(
        {
            "with a folder": lambda: refusal("--data-dir", "x"),
            "with brokers": lambda: refusal("--bootstrap-servers", nowhere),
        }
    )


def test_console_promises_nothing_that_ends_with_its_folder(nowhere: str, pin_messages: PinMessages) -> None:
    """No resuming where a line stops the run, and no sending where reports show a wrong column."""
    collections = Path("deniable.yaml").read_text().replace("other: false", "other: true")
    Path("deniable.yaml").write_text(collections)
    Path("wrong.csv").write_text("carrier\n" + "x\n" * 1_500)
    Path("broken.csv").write_text("carrier\nAA\nAA,B6\n")

    def stopped(name: str) -> str:
        ended = CliRunner().invoke(root, [*PRODUCE, "--input", name, "--console"])
        return f"{type(ended.exception).__name__}: {ended.exception}"

    pin_messages(
        {
            "a broken line": lambda: stopped("broken.csv"),
            "most are not listed": lambda: stopped("wrong.csv"),
        }
    )


@pytest.mark.slow
def test_without_kafka_reports_are_kept_with_a_warning(
    nowhere: str, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    monkeypatch.setattr(produce_command, "run_produce", partial(run_produce, timing=RunTiming(wait=1.0)))
    ended = run("--input", "lines.csv", address=nowhere)
    assert isinstance(ended.exception, DeliveryError)
    assert ended.stdout == ""
    absent, kept, _, *shown, summed = ended.stderr.splitlines()
    waiting = [line for line in shown if "packs wait in the outbox: no Kafka broker answers" not in line]
    assert waiting == [WAITING.format(1.0, "Kafka") + KEPT]
    again = run("--input", "lines.csv", address=nowhere)
    assert "line 1502" in again.stderr
    pin_messages(
        {
            "at first": lambda: f"{absent}\n{kept}".replace(nowhere, "ADDRESS"),
            "at the end": lambda: re.sub(r"[23] packs", "2 packs", f"{summed}\n{ended.exception}"),
        }
    )


def test_pipe_without_a_writer_is_not_waited_for(nowhere: str) -> None:
    os.mkfifo("pipe")
    ended = run("--input", "pipe", "--follow", address=nowhere)
    assert ended.exit_code == 2
    assert "--follow" in ended.stderr


def test_pipe_is_read_until_its_writers_close_it(nowhere: str) -> None:
    """A reader that came first waits for them."""
    os.mkfifo("pipe")
    with InputParameter().convert("pipe", None, None) as stream:
        assert not is_file(stream)
        pipe = Pipe(stream, RunTiming(poll=0.01))
        assert [pipe.read(), pipe.read()] == [None, None]
        with open("pipe", "wb", buffering=0) as writer:
            writer.write(b"AA\n")
            assert [pipe.read(), pipe.read()] == [b"AA\n", None]
        assert pipe.read() == b""


def test_pipe_in_place_of_followed_file_is_refused(nowhere: str) -> None:
    os.mkfifo("pipe")
    with pytest.raises(FeedError), input_source.successor(Path("pipe")) as file:
        file.read()
