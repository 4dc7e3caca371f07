"""Compose, what it mounts and starts: checked by the programs that read it, where they are there."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from deniable.config.file import load
from deniable.config.relay_secret import relay_secret
from deniable.deploy.cli.commands import deniable
from deniable.edge.server import MOST_CONNECTIONS, RESERVED_FILES
from deniable.edge.signing_key import open_signing_key
from deniable.relay.keys import RelayKeys
from tests.support.needed import tool
from tests.support.paths import REPOSITORY

DEPLOY = REPOSITORY / "deploy"
FOLDER = DEPLOY / "compose"
PROMETHEUS_FOLDER = "/etc/prometheus/deniable"
NAMES = ("aggregator-1", "aggregator-2", "producer")
OF_DEVICES = {"relay-1": 9100, "relay-2": 9100, "edge-1": 8330, "edge-2": 8330}  # their metrics' ports
SECRETS = ("relay-secret", "edge-key")  # create one, and end


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    """As compose-go, which Docker Compose itself reads with, understands the file, checked by its schema."""
    program = tool("compose-go", "go install github.com/compose-spec/compose-go/v2/cmd", "NO_COMPOSE_GO")
    read = subprocess.run([program, "compose.yaml"], cwd=FOLDER, capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    found: dict[str, dict[str, Any]] = YAML(typ="safe").load(read.stdout)["services"]
    return found


def test_a_slip_is_found(tmp_path: Path) -> None:
    program = tool("compose-go", "go install github.com/compose-spec/compose-go/v2/cmd", "NO_COMPOSE_GO")
    (tmp_path / "compose.yaml").write_text("services: {a: {image: b, red_only: true}}\n")
    read = subprocess.run([program, "compose.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert read.returncode != 0
    assert "red_only" in read.stderr


def test_the_services_are_those_that_were_promised(services: dict[str, dict[str, Any]]) -> None:
    others = {"kafka", "topics", "prometheus", "alertmanager", "grafana"}
    assert set(services) == {*NAMES, *OF_DEVICES, *SECRETS, *others}
    for name in (*NAMES, *OF_DEVICES, *SECRETS, "topics"):
        service = services[name]
        assert (service["user"], service["read_only"], service["cap_drop"]) == ("10001:10001", True, ["ALL"])
    for service in services.values():
        for port in service.get("ports", []):
            assert port["host_ip"] == "127.0.0.1"


def test_every_command_is_one_of_deniable(services: dict[str, dict[str, Any]]) -> None:
    for name in (*NAMES, *OF_DEVICES, "topics"):
        asked = CliRunner().invoke(deniable, [*services[name]["command"], "--help"])
        assert asked.exit_code == 0, asked.output


def test_the_collection_file_is_that_of_the_commands(services: dict[str, dict[str, Any]]) -> None:
    configuration = load(FOLDER / "deniable.yaml", environment={})
    assert services["producer"]["command"][:2] == ["canary", configuration.collections[0].name]
    assert configuration.kafka.bootstrap_servers == "kafka:9092"
    advertised = services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert advertised == f"PLAINTEXT://{configuration.kafka.bootstrap_servers}"


def test_only_the_profile_has_edges_and_relays(services: dict[str, dict[str, Any]]) -> None:
    profiles = {name: service.get("profiles") for name, service in services.items()}
    assert profiles == {name: ["devices"] if name in {*OF_DEVICES, *SECRETS} else None for name in services}
    published = {name: [each["published"] for each in services[name].get("ports", [])] for name in OF_DEVICES}
    assert published == {"relay-1": [], "relay-2": [], "edge-1": ["8330"], "edge-2": ["8331"]}
    for name in ("edge-1", "edge-2"):
        address = f"127.0.0.1:{OF_DEVICES[name]}"
        assert services[name]["healthcheck"]["test"] == ["CMD", "deniable", "ready", "--address", address]
        assert services[name]["ulimits"] == {"nofile": MOST_CONNECTIONS + RESERVED_FILES}
        assert services[name]["command"][:3] == ["edge", "--listen", f"0.0.0.0:{OF_DEVICES[name]}"]


@pytest.mark.slow
def test_secrets_are_created_once_each_for_its_own_service(
    services: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """They are where the collection file says; edges cannot read the secret of relays, nor relays the key."""
    folder = "/var/lib/deniable"
    held = {}
    for name in SECRETS:
        service = services[name]
        assert service["network_mode"] == "none"
        (program,) = service["command"]
        for _ in range(2):
            run = [sys.executable, "-c", program.replace(folder, str(tmp_path))]
            subprocess.run(run, check=True)
            held.setdefault(name, {each.name: each.read_bytes() for each in tmp_path.iterdir()})
        (mounted,) = service["volumes"]
        kind, _, _ = name.partition("-")
        assert (mounted["source"], mounted["target"]) == (kind, folder)
        for number in (1, 2):
            (read,) = services[f"{kind}-{number}"]["volumes"]
            assert (read["source"], read["target"], read["read_only"]) == (kind, folder, True)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == held["edge-key"]
    text = (FOLDER / "deniable.yaml").read_text(encoding="utf-8").replace(f"{folder}/", f"{tmp_path}/")
    (tmp_path / "deniable.yaml").write_text(text, encoding="utf-8")
    configuration = load(tmp_path / "deniable.yaml", environment={})
    RelayKeys(relay_secret(configuration, creates=False))
    assert configuration.edge is not None
    open_signing_key(tmp_path / "never", Path(str(configuration.edge.signing_key_file)))


def test_prometheus_takes_its_file_and_scrapes_every_process(tmp_path: Path) -> None:
    promtool = tool("promtool", "it is in Debian's package prometheus", "NO_PROMTOOL")
    text = (FOLDER / "prometheus.yml").read_text()
    there = tmp_path / "prometheus.yml"
    there.write_text(text.replace(PROMETHEUS_FOLDER, str(DEPLOY / "monitoring" / "prometheus")))
    checked = subprocess.run([promtool, "check", "config", there], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert len(re.findall(r"\d+ rules found", checked.stdout)) == 2
    (job,) = YAML(typ="safe").load(text)["scrape_configs"]
    assert [each["targets"] for each in job["static_configs"]] == [
        [f"{name}:9100" for name in NAMES],
        [f"{name}:{port}" for name, port in OF_DEVICES.items()],
    ]


def test_alertmanager_takes_its_file() -> None:
    amtool = tool("amtool", "it is in Debian's package prometheus-alertmanager", "NO_AMTOOL")
    checked = subprocess.run(
        [amtool, "check-config", FOLDER / "alertmanager.yml"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_grafana_finds_the_dashboards_and_one_data_source(services: dict[str, dict[str, Any]]) -> None:
    (provider,) = YAML(typ="safe").load(FOLDER / "grafana" / "dashboards.yaml")["providers"]
    (mounted,) = services["grafana"]["volumes"]
    assert provider["options"]["path"] == mounted["target"]
    assert mounted["source"].endswith("/grafana")
    (source,) = YAML(typ="safe").load(FOLDER / "grafana" / "datasource.yaml")["datasources"]
    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    assert "prometheus" in services


@pytest.mark.slow
def test_yaml_is_well_kept() -> None:
    """All files of deploy and CI's, by yamllint; rules are in `.yamllint.yaml`."""
    checked = subprocess.run(
        [sys.executable, "-m", "yamllint", "--strict", "deploy"],
        cwd=DEPLOY.parent,
        capture_output=True,
        text=True,
    )
    assert (checked.returncode, checked.stdout) == (0, "")
