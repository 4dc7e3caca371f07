"""Edges, relays and a worker, started as their systemd units say, watched by a real Prometheus."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from deniable.config.file import load
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import Child, deniable_command, last_lines, spawn, stop
from deniable.deploy.monitoring.dashboards.files import FOLDER
from deniable.estimators.collection import Collection
from tests.support.deploy.prometheus_server import Prometheus, Span, program, scraping
from tests.support.deploy.promql import queries
from tests.support.edge.uploads import group, upload
from tests.support.paths import REPOSITORY
from tests.support.processes import new_port, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all, pytest.mark.timeout(400)]

RULES = FOLDER.parent / "prometheus"
UNITS = REPOSITORY / "deploy" / "systemd"
READY_SECONDS, WELL_SECONDS, RECORD_SECONDS, ALERT_SECONDS = 60, 45, 75, 90
HEADERS = {"Content-Type": "application/vnd.deniable.reports"}
FILE = """revision: 1
kafka: {{bootstrap_servers: "{servers}", partitions: 2}}
edge: {{uploads_per_minute: 0}}
relay: {{shuffle_reports: 5, delivery_seconds: 3, idle_seconds: 0.2}}
collections:
  - {{name: plan, mechanism: k-rr, values: [free, team, business], epsilon: 2.0, window_seconds: 5,
     grace_seconds: 10, minimum_reports: 10, budget: none}}
"""


def started_as(unit: str, instance: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return command and environment of an instance of a unit, with all its files in a folder."""
    text = (UNITS / f"{unit}@.service").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ExecStart=/opt/deniable/bin/deniable (.*)$", text, re.MULTILINE)
    given = dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE))
    arguments = line.replace("%i", instance).replace("/etc/deniable", str(folder)).split()
    paths = {name: path.replace("/var/lib", str(folder)) for name, path in given.items()}
    return deniable_command(*arguments), paths


class Deployment:
    """A worker, two relays, two edges and a Prometheus, on a broker of their own."""

    def __init__(self, folder: Path, broker: Broker, stack: ExitStack) -> None:
        self.folder, self.broker, self._stack = folder, broker, stack
        (folder / "deniable.yaml").write_text(FILE.format(servers=broker.bootstrap_servers), encoding="utf-8")
        for name in ("deniable-relay", "deniable-edge"):
            (folder / name).mkdir(mode=0o700)
        self._keep("deniable-relay/secret", os.urandom(32))
        pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        self._keep("deniable-edge/key.pem", pem)
        create = deniable_command("topics", "create", "--config", str(folder / "deniable.yaml"))
        subprocess.run(create, check=True, timeout=60)
        self.ports = {
            unit: [str(new_port()) for _ in range(number)]
            for unit, number in (("deniable-aggregator", 1), ("deniable-relay", 2), ("deniable-edge", 2))
        }
        self.children: dict[str, Child] = {}
        for unit, ports in self.ports.items():
            for port in ports:
                self.start(unit, port)
        (self.collection,) = load(folder / "deniable.yaml", environment={}).collections
        ready = [port for ports in self.ports.values() for port in ports]
        assert wait_until(lambda: all(not self.reasons(port) for port in ready), READY_SECONDS), self.logs()
        targets = [f"127.0.0.1:{port}" for port in ready]
        self.prometheus: Prometheus = stack.enter_context(scraping(targets, RULES, folder))

    def _keep(self, name: str, content: bytes) -> None:
        file = os.open(self.folder / name, os.O_CREAT | os.O_WRONLY, 0o600)
        os.write(file, content)
        os.close(file)

    def start(self, unit: str, port: str) -> None:
        command, environment = started_as(unit, port, self.folder)
        child = spawn(command, self.folder / f"{unit}-{port}.log", environment=environment)
        self._stack.callback(stop, [child])
        self.children[port] = child

    def reasons(self, port: str) -> list[str]:
        """Return why a service is not ready."""
        try:
            with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
                found: list[str] = json.loads(answer.read())["reasons"]
        except HTTPError as error:
            with error:
                found = json.loads(error.read())["reasons"]
        except OSError as error:
            found = [str(error)]
        return found

    def logs(self) -> str:
        """Return the end of every log."""
        return "\n".join(f"{file.name}\n{last_lines(file)}" for file in sorted(self.folder.glob("*.log")))

    def send(self, number: int, collection: Collection | None = None) -> list[int]:
        """Upload so many reports, one after the other, to the edges in turn; return the statuses."""
        statuses = []
        for turn in range(number):
            connection = HTTPConnection("127.0.0.1", int(self.ports["deniable-edge"][turn % 2]), timeout=15)
            body = upload(group(collection or self.collection))
            connection.request("POST", "/v1/reports", body, HEADERS)
            statuses.append(connection.getresponse().status)
            connection.close()
        return statuses

    def send_until(
        self, happens: Callable[[], bool], seconds: float, collection: Collection | None = None
    ) -> bool:
        """Upload until it happens; return whether it has."""
        deadline = time.monotonic() + seconds
        while not (found := happens()) and time.monotonic() < deadline:
            self.send(10, collection)
            time.sleep(0.2)
        return found

    def alerts(self) -> set[str]:
        """Return the alerts of devices whose condition holds now, whether or not for long enough to fire."""
        groups = self.prometheus.ask("rules")["groups"]
        (ours,) = (group["rules"] for group in groups if group["name"] == "deniable-devices")
        return {rule["name"] for rule in ours if rule["state"] != "inactive"}


@pytest.fixture(scope="module")
def deployment(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    program()
    folder = tmp_path_factory.mktemp("devices")
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(data_dir=folder / "kafka"))
        yield Deployment(folder, broker, stack)


def test_all_is_well_and_every_panel_has_data(deployment: Deployment) -> None:
    """No condition of an alert holds once uploads flow, windows close and their reports are counted."""
    prometheus, began = deployment.prometheus, time.time()
    asked = [each for each in queries(FOLDER) if each.dashboard == "deniable: devices"]

    def empty() -> list[str]:
        span = Span(began, time.time())
        return [each.panel for each in asked if not prometheus.numbers(each.expression, span)]

    assert deployment.send_until(lambda: empty() == [], WELL_SECONDS), empty()
    assert set(deployment.send(20)) == {204}
    # That few reports are shuffled together is true here.
    expected = {"DeniableFewShuffled"}
    assert deployment.send_until(lambda: deployment.alerts() <= expected, WELL_SECONDS), deployment.alerts()
    rules = prometheus.rules()
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}
    recorded = {rule["name"] for rule in rules if re.search("deniable_(edge|relay)_", rule["name"])}
    assert len(recorded) == 4

    def missing() -> list[str]:
        span = Span(began, time.time())
        return [name for name in recorded if not prometheus.numbers(name, span)]

    assert deployment.send_until(lambda: missing() == [], RECORD_SECONDS), missing()
    counted = 'sum(deniable_reports_total{result="counted"})'
    assert max(prometheus.numbers(counted, Span(began, time.time()))) > 0


@pytest.mark.nightly
def test_outdated_uploads_are_noticed(deployment: Deployment) -> None:
    other = Collection("other", deployment.collection.mechanism, window_seconds=5, grace_seconds=10)
    assert set(deployment.send(2, other)) == {409}
    refuses = "DeniableEdgeRefuses"
    assert deployment.send_until(lambda: refuses in deployment.alerts(), ALERT_SECONDS, other)


@pytest.mark.nightly
def test_relays_that_are_gone_are_noticed_until_they_are_back(deployment: Deployment) -> None:
    relays = deployment.ports["deniable-relay"]
    stop([deployment.children[port] for port in relays], 30)
    assert [deployment.children[port].returncode for port in relays] == [0, 0]
    assert set(deployment.send(4)) == {204}, "edges need no relay once one has begun"
    assert wait_until(lambda: "DeniableNoRelay" in deployment.alerts(), ALERT_SECONDS), deployment.alerts()
    for port in relays:
        deployment.start("deniable-relay", port)
    assert wait_until(lambda: "DeniableNoRelay" not in deployment.alerts(), ALERT_SECONDS), deployment.logs()
    assert wait_until(lambda: not any(map(deployment.reasons, relays)), READY_SECONDS)


@pytest.mark.nightly
def test_an_outage_of_kafka_is_noticed_until_it_is_over(deployment: Deployment) -> None:
    edges = deployment.ports["deniable-edge"]
    deployment.broker.pause()
    try:
        cannot_write = "DeniableEdgeCannotWrite"
        assert deployment.send_until(lambda: cannot_write in deployment.alerts(), ALERT_SECONDS)
        assert set(deployment.send(2)) == {503}
        assert all(map(deployment.reasons, edges))
    finally:
        deployment.broker.resume()
    assert wait_until(lambda: cannot_write not in deployment.alerts(), ALERT_SECONDS), deployment.logs()
    assert wait_until(lambda: not any(map(deployment.reasons, edges)), READY_SECONDS)
    assert set(deployment.send(4)) == {204}


def test_services_end_in_good_order(deployment: Deployment) -> None:
    stop(list(deployment.children.values()), 30)
    assert {child.returncode for child in deployment.children.values()} == {0}
    for file in deployment.folder.glob("deniable-*.log"):
        assert "Traceback" not in file.read_text(encoding="utf-8"), file.name
