"""`deniable produce` and its broker are killed repeatedly: no line is lost, and none is sent twice."""

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition

from deploy.broker.broker import Broker
from producers.wire import decode
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_jars"), pytest.mark.all]

KILLS = 12
LINES = 20_000
COLLECTION = """\
  - {{name: carrier, mechanism: k-rr, values: [AA, B6, "9E"], epsilon: 1.0, window_seconds: 3600,
     grace_seconds: 30, reports_per_window: 60000, budget: none}}
"""
PRODUCE = ("produce", "carrier", "--input", "lines.csv", "--field", "carrier", "--clients", "who")


def deployed(folder: Path, servers: str, prefix: str) -> Deployment:
    """A deployment without limits on repetition, so a line sent twice is not refused."""
    deployment = Deployment(folder, servers, prefix)
    file = folder / "deniable.yaml"
    head = file.read_text().partition("  - {name")[0]
    # A small outbox leads to small batches, and so to many transactions to interrupt.
    head = head.replace("producer: {", "producer: {outbox_bytes: 1048576, ")
    file.write_text(head + COLLECTION.format())
    deployment.create_topics()
    return deployment


def reports_of(deployment: Deployment) -> tuple[int, int]:
    """Reports in the topic, each pack counted once; and packs that occur more than once."""
    topic = f"{deployment.prefix}reports"
    reports: dict[bytes, int] = {}
    records = 0
    with KafkaConsumer(bootstrap_servers=deployment.servers, enable_auto_commit=False) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(2)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            for found in consumer.poll(timeout_ms=1000).values():
                for record in found:
                    pack = decode(record.value)
                    reports[pack.pack_id] = pack.reports
                    records += 1
    return sum(reports.values()), records - len(reports)


def lines() -> Iterator[str]:
    """Records, some of which span several lines."""
    for number in range(LINES):
        yield f'"client\n{number % 7}",AA\n' if number % 10 == 0 else f"client-{number % 7},B6\n"


def test_no_line_is_lost_or_sent_twice_by_kills(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """Meanwhile the file grows in pieces that end within lines; the last run ends by itself."""
    deployment = deployed(tmp_path, broker, topic_prefix)
    moments = random.Random(7)
    text = "who,carrier\n" + "".join(lines())
    pieces = [
        text[start : start + len(text) // KILLS + 1] for start in range(0, len(text), len(text) // KILLS + 1)
    ]
    resumed = set()
    with (tmp_path / "lines.csv").open("w") as file:
        for number, piece in enumerate(pieces):
            log = f"round-{number}.log"
            with deployment.running(log, *PRODUCE, "--follow", "--metrics-port", "0") as run:
                if number % 4:  # otherwise it is killed at startup
                    assert wait_until(lambda log=log: "metrics: " in deployment.output(log), 120), (
                        deployment.output(log)
                    )
                file.write(piece)
                file.flush()
                time.sleep(moments.uniform(0, 3))
                run.send_signal(signal.SIGKILL)
            resumed |= {line for line in deployment.output(log).splitlines() if "resuming" in line}
    last = deployment.run(*PRODUCE)
    assert last.returncode == 0, last.stderr
    reports, repeated = reports_of(deployment)
    print(  # noqa: T201 - the tally
        f"{len(pieces)} kills, resumed at {len(resumed)} lines; {reports} reports of {LINES} lines, "
        f"{repeated} packs sent again"
    )
    assert (len(pieces), reports) == (KILLS, LINES)
    assert len(resumed) >= KILLS // 10


@pytest.mark.nightly
def test_broker_kill_loses_no_line(topic_prefix: str, tmp_path: Path) -> None:
    """Stored reports wait in the outbox, and the next run with any input sends them."""
    with Broker(tmp_path / "kafka") as first:
        deployment = deployed(tmp_path, first.bootstrap_servers, topic_prefix)
        port = int(first.bootstrap_servers.rpartition(":")[2])
        (tmp_path / "lines.csv").write_text("who,carrier\n" + "a,AA\n" * 5_000)
        with deployment.running("lost.log", *PRODUCE, "--follow") as run:
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
        with deployment.running("absent.log", *PRODUCE) as run:
            assert wait_until(lambda: "waiting up to 60 s" in deployment.output("absent.log"), 120)
            run.send_signal(signal.SIGINT)
            assert run.wait(120) == 130
        output = deployment.output("absent.log")
        assert f":{port}: Connection refused" in output
        assert " in .deniable " in output
        assert "packs kept for the next deniable produce with this folder" in output
    with Broker(tmp_path / "kafka", port=port):
        (tmp_path / "other.csv").write_text("who,carrier\nb,B6\n")
        other = deployment.run(*PRODUCE[:3], "other.csv", *PRODUCE[4:])
        assert other.returncode == 0, other.stderr
        assert reports_of(deployment)[0] == 10_006
        again = deployment.run(*PRODUCE)
        assert " at line 10007, " in again.stderr
        assert "\n0 reports " in again.stderr
