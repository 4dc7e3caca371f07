"""`deniable produce` where Kafka is away, and where its input is a pipe."""

import os
import re
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from deploy.produce import command as produce_command
from deploy.produce.command import produce as command
from deploy.produce.input import source as input_source
from deploy.produce.input.inputs import InputParameter, is_file
from deploy.produce.input.source import FeedError, Pipe
from deploy.produce.run import WAITING, run_produce
from deploy.produce.timing import RunTiming
from producers.errors import DeliveryError
from producers.pipeline import storing_thread
from tests.support.deploy.collection_texts import WHOLE

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


def test_a_pair_needs_two_columns_and_others_one(nowhere: str) -> None:
    file = Path("deniable.yaml")
    file.write_text(file.read_text().replace("collections:\n", f"collections:\n{PAIR}", 1))
    one = CliRunner().invoke(root, ["produce", "route", "--field", "carrier", "--no-clients"])
    assert (one.exit_code, one.output.splitlines()[-1]) == (
        2,
        "Error: route is a pair of carrier and origin: name the columns of both, --field and --second-field",
    )
    same = ["produce", "route", "--field", "carrier", "--second-field", "carrier", "--no-clients"]
    twice = CliRunner().invoke(root, same)
    assert (twice.exit_code, twice.output.splitlines()[-1]) == (
        2,
        "Error: --field and --second-field must name different columns, of carrier and of origin, got "
        "'carrier' for both",
    )
    two = run("--second-field", "carrier", address=nowhere)
    assert (two.exit_code, two.output.splitlines()[-1]) == (
        2, "Error: carrier is no pair of fields: it takes no --second-field",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--field", "who", "--clients", "who"],
            "--clients must name another field than that of the value, got 'who' for both: reports show a "
            "cohort and limits of each client without noise, so each value could be seen",
        ),
        (
            ["--field", "when", "--time-field", "when", "--no-clients"],
            "--time-field must name another field than that of the value, got 'when' for both: reports show "
            "the window of each event without noise, so each value could be seen",
        ),
        (["--field", "a", "--second-field", "b", "--clients", "b"], "--clients must name another field "),
    ],
)
def test_a_value_is_neither_client_nor_time(nowhere: str, options: list[str], message: str) -> None:
    """Three values would be three cohorts, in clear."""
    file = Path("deniable.yaml")
    file.write_text(file.read_text().replace("collections:\n", f"collections:\n{PAIR}", 1))
    name = "route" if "--second-field" in options else "carrier"
    ended = CliRunner().invoke(root, ["produce", name, "--input", "lines.csv", *options])
    assert ended.exit_code == 2
    assert f"Error: {message}" in " ".join(ended.stderr.split())


@pytest.mark.slow
def test_without_kafka_reports_are_kept_with_a_warning(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce_command, "run_produce", partial(run_produce, timing=RunTiming(wait=1.0)))
    ended = run("--input", "lines.csv", address=nowhere)
    assert str(ended.exception).startswith("not all was acknowledged within 1")
    assert isinstance(ended.exception, DeliveryError)
    assert ended.stdout == ""
    absent, kept, *shown, summed = ended.stderr.splitlines()
    waiting = [line for line in shown if "packs wait in the outbox: no Kafka broker answers" not in line]
    assert absent.startswith(f"no Kafka broker answers ({nowhere}: Connection refused); ")
    assert kept == (
        "reports are kept in .deniable and sent once it answers; those later than 30 s after their window "
        "are not counted"
    )
    assert waiting == [WAITING.format(1.0, "Kafka")]
    assert re.fullmatch(
        r"0 reports sent in 0 packs \(0 reports/s\); [23] packs kept for the next deniable produce with this "
        "folder",
        summed,
    )
    again = run("--input", "lines.csv", address=nowhere)
    assert "resuming at line 1502, nothing left" in again.stderr.splitlines()


def test_pipe_without_a_writer_is_not_waited_for(nowhere: str) -> None:
    os.mkfifo("pipe")
    ended = run("--input", "pipe", "--follow", address=nowhere)
    assert ended.exit_code == 2
    assert (
        "--follow needs --input with a regular file; stdin and pipes are read as lines arrive, without it"
    ) in " ".join(ended.stderr.split())


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
    with (
        pytest.raises(FeedError, match=r"^the input cannot be read: Illegal seek$"),
        input_source.successor(Path("pipe")) as file,
    ):
        file.read()
