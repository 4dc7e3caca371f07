"""Edges with a real Kafka: what got 204 stands in `uploads`; nothing of an address stands anywhere."""

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack

import pytest

from deniable.config.file import load
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import deniable_command, spawn, stop
from deniable.protocol.wire import partition_of
from tests.support.edge.sending import FILE, Device, begin, written
from tests.support.edge.uploads import group, upload
from tests.support.paths import REPOSITORY
from tests.support.processes import new_port, wait_until

pytestmark = pytest.mark.broker

PARTITIONS = 3
CANARY = "203.0.113.77"


class Scene:
    """A collection file, edges, and devices."""

    def __init__(self, folder, servers, prefix, stack):
        self.folder, self.servers, self._stack = folder, servers, stack
        self.file = folder / "deniable.yaml"
        self.file.write_text(FILE.format(servers=servers, prefix=prefix, partitions=PARTITIONS))
        self.loaded = load(self.file, environment={})
        (self.collection,) = self.loaded.collections
        self.topic = self.loaded.topics.uploads
        self.stopped = threading.Event()
        self.devices = []

    def start(self, port=None, ready=True):
        """Start an edge as users do; return its port and process."""
        port = port or new_port()
        command = deniable_command("edge", "--config", str(self.file), "--listen", f"127.0.0.1:{port}")
        child = spawn(command, self.folder / "edge.log")
        self._stack.callback(stop, [child])
        assert wait_until(lambda: self.reasons(port) == [] if ready else self.reasons(port) is not None)
        return port, child

    def start_mortal(self, port, frames):
        order = {"file": str(self.file), "port": port, "frames": frames}
        command = [sys.executable, "-m", "tests.support.edge.edge_process", json.dumps(order)]
        child = spawn(command, self.folder / "mortal.log", folder=REPOSITORY)
        self._stack.callback(stop, [child])
        return child

    def reasons(self, port):
        """Why the edge is not ready; None if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
                return json.loads(answer.read())["reasons"]
        except urllib.error.HTTPError as error:
            with error:
                return json.loads(error.read())["reasons"]
        except OSError:
            return None

    def metrics(self, port):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return answer.read()

    def send(self, ports, devices=4, **headers):
        started = [Device(ports, self.collection, self.stopped, headers.items()) for _ in range(devices)]
        for each in started:
            each.start()
        self.devices += started

    def wait_until_taken(self, uploads):
        assert wait_until(lambda: sum(len(each.taken) for each in self.devices) > uploads)

    def settle(self):
        """Stop the devices; return what was taken, and what stands in the topic."""
        self.stopped.set()
        for each in self.devices:
            each.join(30)
        taken = {body for each in self.devices for body in each.taken}
        found, records = written(self.servers, self.topic, PARTITIONS)
        assert taken <= found.keys()
        return taken, found, records


@pytest.fixture
def scene(broker, prefix, tmp_path):
    with ExitStack() as stack:
        made = Scene(tmp_path, broker, prefix, stack)
        begin(broker, made.topic, PARTITIONS)
        yield made


@pytest.fixture
def prefix(request):
    return f"edge-{time.time_ns():x}-"


@pytest.mark.all
def test_everything_that_got_204_is_written_through_two_edges(scene):
    """With a canary as the devices' address: it stands in no record, log or metric."""
    ports = [scene.start()[0], scene.start()[0]]
    headers = {"X-Forwarded-For": CANARY, "User-Agent": "canary-agent", "Cookie": "canary-cookie=1"}
    scene.send(ports, **headers)
    scene.wait_until_taken(20)
    metrics = [scene.metrics(port) for port in ports]
    _, found, records = scene.settle()
    assert {status for each in scene.devices for status in each.statuses} == {204}
    assert sum(found.values()) == len(found)  # none was sent twice, so none is written twice
    for record in records:
        assert (record.key, record.headers) == (None, [])
    log = (scene.folder / "edge.log").read_bytes()
    for canary in (CANARY.encode(), b"canary-agent", b"canary-cookie", bytes([203, 0, 113, 77])):
        assert all(canary not in each for each in metrics)
        assert canary not in log
        assert all(canary not in record.value for record in records)


def test_upload_stands_in_the_partition_of_its_id(scene):
    port, _ = scene.start()
    scene.send([port])
    scene.wait_until_taken(20)
    _, found, records = scene.settle()
    placed = [(body, record.partition) for record in records for body in found if body in record.value]
    assert len(placed) >= 20
    assert all(partition_of(body[7:23], PARTITIONS) == partition for body, partition in placed)


def test_edge_waits_for_a_relay_and_says_so(broker, prefix, tmp_path):
    with ExitStack() as stack:
        scene = Scene(tmp_path, broker, prefix, stack)
        port, _ = scene.start(ready=False)
        expected = f"topic {scene.topic} does not exist: run deniable topics create"
        assert wait_until(lambda: scene.reasons(port) == [expected])
        begin(broker, scene.topic, PARTITIONS)
        assert wait_until(lambda: scene.reasons(port) == [])
        command = deniable_command("ready", "--address", f"127.0.0.1:{port}")
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "ready\n"


def test_stop_answers_what_is_in_flight_and_exits_with_0(scene):
    port, child = scene.start()
    scene.send([port], 8)
    scene.wait_until_taken(1)
    child.send_signal(signal.SIGTERM)
    assert child.wait(120) == 0
    scene.settle()
    statuses = {status for each in scene.devices for status in each.statuses}
    assert statuses <= {204, 0}
    assert "Traceback" not in (scene.folder / "edge.log").read_text()


@pytest.mark.all
def test_edge_killed_between_acknowledgement_and_answer(scene):
    """Devices send the same upload again, to it or to another edge: nothing taken is missing."""
    mortal, (other, _) = new_port(), scene.start()
    scene.send([mortal, other])
    for frames in (1, 3, 20, 60):
        child = scene.start_mortal(mortal, frames)
        assert child.wait(60) == -signal.SIGKILL
    time.sleep(0.5)
    taken, found, _ = scene.settle()
    assert any(number > 1 for number in found.values())  # the killed edge's acknowledged uploads came again
    assert len(taken) > 50
    assert sum(each.statuses[0] for each in scene.devices) > 0


@pytest.mark.nightly
def test_broker_away_and_back(tmp_path, prefix):
    """503 with Retry-After within seconds, later at once; nothing that got 204 is lost; it recovers alone."""
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(data_dir=tmp_path / "kafka"))
        scene = Scene(tmp_path, broker.bootstrap_servers, prefix, stack)
        begin(scene.servers, scene.topic, PARTITIONS)
        port, _ = scene.start()
        scene.send([port])
        time.sleep(2.0)
        for leave, come_back in ((broker.stop, broker.start), (broker.pause, broker.resume)):
            leave()
            assert wait_until(lambda: all(each.statuses[503] > 3 for each in scene.devices), 30)
            assert wait_until(lambda: "Kafka at" in str(scene.reasons(port)), 30)  # now it is known
            body, began = upload(group(scene.collection)), time.monotonic()
            device = Device([port], scene.collection, scene.stopped)
            assert device.send(port, body) == 503
            device.close()
            assert time.monotonic() - began < 15.0  # Kafka's client would wait for longer
            time.sleep(12.0)
            come_back()
            assert wait_until(lambda: scene.reasons(port) == [], 40)
            for each in scene.devices:
                each.statuses.clear()
            assert wait_until(lambda: sum(each.statuses[204] for each in scene.devices) > 20, 40)
        taken, _, _ = scene.settle()
        assert len(taken) > 40
        assert {each for device in scene.devices for each in device.retry_after} == {"5"}
        log = (scene.folder / "edge.log").read_text()
        assert "Traceback" not in log
        assert len(log.splitlines()) < 60, log
