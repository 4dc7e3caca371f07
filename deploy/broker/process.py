"""The Java processes of the embedded broker: the tool that formats its folder, and the broker itself."""

import base64
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from types import MappingProxyType

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from deniable.cluster.connection.start_log import StartLog
from deniable.deploy.broker.child_processes import Child, last_lines, spawn, stop
from deniable.deploy.broker.errors import BrokerError

SETTINGS = Path(__file__).parent / "kafka"
LOG_NAME = "broker.log"
FORMAT_SECONDS = 60.0


def write_settings(folder: Path, port: int, controller_port: int) -> None:
    """Write `server.properties` and create its folders; its paths are relative to the folder."""
    template = Template((SETTINGS / "server.properties").read_text())
    (folder / "server.properties").write_text(template.substitute(port=port, controller_port=controller_port))
    (folder / "tmp").mkdir(exist_ok=True)


def new_cluster_id() -> str:
    """Return a random cluster id: 16 bytes, base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def format_once(folder: Path, java: str, libs: Path, quorum: Sequence[str]) -> None:
    """Format the folder unless it is formatted; `quorum`, arguments of the tool, say for which cluster.

    Raises
    ------
    BrokerError with the tool's output if it fails.
    """
    # The tool writes this file last, so a folder with it is completely formatted.
    if (folder / "kafka" / "meta.properties").exists():
        return
    arguments = ["format", "--config=server.properties", *quorum]
    options = _java_options() or ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]  # quick to start
    child = _run(folder, java, libs, options, "kafka.tools.StorageTool", arguments)
    is_late = False
    try:
        child.wait(FORMAT_SECONDS)
    except subprocess.TimeoutExpired:
        is_late = True
    finally:
        stop([child])
    if child.returncode != 0:
        limit = f" within {FORMAT_SECONDS:g} s" if is_late else ""
        log_end = last_lines(folder / LOG_NAME)
        raise BrokerError(f"{folder} could not be formatted for Kafka{limit}:\n{log_end}")


def run_broker(folder: Path, java: str, libs: Path, own_session: bool) -> Child:
    """Start the broker on the folder's settings; its output goes to the folder's `broker.log`.

    Java gets the options in KAFKA_JVM_PERFORMANCE_OPTS, too, as from Kafka's own scripts.
    """
    options = ["-Xmx768m", *_java_options()]
    return _run(folder, java, libs, options, "kafka.Kafka", ["server.properties"], own_session)


def _java_options() -> list[str]:
    return os.environ.get("KAFKA_JVM_PERFORMANCE_OPTS", "").split()


def wait_until_it_answers(
    child: Child, folder: Path, port: int, seconds: float, client_settings: Mapping[str, object]
) -> bool:
    """Return True once the broker answers a client, False if it ends or does not within `seconds`."""
    progress = StartLog(seconds)
    while child.poll() is None and progress.has_time("Kafka"):
        if cluster_id_at(port, client_settings) == _cluster_id_of(folder):
            return True
        time.sleep(0.05)
    return False


def _run(
    folder: Path,
    java: str,
    libs: Path,
    options: list[str],
    main: str,
    arguments: list[str],
    own_session: bool = True,
) -> Child:
    # No PerfData and a separate tmpdir, so a killed Java leaves nothing outside the folder.
    own = ["-XX:-UsePerfData", f"-Djava.io.tmpdir={folder / 'tmp'}"]
    logging = f"-Dlog4j2.configurationFile={SETTINGS / 'log4j2.properties'}"
    command = [java, *options, *own, logging, "-cp", f"{libs}/*", main, *arguments]
    return spawn(command, folder / LOG_NAME, folder=folder, own_session=own_session)


def _cluster_id_of(folder: Path) -> str:
    lines = (folder / "kafka" / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["cluster.id"]


def cluster_id_at(port: int, client_settings: Mapping[str, object] = MappingProxyType({})) -> str | None:
    """Return the cluster id of whatever broker listens at this loopback port; None without answer."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        address = f"127.0.0.1:{port}"
        with KafkaAdminClient(
            bootstrap_servers=address, bootstrap_timeout_ms=5000, **client_settings
        ) as client:
            cluster = client.describe_cluster()
    except (OSError, KafkaError):
        return None
    return str(cluster["cluster_id"]) if cluster["brokers"] else None
