"""`inspect` on a real broker: from where to where, what transactions hide, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from kafka import KafkaProducer

from deniable.aggregator.records.estimate import encode_estimate
from tests.support.deploy.estimates import record
from tests.support.deploy.terminal import read_to_end
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

REFUSED = b'{"version":1,"partition":0,"offset":%d,"reason":"duplicate"}'
REFUSALS = 5


@pytest.fixture(scope="module")
def deployment(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """Five refusals in partition 1, each in a transaction of its own; then one that is aborted."""
    made = Deployment(tmp_path_factory.mktemp("inspect"), broker, f"test-{uuid4().hex[:12]}-")
    made.create_topics()
    with closing(KafkaProducer(bootstrap_servers=broker, transactional_id=uuid4().hex)) as producer:
        producer.init_transactions()
        for number in range(REFUSALS + 1):
            producer.begin_transaction()
            producer.send(made.prefix + "rejected", REFUSED % number, partition=1)
            producer.send(made.prefix + "reports", b"no pack", partition=0)
            producer.flush()
            producer.commit_transaction() if number < REFUSALS else producer.abort_transaction()
    return made


def lines(deployment: Deployment, *arguments: str) -> list[dict[str, object]]:
    ended = deployment.run("inspect", *arguments)
    assert (ended.returncode, ended.stderr) == (0, "")
    return [json.loads(line) for line in ended.stdout.splitlines()]


def refusals(deployment: Deployment, *arguments: str) -> list[object]:
    return [line["report_offset"] for line in lines(deployment, "rejected", *arguments)]


def test_committed_records_are_reported_and_aborted_reports_are_shown(deployment: Deployment) -> None:
    """An aborted pack counts, too: as malformed here."""
    reported = lines(deployment, "rejected")
    assert [line["report_offset"] for line in reported] == [0, 1, 2, 3, 4]
    assert {(line["partition"], line["kind"], line["reason"]) for line in reported} == {
        (1, "rejected", "duplicate")
    }
    assert [line["offset"] for line in reported] == [0, 2, 4, 6, 8]
    reported = lines(deployment, "reports")
    assert [(line["kind"], line["problem"]) for line in reported] == [("unreadable", "malformed")] * (
        REFUSALS + 1
    )
    assert "no pack" not in str(reported)


def test_output_starts_at_tail_or_offset(deployment: Deployment) -> None:
    """The last so many are records: markers of transactions are offsets, but no records."""
    assert refusals(deployment, "--tail", "2") == [3, 4]
    assert refusals(deployment, "--tail", "100") == [0, 1, 2, 3, 4]
    assert refusals(deployment, "--offset", "5") == [3, 4]
    for where in (("--offset", "1000"), ("--partition", "0")):
        nothing = deployment.run("inspect", "rejected", *where)
        assert (nothing.returncode, nothing.stdout) == (0, "")
        assert nothing.stderr == f"topic {deployment.prefix}rejected has no records there\n"
    assert refusals(deployment, "--partition", "1", "--tail", "1") == [4]
    assert lines(deployment, "state", "--partition", "0")[0]["kind"] == "genesis"


def test_unknown_partitions_and_absent_topics_are_reported(
    deployment: Deployment, broker: str, topic_prefix: str, tmp_path: Path
) -> None:
    wrong = deployment.run("inspect", "rejected", "--partition", "2")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.endswith("Error: --partition must be in [0, 1], got 2\n")
    other = Deployment(tmp_path, broker, topic_prefix)
    absent = other.run("inspect", "counts")
    assert (absent.returncode, absent.stdout) == (1, "")
    assert absent.stderr.startswith(f"Error: topic {topic_prefix}counts ")
    assert other.run("inspect", "rejected-uploads").stderr == (
        f"Error: topic {topic_prefix}rejected-uploads is absent: the collection file has no section edge or "
        "relay; write relay: {} into it, then run deniable topics create\n"
    )


def write_estimate(deployment: Deployment, window_start: int) -> None:
    made = record(["AA", "B6"], [0.7, 0.2], window_start=window_start)
    with closing(KafkaProducer(bootstrap_servers=deployment.servers)) as producer:
        topic = deployment.prefix + "estimates"
        producer.send(topic, encode_estimate(made), key=made.key, partition=0).get(timeout=120)


def test_following_shows_new_records_and_ends_with_its_reader_or_a_signal(
    broker: str, topic_prefix: str, tmp_path: Path
) -> None:
    made = Deployment(tmp_path, broker, topic_prefix)
    made.create_topics()
    write_estimate(made, 60)
    follow = ("inspect", "estimates", "--follow")
    with made.piped(*follow) as left, made.piped(*follow) as interrupted:
        for window in (60, 120, 180):
            for process in (left, interrupted):
                assert process.stdout is not None
                assert json.loads(process.stdout.readline())["window_start"] == window
            write_estimate(made, window + 60)
        interrupted.send_signal(signal.SIGINT)
        assert left.stdout is not None
        left.stdout.close()
        for process, status, message in ((left, 0, b""), (interrupted, 130, b"\n")):
            assert process.stderr is not None
            assert (process.wait(120), process.stderr.read()) == (status, message)


def test_people_get_lines_of_words(deployment: Deployment) -> None:
    """On a terminal; --json gives JSON there, too."""
    words = on_a_terminal(deployment, "inspect", "rejected", "--tail", "1")
    assert words.split()[1:] == [
        "1:8",
        "rejected",
        "report_partition=0",
        "report_offset=4",
        "reason=duplicate",
    ]
    assert (
        json.loads(on_a_terminal(deployment, "inspect", "rejected", "--tail", "1", "--json"))["offset"] == 8
    )


def on_a_terminal(deployment: Deployment, *arguments: str) -> str:
    ours, theirs = os.openpty()
    try:
        command = [sys.executable, "-m", "deniable", *arguments]
        with open(theirs, "wb") as stdout:
            subprocess.run(command, stdout=stdout, cwd=deployment.folder, timeout=120, check=True)
        return read_to_end(ours)
    finally:
        os.close(ours)


def test_watch_on_a_terminal_says_that_figures_are_old(deployment: Deployment) -> None:
    """The next estimate was due in 1970; none arrives, and the table is marked as old."""
    write_estimate(deployment, 60)
    ours, theirs = os.openpty()
    shown = b""
    command = [sys.executable, "-m", "deniable", "watch", "carrier"]
    with subprocess.Popen(command, stdout=theirs, cwd=deployment.folder) as watching:

        def says_old() -> bool:
            nonlocal shown
            shown += os.read(ours, 10_000)
            return b"old since 1970-01-01 00:01:" in shown

        try:
            assert wait_until(says_old, 120), shown
        finally:
            watching.kill()
            os.close(ours)
            os.close(theirs)
