"""Producers that reach no Kafka deliver to a real edge: each stored report arrives once, despite kills."""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from deniable.config.file import load
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.errors import DeliveryError
from deniable.producers.opening.from_file import producer_config
from deniable.producers.producer import Producer
from tests.support.deployments import Deployment
from tests.support.edge.edge_site import EdgeSite, edge_site, sender_of
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

PRODUCE = ("produce", "carrier", "--field", "carrier", "--no-clients")
QUICK = ProducerTiming(retry=(0.05, 0.1, 0.2), comparison=0.5)


@pytest.fixture
def site(broker: str, topic_prefix: str, tmp_path: Path) -> EdgeSite:
    return edge_site(tmp_path / "edge", broker, topic_prefix)


@pytest.fixture
def sender(site: EdgeSite, tmp_path: Path) -> Deployment:
    return sender_of(site, tmp_path / "sender")


def producer_of(sender: Deployment, **changed) -> Producer:
    config = producer_config(load(sender.folder / "deniable.yaml", environment={}), block_milliseconds=60_000)
    return Producer(replace(config, timing=QUICK, **changed))


def fingerprint(site: EdgeSite, name: str) -> int:
    return load(site.deployment.folder / "deniable.yaml", environment={}).collection(name).fingerprint


def edit(deployment: Deployment, old: str, new: str) -> None:
    file = deployment.folder / "deniable.yaml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def lines(number: int) -> bytes:
    return b"carrier\n" + b"AA\nB6\n9E\n" * (number // 3)


def test_every_report_of_both_collections_arrives(site: EdgeSite, sender: Deployment) -> None:
    with site.running():
        with producer_of(sender) as producer:
            assert producer.report("carrier", ["AA"] * 20_000, None).stored == 20_000
            for i in range(50):
                assert producer.report("place", "JFK", clients=f"client {i}").stored == 1
            for _ in range(100):
                producer.record("place", "LAX")
            producer.flush()
            assert producer.reasons_not_ready() == []
            counters = producer.counters()
        ended = sender.run(*PRODUCE, given=lines(3000))
        assert ended.returncode == 0, ended.stderr
        assert "3000 reports" in ended.stderr
        assert f" to {site.url}" in ended.stderr
    assert counters.acknowledged == {"carrier": 20_000, "place": 150}
    assert site.counted() == {fingerprint(site, "carrier"): 23_000, fingerprint(site, "place"): 150}
    for upload in site.uploads():
        (group,) = upload.groups
        assert group.window_start % 60 == 0


@pytest.mark.all
def test_edge_that_is_away_killed_and_started_again(site: EdgeSite, sender: Deployment) -> None:
    """Reports are stored while it is away; with kills amid sending, repeated uploads have the same bytes."""
    stored = 0
    with producer_of(sender, pack_reports=20) as producer:
        stored += producer.report("carrier", ["AA"] * 500, None).stored
        with pytest.raises(DeliveryError, match=site.url):
            producer.flush(0.5)
        for _ in range(4):
            with site.running() as edge:
                stored += producer.report("carrier", ["AA"] * 5_000, None).stored
                before = producer.counters().packs
                assert wait_until(lambda before=before: producer.counters().packs > before + 20, 30)
                edge.kill()
                edge.wait()
        with site.running():
            producer.flush(60)
        assert producer.counters().acknowledged == {"carrier": stored}
    assert stored == 20_500
    assert site.counted() == {fingerprint(site, "carrier"): stored}


KILLED = """
import sys
from dataclasses import replace
from pathlib import Path
from deniable.config.file import load
from deniable.producers.opening.from_file import producer_config
from deniable.producers.producer import Producer
config = producer_config(load(Path(sys.argv[1]), environment={}), block_milliseconds=60_000)
producer = Producer(replace(config, pack_reports=20))
while True:
    print(producer.report("carrier", ["AA"] * 100, None).stored, flush=True)
"""


@pytest.mark.all
def test_killed_producers_send_the_same_ids_again(site: EdgeSite, sender: Deployment) -> None:
    """What a receipt called stored arrives once; at most the call of each kill has no receipt."""
    stored = unsure = 0
    with site.running():
        for _ in range(5):
            command = [sys.executable, "-c", KILLED, str(sender.folder / "deniable.yaml")]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                said = []
                deadline = time.monotonic() + 30
                while len(said) < 12 and time.monotonic() < deadline:
                    said.append(int(process.stdout.readline()))
                process.send_signal(signal.SIGKILL)
                rest = process.stdout.read().split()
            stored += sum(said) + sum(map(int, rest))
            unsure += 100
        with producer_of(sender) as producer:
            producer.flush(60)
            assert producer.counters().backlog.packs == 0
    (counted,) = site.counted().values()
    assert stored <= counted <= stored + unsure
    assert stored >= 6_000


def test_other_parameters_are_found_before_sending_and_in_python(site: EdgeSite, sender: Deployment) -> None:
    edit(sender, "epsilon: 3.0", "epsilon: 2.0")
    with site.running():
        ended = sender.run(*PRODUCE, given=lines(3))
        assert ended.returncode == 1
        with producer_of(sender) as producer:
            assert wait_until(producer.reasons_not_ready, 30)
            (differs,) = producer.reasons_not_ready()
            assert "'carrier'" in differs
            assert differs in ended.stderr
            producer.report("carrier", ["AA"] * 30, None)
            producer.report("place", ["JFK"] * 20, None)
            producer.flush()
            counters = producer.counters()
        assert counters.rejected == {("carrier", "unknown_collection"): 30}
        assert counters.acknowledged == {"place": 20}
    assert site.counted() == {fingerprint(site, "place"): 20}


def test_late_reports_are_rejected_by_the_edge(site: EdgeSite, sender: Deployment) -> None:
    """A producer allows for clocks that differ by 300 s; the edge has the last word."""
    with site.running(), producer_of(sender) as producer:
        start = (time.time() // 60 - 12) * 60
        assert producer.report("carrier", ["AA"] * 5, None, at=start).stored == 5
        producer.flush()
        assert producer.counters().rejected == {("carrier", "too_late"): 5}
        assert producer.counters().expired == {}


@pytest.mark.all
def test_pinned_key(site: EdgeSite, sender: Deployment, tmp_path: Path) -> None:
    with site.running():
        key = site.deployment.run("edge", "--show-key").stdout.strip()
        pinned = sender_of(site, tmp_path / "pinned", edge_public_key=key)
        ended = pinned.run(*PRODUCE, given=lines(30))
        assert ended.returncode == 0, ended.stderr
        other = sender_of(site, tmp_path / "other", edge_public_key="A" * 43 + "=")
        ended = other.run(*PRODUCE, given=lines(30))
        assert ended.returncode == 1
        assert "edge_public_key" in ended.stderr, ended.stderr
        with producer_of(other) as producer:
            producer.report("carrier", ["AA"] * 7, None)
            with pytest.raises(DeliveryError, match="edge_public_key"):
                producer.flush(20)
            with suppress(DeliveryError):
                producer.close(0)
        assert site.counted() == {fingerprint(site, "carrier"): 30}


@pytest.mark.all
def test_doctor_and_commands_that_need_kafka(site: EdgeSite, sender: Deployment) -> None:
    with site.running():
        ended = sender.doctor("--json")
        steps = {each["step"]: each for each in map(json.loads, ended.stdout.splitlines())}
        assert ended.returncode == 0, ended.stdout
        assert list(steps) == ["edge", "ready", "parameters", "clock skew", "budget store"]
        assert [each["status"] for each in steps.values()] == ["ok", "ok", "ok", "ok", "skipped"]
        edit(sender, "window_seconds: 60", "window_seconds: 30")
        ended = sender.doctor()
        assert ended.returncode == 1
        assert "window_seconds" in ended.stdout
    ended = sender.doctor()
    assert ended.returncode == 1
    assert "connection refused" in ended.stdout
    assert ended.stdout.count("skipped: edge failed") == 3
    ended = sender.run(*PRODUCE[:1], "carrier", *PRODUCE[2:], "--bootstrap-servers", "127.0.0.1:9092")
    assert ended.returncode == 2
    assert "--bootstrap-servers" in ended.stderr


@pytest.mark.all
def test_produce_keeps_reports_while_the_edge_is_away(site: EdgeSite, sender: Deployment) -> None:
    file = sender.folder / "flights.csv"
    file.write_bytes(lines(300))
    with sender.running("produce.log", *PRODUCE, "--input", str(file)) as child:
        assert wait_until(lambda: "connection refused" in sender.output("produce.log"), 60)
        with site.running():
            assert wait_until(lambda: child.poll() is not None, 60)
    assert "300 reports" in sender.output("produce.log")
    assert site.counted() == {fingerprint(site, "carrier"): 300}
