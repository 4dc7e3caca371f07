"""The embedded broker: a real Kafka, and nothing of it left behind."""

import socket
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from deniable.deploy.broker import broker as broker_module
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.errors import BrokerError
from deniable.deploy.broker.locked_folder import FolderError
from deniable.deploy.broker.ports import free_port
from deniable.deploy.broker.process import LOG_NAME, run_broker
from tests.support.processes import state_of, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_jars")]

PARENT = """
import time
from deniable.deploy.broker.broker import Broker
with Broker() as broker:
    print(broker.child.pid, broker.folder, flush=True)
    time.sleep(600)
"""


def create_topic(bootstrap_servers: str, name: str) -> None:
    with KafkaAdminClient(bootstrap_servers=bootstrap_servers) as client:
        client.create_topics({name: {"num_partitions": 2, "replication_factor": 1}})


def topics(bootstrap_servers: str) -> list[str]:
    with KafkaAdminClient(bootstrap_servers=bootstrap_servers) as client:
        return list(client.list_topics())


def test_java_gets_the_options_of_kafkas_own_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\necho "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("KAFKA_JVM_PERFORMANCE_OPTS", "-XX:+UseSerialGC  -XX:TieredStopAtLevel=1")
    run_broker(tmp_path, str(java), tmp_path, own_session=True).wait(20)
    words = (tmp_path / LOG_NAME).read_text().split()
    assert words[:3] == ["-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "with space, and comma"


@pytest.mark.nightly
def test_two_brokers_race_for_ports_safely(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as one:
        taken = int(one.bootstrap_servers.rpartition(":")[2])
        ports = chain([taken], iter(free_port, None))
        monkeypatch.setattr(broker_module, "free_port", lambda but=0: next(ports))
        monkeypatch.setattr(broker_module, "require_free", lambda port: None)
        with Broker() as other:
            pids = [broker.child.pid for broker in (one, other) if broker.child]
            folders = [broker.folder for broker in (one, other) if broker.folder]
            create_topic(one.bootstrap_servers, "mine")
            assert topics(one.bootstrap_servers) == ["mine"]
            assert topics(other.bootstrap_servers) == []
    assert [state_of(pid) for pid in pids] == ["Z", "Z"]
    assert len(folders) == 2
    assert not any(folder.exists() for folder in folders)


@pytest.mark.all
def test_data_survive_stop_kill_and_pause(data_dir: Path) -> None:
    with Broker(data_dir) as first:
        create_topic(first.bootstrap_servers, "kept")
        address = first.bootstrap_servers
        first.kill()
        assert first.start() == address
        assert topics(address) == ["kept"]
        assert first.child is not None
        first.pause()
        assert wait_until(lambda: first.child is not None and state_of(first.child.pid) == "T")
        first.resume()
        assert topics(address) == ["kept"]
        with pytest.raises(FolderError):
            Broker(data_dir).start()
    first.stop()
    with Broker(data_dir) as second:
        assert topics(second.bootstrap_servers) == ["kept"]


def test_a_port_in_use_is_named(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(BrokerError, match=f"port {port} "):
            Broker(data_dir, port).start()


def test_unformattable_folder_is_reported_with_the_log(data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / "kafka").write_text("not a folder")
    with pytest.raises(BrokerError, match=r"\n(.*\n)*.*kafka"):
        Broker(data_dir).start()


def test_broker_that_fails_to_start_is_reported_with_its_log(data_dir: Path) -> None:
    (data_dir / "kafka").mkdir(parents=True)
    (data_dir / "kafka" / "meta.properties").write_text("version=1\ncluster.id=strange\nnode.id=7\n")
    broker = Broker(data_dir)
    with pytest.raises(BrokerError, match=r"\n(.*\n)*.*node.id"):
        broker.start()
    assert broker.child is None


@pytest.mark.nightly
def test_a_killed_parent_takes_its_broker_along() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        message, folder = parent.stdout.readline().rstrip().split(" ", 1)
        pid = int(message)
        assert Path(f"/proc/{pid}/comm").read_text() == "java\n"
        parent.kill()
    assert wait_until(lambda: state_of(pid) == "Z")
    assert Path(folder).is_dir()
    with Broker():  # the next one sweeps
        assert not Path(folder).exists()
