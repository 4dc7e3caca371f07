"""The commands as processes against a real broker: the whole path, replay, and exit statuses."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from itertools import chain
from pathlib import Path
from uuid import uuid4

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from deniable.aggregator.ledger import row_values
from deniable.aggregator.records.estimate import encode_estimate
from deniable.deploy.produce.input.batches import BATCH_LINES
from tests.support.deploy.estimates import record
from tests.support.deployments import Deployment
from tests.support.paths import REPOSITORY
from tests.support.processes import state_of, wait_until

pytestmark = pytest.mark.broker

Process = subprocess.Popen[bytes]
Pair = list[Process]

SIGNALS = (signal.SIGINT, signal.SIGTERM)
FLIGHTS = 3000
VISITS = 500
SETTLE_SECONDS = 120


def send(deployment: Deployment) -> None:
    """Send all reports that the tests expect: k-RR from CSV, memoized RAPPOR from JSON lines."""
    lines = "".join(f"{i},{'AA' if i % 3 else 'B6'}\n" for i in range(FLIGHTS))
    (deployment.folder / "flights.csv").write_text("number,carrier\n" + lines)
    words = "produce carrier --input flights.csv --field carrier --no-clients"
    sent = deployment.run(*words.split())
    assert (sent.returncode, sent.stdout) == (0, ""), sent.stderr
    assert f"{FLIGHTS} reports sent in " in sent.stderr
    visits = [json.dumps({"who": f"client-{i % 50}", "where": ["JFK", "LAX"][i % 2]}) for i in range(VISITS)]
    given = "\n".join([*visits, "broken"]).encode()
    options = ["--format", "jsonl", "--field", "where", "--clients", "who"]
    sent = deployment.run("produce", "place", *options, given=given)
    assert (sent.returncode, sent.stdout) == (0, ""), sent.stderr
    assert f"{VISITS} reports sent in " in sent.stderr
    assert f"line {VISITS + 1} skipped" in sent.stderr
    assert "client-" not in sent.stderr


@pytest.fixture(scope="module")
def deployment(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment with one worker and all reports sent."""
    deployment = Deployment(tmp_path_factory.mktemp("deployment"), broker, f"test-{uuid4().hex[:12]}-")
    created = deployment.run("topics", "create")
    assert created.returncode == 0, created.stderr
    assert created.stdout.split() == sorted(
        deployment.prefix + name
        for name in ("collections", "counts", "estimates", "rejected", "reports", "state", "windows")
    )
    with deployment.running("worker.log", "aggregate", "--web-port", "0"):
        send(deployment)
        yield deployment


@pytest.mark.contract
def test_worker_prints_its_address_and_becomes_ready(deployment: Deployment) -> None:
    again = deployment.run("topics", "create")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "all topics existed already\n")
    page = deployment.address("worker.log")
    assert f"metrics: {page}metrics" in deployment.output("worker.log")

    def ready() -> bool:
        connection = HTTPConnection(page.split("/")[2], timeout=60)
        with closing(connection):
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            return (answer.status, json.load(answer)) == (200, {"ready": True, "reasons": []})

    assert wait_until(ready, SETTLE_SECONDS), deployment.output("worker.log")


@pytest.mark.contract
def test_watch_prints_json_until_all_reports_are_final(deployment: Deployment) -> None:
    finals: dict[int, int] = {}
    deadline = time.monotonic() + SETTLE_SECONDS
    with deployment.piped("watch", "carrier") as watching:
        assert watching.stdout is not None
        while sum(finals.values()) < FLIGHTS:
            assert time.monotonic() < deadline, finals
            estimate = json.loads(watching.stdout.readline())
            assert estimate["collection"] == "carrier"
            if estimate["final"]:
                finals[estimate["window_start"]] = estimate["reports"]
                share = dict(zip(estimate["values"], estimate["frequency"], strict=True))
    assert sum(finals.values()) == FLIGHTS
    assert share["AA"] > share["B6"] > share["9E"]


ESTIMATES_PAGE = (REPOSITORY / "docs" / "estimates.md").read_text(encoding="utf-8")


def test_consumer_in_docs_works_as_pasted(deployment: Deployment) -> None:
    """It reads the final estimates of all reports; only the names of broker and topic are adapted."""
    (pasted,) = (
        block
        for block in re.findall("```python\n(.*?)```", ESTIMATES_PAGE, re.DOTALL)
        if "KafkaConsumer" in block
    )
    assert len([line for line in pasted.splitlines() if line]) <= 11
    for readme, ours in (("127.0.0.1:9092", deployment.servers), ("deniable-", deployment.prefix)):
        assert pasted.count(readme) == 1
        pasted = pasted.replace(readme, ours)
    finals: dict[tuple[str, str], int] = {}
    line = [sys.executable, "-I", "-u", "-c", pasted]
    deadline = time.monotonic() + SETTLE_SECONDS
    with subprocess.Popen(line, stdout=subprocess.PIPE, cwd=deployment.folder) as reading:
        try:
            assert reading.stdout is not None
            while sum(finals.values()) < FLIGHTS + VISITS:
                assert time.monotonic() < deadline, finals
                collection, window, final, reports = reading.stdout.readline().decode().split()
                if final == "True":
                    finals[collection, window] = int(reports)
        finally:
            reading.kill()
    assert sum(finals.values()) == FLIGHTS + VISITS
    assert {collection for collection, _ in finals} == {"carrier", "place"}


def test_watch_ends_with_its_reader(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """The final estimate of an older window counts too; it needs no further estimate to end."""
    deployment = Deployment(tmp_path, broker, topic_prefix)
    deployment.create_topics()
    for window, final in ((120, False), (60, True)):
        estimate = record(["AA"], [1.0], window_start=window, final=final)
        write(deployment, "estimates", 0, estimate.key, encode_estimate(estimate))
    with deployment.piped("watch", "carrier") as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        shown = [json.loads(watching.stdout.readline())["window_start"] for _ in range(2)]
        assert shown == [120, 60]
        watching.stdout.close()
        assert watching.wait(120) == 0
        assert watching.stderr.read() == b""
    once = deployment.run("watch", "carrier", "--once")
    assert (once.returncode, json.loads(once.stdout)["window_start"]) == (0, 120)
    none = deployment.run("watch", "place", "--once")
    assert (none.returncode, none.stdout) == (1, "")


def test_replay_finds_tampered_rows(deployment: Deployment) -> None:
    """Write one report more into one row of `state`, then the true row again."""
    honest = deployment.run("replay")
    assert (honest.returncode, honest.stdout) == (0, "difference: 0\n"), honest.stderr
    key, value, source = a_counts_row(deployment)
    counters = row_values.decode_counters(value)
    forged = counters._replace(counts=counters.counts.copy())
    forged.counts[0] += 1
    write(deployment, "state", source, key, row_values.encode_counters(forged))
    tampered = deployment.run("replay")
    assert (tampered.returncode, tampered.stdout) == (1, "difference: 1\n"), tampered.stderr
    write(deployment, "state", source, key, value)
    assert deployment.run("replay").stdout == "difference: 0\n"


def a_counts_row(deployment: Deployment) -> tuple[bytes, bytes, int]:
    """Key, newest value and partition of a row that counts reports."""
    found: dict[bytes, tuple[bytes, int]] = {}
    deadline = time.monotonic() + 120
    with closing(KafkaConsumer(bootstrap_servers=deployment.servers)) as consumer:
        sources, ends = assign(consumer, deployment, "state")
        consumer.seek_to_beginning(*sources)
        while any(consumer.position(source) < ends[source] for source in sources):
            assert time.monotonic() < deadline, "the topic could not be read to its end"
            for row in chain.from_iterable(consumer.poll(timeout_ms=200).values()):
                if row.key[:1] == b"C" and row.value is not None:
                    found[row.key] = (row.value, row.partition)
    key = next(iter(found))
    return key, *found[key]


def assign(
    consumer: KafkaConsumer, deployment: Deployment, topic: str
) -> tuple[list[TopicPartition], dict[TopicPartition, int]]:
    """Both partitions of a topic, with their end offsets."""
    sources = [TopicPartition(deployment.prefix + topic, partition) for partition in range(2)]
    consumer.assign(sources)
    return sources, consumer.end_offsets(sources)


def records_of(deployment: Deployment, topic: str) -> int:
    with closing(KafkaConsumer(bootstrap_servers=deployment.servers)) as consumer:
        return sum(assign(consumer, deployment, topic)[1].values())


def write(deployment: Deployment, topic: str, partition: int, key: bytes, value: bytes) -> None:
    with KafkaProducer(bootstrap_servers=deployment.servers) as producer:
        producer.send(deployment.prefix + topic, value, key=key, partition=partition).get(timeout=120)


def test_replay_reports_that_no_worker_counts(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    alone = Deployment(tmp_path, broker, topic_prefix)
    absent = alone.run("replay")
    assert absent.returncode == 1
    assert absent.stderr.startswith(f"Error: topic {topic_prefix}reports ")
    alone.create_topics()
    write(alone, "reports", 0, b"", b"no pack")
    uncounted = alone.run("replay", "--wait", "1")
    assert (uncounted.returncode, uncounted.stdout) == (1, "")
    assert uncounted.stderr == (
        "waiting until workers have counted the log, 1 s at most …\n"
        "Error: the log is not counted to its end within 1 s: partition 0 is at offset 0 of 1; is a worker "
        "running and ready?\n"
    )


def test_web_port_in_use_is_reported(deployment: Deployment) -> None:
    port = re.search(r":(\d+)/$", deployment.address("worker.log"))
    assert port
    second = deployment.run("aggregate", "--web-port", port[1])
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr.splitlines()[-1].startswith(f"Error: port {port[1]} ")


@pytest.mark.usefixtures("kafka_jars")
@pytest.mark.nightly
def test_canary_ends_quickly_and_quietly(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """Stopping a worker is a success; the others are interrupted: 128 plus the signal."""
    deployment = Deployment(tmp_path, broker, topic_prefix)
    deployment.create_topics()
    with ExitStack() as stack:

        def start(*line: str) -> Pair:
            return [stack.enter_context(deployment.piped(*line)) for _ in SIGNALS]

        brokers, workers = start("broker", "--port", "0"), start("aggregate", "--web-port", "0")
        wait_for_line(workers, b"page: ")
        estimate = encode_estimate(record(["AA"], [1.0]))
        write(deployment, "estimates", 0, b"carrier/60", estimate)
        watchers = start("watch", "carrier")
        producers = start("produce", "carrier", "--field", "carrier", "--no-clients")
        for producer in producers:
            give(producer, b"carrier\n" + b"AA\n" * BATCH_LINES)
        wait_for_line(watchers, b'{"version"')
        wait_for_line(brokers, b"127.0.0.1:")
        assert wait_until(lambda: records_of(deployment, "reports") >= 2 * BATCH_LINES // 1000, 120)
        for pair in (watchers, producers, workers, brokers):
            for process, number in zip(pair, SIGNALS, strict=True):
                process.send_signal(number)
        assert outcomes(watchers) == [(130, "\n"), (143, "")]
        assert [status for status, _ in outcomes(brokers)] == [130, 143]
        assert [status for status, _ in outcomes(workers)] == [0, 0]
        for (status, output), expected in zip(outcomes(producers), [130, 143], strict=True):
            assert status == expected
            assert f"{BATCH_LINES} reports sent in " in output


@pytest.mark.all
def test_broker_command_and_kafka_are_one_process_group(
    broker: str, topic_prefix: str, tmp_path: Path
) -> None:
    """Signals to the command's process group, such as pause or kill, also reach Kafka."""
    with Deployment(tmp_path, broker, topic_prefix).piped("broker", "--port", "0") as command:
        wait_for_line([command], b"127.0.0.1:")
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
        assert [os.getpgid(int(child)) for child in children] == [os.getpgid(command.pid)]
        command.send_signal(signal.SIGINT)
        assert outcomes([command])[0][0] == 130
        assert [state_of(int(child)) for child in children] == ["Z"]


def give(process: Process, lines: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(lines)
    process.stdin.flush()


def wait_for_line(pair: Pair, first: bytes) -> None:
    for process in pair:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(first), line + (process.stderr.read() if process.stderr else b"")


def outcomes(pair: Pair) -> list[tuple[int, str]]:
    """Status and stderr of each, which must contain no traceback and no Python warning."""
    found = []
    for process in pair:
        assert process.stderr is not None
        status, output = process.wait(120), process.stderr.read().decode()
        assert "Traceback" not in output
        assert "Unclosed" not in output
        found.append((status, output))
    return found
