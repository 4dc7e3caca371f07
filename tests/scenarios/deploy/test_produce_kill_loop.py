"""`deniable produce` and its broker are killed repeatedly: no line is lost, and none is sent twice."""

import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from deniable.deploy.broker.broker import Broker
from deniable.protocol.wire import decode
from tests.support.deployments import Deployment
from tests.support.processes import Process, printed_seed, wait_until, write_order
from tests.support.producers.topics import read

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_jars"), pytest.mark.all]

LINES = 20_000
#: Where each run is killed, and at which pass; the first has stored nothing by then.
KILLS = (
    ("before-commit", 1),
    ("progress", 1),
    ("progress", 3),
    ("after-commit", 4),
    ("acknowledged", 1),
    ("after-commit", 6),
    ("acknowledged", 5),
)
RANDOM = (("", 0),) * 12
COLLECTION = """\
  - {{name: carrier, mechanism: k-rr, values: [AA, B6, "9E"], epsilon: 1.0, window_seconds: 3600,
     grace_seconds: 30, reports_per_window: 60000, budget: none}}
"""
PRODUCE = ("produce", "carrier", "--input", "../lines.csv", "--field", "carrier", "--clients", "who")
FROM_HERE = tuple(each.removeprefix("../") for each in PRODUCE)


def deployed(folder: Path, servers: str, prefix: str) -> Deployment:
    """A deployment without limits on repetition, so a line sent twice is not refused."""
    deployment = Deployment(folder, servers, prefix)
    file = folder / "deniable.yaml"
    head = file.read_text().partition("  - {name")[0]
    file.write_text(head + COLLECTION.format())
    deployment.create_topics()
    return deployment


def reports_of(deployment: Deployment) -> tuple[int, int]:
    """Reports in the topic, each pack counted once; and packs that occur more than once."""
    records = read(deployment.servers, f"{deployment.prefix}reports")
    reports = {pack.pack_id: pack.reports for pack in (decode(record.value) for record in records)}
    return sum(reports.values()), len(records) - len(reports)


def lines() -> Iterator[str]:
    """Records, some of which span several lines."""
    for number in range(LINES):
        yield f'"client\n{number % 7}",AA\n' if number % 10 == 0 else f"client-{number % 7},B6\n"


@pytest.mark.parametrize(
    "kills", [pytest.param(KILLS, id="points"), pytest.param(RANDOM, id="random", marks=pytest.mark.nightly)]
)
def test_no_line_is_lost_or_sent_twice_by_kills(
    broker: str, topic_prefix: str, tmp_path: Path, kills: Sequence[tuple[str, int]]
) -> None:
    """Meanwhile the file grows in pieces that end within lines; the last run ends by itself."""
    deployment, moments = deployed(tmp_path, broker, topic_prefix), random.Random(printed_seed())
    text, resumed = "who,carrier\n" + "".join(lines()), set()
    piece = len(text) // len(kills) + 1
    for number, (point, passes) in enumerate(kills):
        with (tmp_path / "lines.csv").open("a") as file:
            file.write(text[number * piece : (number + 1) * piece])
        home = tmp_path / f"produce-{number}"
        if point:
            write_order(home, point, passes=passes)
        options = ("--config", "../deniable.yaml", "--follow", "--metrics-port", "0")
        run = Process.start("tests.chaos.processes.child", [str(home), *PRODUCE, *options], home)
        if point:
            run.await_kill(point)
        else:
            assert wait_until(lambda run=run: bool(run.says("metrics: "))), run.describe()
            time.sleep(moments.uniform(0, 3))
            assert run.running, run.describe()
            run.kill()
        resumed |= {line for line in run.log.read_text().splitlines() if "resuming" in line}
    last = deployment.run(*FROM_HERE)
    assert last.returncode == 0, last.stderr
    reports, repeated = reports_of(deployment)
    print(  # noqa: T201 - the tally
        f"{len(kills)} kills, resumed at {len(resumed)} lines; {reports} reports of {LINES} lines, "
        f"{repeated} packs sent again"
    )
    assert reports == LINES
    assert resumed


@pytest.mark.nightly
def test_broker_kill_loses_no_line(topic_prefix: str, tmp_path: Path) -> None:
    """Stored reports wait in the outbox, and the next run with any input sends them."""
    with Broker(tmp_path / "kafka") as first:
        deployment = deployed(tmp_path, first.bootstrap_servers, topic_prefix)
        port = int(first.bootstrap_servers.rpartition(":")[2])
        (tmp_path / "lines.csv").write_text("who,carrier\n" + "a,AA\n" * 5_000)
        with deployment.running("lost.log", *FROM_HERE, "--follow") as run:
            assert wait_until(lambda: reports_of(deployment)[0] == 5_000, 120), deployment.output("lost.log")
            first.kill()
            with (tmp_path / "lines.csv").open("a") as file:
                file.write("a,AA\n" * 5_000)
            time.sleep(2.5)
            run.send_signal(signal.SIGINT)
            assert run.wait(120) == 130
        assert "packs kept for the next deniable produce with this folder" in deployment.output("lost.log")
        with (tmp_path / "lines.csv").open("a") as file:
            file.write("a,AA\n" * 5)
        with deployment.running("absent.log", *FROM_HERE) as run:
            assert wait_until(lambda: "waiting up to 60 s" in deployment.output("absent.log"), 120)
            run.send_signal(signal.SIGINT)
            assert run.wait(120) == 130
        output = deployment.output("absent.log")
        assert f":{port}: Connection refused" in output
        assert " in .deniable " in output
        assert "packs kept for the next deniable produce with this folder" in output
    with Broker(tmp_path / "kafka", port=port):
        (tmp_path / "other.csv").write_text("who,carrier\nb,B6\n")
        other = deployment.run(*FROM_HERE[:3], "other.csv", *FROM_HERE[4:])
        assert other.returncode == 0, other.stderr
        assert reports_of(deployment)[0] == 10_006
        again = deployment.run(*FROM_HERE)
        assert " at line 10007, " in again.stderr
        assert "\n0 reports " in again.stderr
