"""Two hosts share budgets in PostgreSQL, by collection file, through the commands."""

import re
import signal
import time
from pathlib import Path

import pytest

from deniable.protocol.secrets.secret import load_secret
from tests.support.deployments import Deployment
from tests.support.processes import wait_until
from tests.support.producers.postgres_server import PostgresServer, postgres_server
from tests.support.producers.topics import read

pytestmark = [pytest.mark.broker, pytest.mark.all]

PRODUCE = ("produce", "carrier", "--input", "lines.csv", "--field", "carrier", "--clients", "client")
LINES = "client,carrier\n" + "".join(f"client-{number},AA\n" for number in range(100))
BUDGET = "budget: {epsilon: 3, delta: 1e-6, period_seconds: 315360000}"  # one report until 2029
REFUSED = "100 reports refused, over the budget of their client"
SOON_SECONDS = 60
# Python notices a signal that comes just before a wait for the store only after that wait, of up to a minute.
INTERRUPTED_SECONDS = 90


@pytest.fixture
def server():
    with postgres_server() as started:
        yield started


@pytest.fixture
def hosts(broker: str, topic_prefix: str, tmp_path: Path, server: PostgresServer) -> tuple[Deployment, ...]:
    """Return two deployments with one secret and one database."""
    load_secret(tmp_path / "secret")
    url = server.new_database()
    made = tuple(host(tmp_path / name, broker, topic_prefix, url) for name in ("a", "b"))
    made[0].create_topics()
    return made


def host(folder: Path, servers: str, prefix: str, url: str) -> Deployment:
    folder.mkdir()
    made = Deployment(folder, servers, prefix)
    file = folder / "deniable.yaml"
    section = f"{{secret_file: ../secret, pack_seconds: 0.2, budget_store: {{url: '{url}'}}}}"
    text = file.read_text(encoding="utf-8").replace("{pack_seconds: 0.2}", section)
    # Reports that wait for the database are late by seconds.
    text = text.replace("grace_seconds: 10,", "grace_seconds: 600,", 1)
    file.write_text(text.replace("budget: none", BUDGET, 1), encoding="utf-8")
    (folder / "lines.csv").write_text(LINES, encoding="utf-8")
    return made


def test_what_one_host_has_charged_the_other_refuses(hosts: tuple[Deployment, Deployment]) -> None:
    first, second = hosts
    doctor = first.doctor()
    assert "budget store    ok: it answers; the first producer will create its tables\n" in doctor.stdout
    ended = first.run(*PRODUCE)
    assert (ended.returncode, "\n100 reports sent in " in ended.stderr) == (0, True)
    ended = second.run(*PRODUCE)
    assert ended.returncode == 0
    assert "\n0 reports sent in 0 packs" in ended.stderr
    assert REFUSED in ended.stderr
    packs = len(read(first.servers, f"{first.prefix}reports"))
    assert packs > 0
    for each in hosts:
        (spent,) = (
            line.split()
            for line in each.run("spent", given=b"client-7\n").stdout.splitlines()
            if "carrier" in line
        )
        assert spent[1:7] == ["1", "3.000", "3.000", "3", "100", "%"]
    doctor = second.doctor()
    assert "budget store    ok: it answers, and its tables belong to this secret\n" in doctor.stdout


@pytest.mark.parametrize("change", ["database", "user"])
def test_a_database_that_refuses_for_good_ends_it_at_once(
    hosts: tuple[Deployment, Deployment], change: str
) -> None:
    file = hosts[0].folder / "deniable.yaml"
    text = file.read_text(encoding="utf-8")
    wrong = (
        re.sub(r"(?<=/)budgets_\w+", "absent", text)
        if change == "database"
        else text.replace("deniable@", "nobody@")
    )
    assert wrong != text
    file.write_text(wrong, encoding="utf-8")
    began = time.monotonic()
    ended = hosts[0].run(*PRODUCE)
    assert time.monotonic() - began < SOON_SECONDS
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert re.match("Error: .*budget store 127.0.0.1:", line)
    assert "PGPASSWORD" in line
    assert not (hosts[0].folder / ".deniable" / "producer.sqlite").exists()


@pytest.mark.nightly
def test_nothing_is_sent_while_the_database_is_away(
    hosts: tuple[Deployment, Deployment], server: PostgresServer
) -> None:
    """And all is sent once it answers; Ctrl-C meanwhile keeps the place in the file."""
    first, second = hosts
    server.kill()
    doctor = first.doctor()
    assert doctor.returncode == 1
    assert "budget store    failed: budget store 127.0.0.1:" in doctor.stdout
    with first.running("run.log", *PRODUCE) as run:
        waits = wait_until(lambda: "reports of clients wait: budget store" in first.output("run.log"), 60)
        assert waits, first.output("run.log")
        run.send_signal(signal.SIGINT)
        assert run.wait(INTERRUPTED_SECONDS) == 130
    assert "Traceback" not in first.output("run.log")
    assert "clients cannot be charged: budget store 127.0.0.1:" in first.output("run.log")
    with second.running("run.log", *PRODUCE) as run:
        waits = wait_until(lambda: "reports of clients wait: budget store" in second.output("run.log"), 60)
        assert waits, second.output("run.log")
        assert read(first.servers, f"{first.prefix}reports") == []
        server.start()
        assert run.wait(SOON_SECONDS) == 0
    assert "100 reports sent" in second.output("run.log")
    ended = first.run(*PRODUCE)
    assert ended.returncode == 0
    assert REFUSED in ended.stderr
