"""The overlay `devices`: edges behind a proxy, relays, and the secrets of both."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from deniable.cluster.connection.groups import RELAYS
from deniable.config.file import load
from deniable.config.relay_secret import relay_secret
from deniable.deploy.services.relay.command import STOP_SECONDS
from deniable.edge.server import STOP_SECONDS as EDGE_STOP_SECONDS
from deniable.edge.signing_key import SigningKeyError, open_signing_key
from tests.support.deploy.overlays import Overlay

UPLOADS_PORT = 8330


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Overlay:
    return Overlay("devices", tmp_path_factory.mktemp("devices"))


def pod_of(overlay: Overlay, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the pod and its container."""
    (found,) = ((pod, container) for each, pod, container in overlay.pods() if each == name)
    return found


@pytest.mark.slow
def test_other_overlays_have_nothing_of_devices(tmp_path: Path) -> None:
    for name in ("small", "large"):
        other = Overlay(name, tmp_path)
        assert not other.configuration.takes_uploads
        names = {each["metadata"]["name"] for each in other.all}
        assert not [each for each in names if "edge" in each or "relay" in each or "uploads" in each]


@pytest.mark.slow
def test_edge_has_probes_and_time_to_stop(overlay: Overlay) -> None:
    pod, container = pod_of(overlay, "deniable-edge")
    (port,) = container["ports"]
    assert container["args"] == ["edge", "--reload-changes", "--listen", f"0.0.0.0:{UPLOADS_PORT}"]
    assert (port["name"], port["containerPort"]) == ("uploads", UPLOADS_PORT)
    for probe, path in (("startup", "/healthz"), ("liveness", "/healthz"), ("readiness", "/readyz")):
        assert container[f"{probe}Probe"]["httpGet"] == {"path": path, "port": port["name"]}
    *_, pause = container["lifecycle"]["preStop"]["exec"]["command"]
    assert pause == "import time; time.sleep(5)"
    # Connections first, then what is on its way to Kafka: each within the time for a stop.
    assert pod["terminationGracePeriodSeconds"] > 5 + 2 * EDGE_STOP_SECONDS


@pytest.mark.slow
def test_relay_has_time_to_stop_and_is_replaced_one_at_a_time(overlay: Overlay) -> None:
    pod, _ = pod_of(overlay, "deniable-relay")
    assert pod["terminationGracePeriodSeconds"] > max(STOP_SECONDS, RELAYS.session_seconds)
    spec = overlay.one("Deployment", "deniable-relay")["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert spec["replicas"] <= overlay.configuration.kafka.partitions


def test_two_edges_or_more_of_which_one_may_be_away(overlay: Overlay) -> None:
    scaled = overlay.one("HorizontalPodAutoscaler", "deniable-edge")["spec"]
    assert scaled["scaleTargetRef"]["name"] == "deniable-edge"
    assert 2 <= scaled["minReplicas"] < scaled["maxReplicas"]
    assert "replicas" not in overlay.one("Deployment", "deniable-edge")["spec"]
    for name in ("deniable-edge", "deniable-relay"):
        assert overlay.one("PodDisruptionBudget", name)["spec"]["maxUnavailable"] == 1


def test_only_the_proxy_and_prometheus_reach_edges(overlay: Overlay) -> None:
    policy = overlay.one("NetworkPolicy", "deniable-edge")["spec"]
    labels = overlay.one("Deployment", "deniable-edge")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["policyTypes"] == ["Ingress"]
    (rule,) = policy["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": UPLOADS_PORT}]
    proxy, prometheus = rule["from"]
    (others,) = overlay.one("NetworkPolicy", "deniable")["spec"]["ingress"]
    assert [prometheus] == others["from"]
    assert list(proxy) == ["namespaceSelector"]


def test_prometheus_finds_edges_under_the_job_of_the_others(overlay: Overlay) -> None:
    (monitor,) = overlay.of("ServiceMonitor")
    service = overlay.one("Service", "deniable-edge-metrics")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["jobLabel"] in service["metadata"]["labels"]
    (port,) = service["spec"]["ports"]
    assert (port["name"], port["targetPort"]) == (monitor["spec"]["endpoints"][0]["port"], "uploads")
    # Else each edge would be scraped twice.
    shared = overlay.one("Service", "deniable-metrics")["spec"]["ports"]
    names = {each["name"] for each in pod_of(overlay, "deniable-edge")[1]["ports"]}
    assert names.isdisjoint(each["targetPort"] for each in shared)
    for_proxies = overlay.one("Service", "deniable-edge")["spec"]["ports"]
    assert port["name"] not in {each["name"] for each in for_proxies}


def test_from_outside_only_the_protocol_is_reachable(overlay: Overlay) -> None:
    """Neither /metrics nor probes; and the proxy is the one whose X-Forwarded-For counts."""
    ingress = overlay.one("Ingress", "deniable-edge")["spec"]
    (rule,) = ingress["rules"]
    (path,) = rule["http"]["paths"]
    assert (path["path"], path["pathType"]) == ("/v1/", "Prefix")
    backend = path["backend"]["service"]
    (port,) = overlay.one("Service", backend["name"])["spec"]["ports"]
    assert backend["port"] == {"name": port["name"]}
    assert [each["hosts"] for each in ingress["tls"]] == [[rule["host"]]]
    section = overlay.configuration.edge
    assert section is not None
    assert section.trusted_proxies == 1


def new_relay_secret(file: Path) -> None:
    file.write_bytes(bytes(range(32)))


def new_key(file: Path) -> None:
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(pem)


@pytest.mark.parametrize(
    ("name", "secret", "create"),
    [
        ("deniable-relay", "deniable-relay-secret", new_relay_secret),
        ("deniable-edge", "deniable-edge-key", new_key),
    ],
)
def test_secret_is_copied_so_that_only_its_user_can_read_it(
    overlay: Overlay, name: str, secret: str, create: Callable[[Path], None], tmp_path: Path
) -> None:
    """The kubelet lets the group of the pod read what it mounts; edges and relays refuse that."""
    pod, container = pod_of(overlay, name)
    (copies,) = pod["initContainers"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    (item,) = volumes["given-secret"]["secret"]["items"]
    assert volumes["given-secret"]["secret"]["secretName"] == secret
    assert secret not in {each["metadata"]["name"] for each in overlay.of("KafkaUser")}, "Strimzi's own"
    given, kept = tmp_path / "given", tmp_path / "kept"
    given.mkdir()
    kept.mkdir()
    create(given / item["path"])
    (given / item["path"]).chmod(0o440)
    folders = {each["name"]: each["mountPath"] for each in copies["volumeMounts"]}
    program = copies["args"][0].replace(folders["given-secret"], str(given))
    assert copies["command"] == ["python", "-c"]
    for _ in range(2):  # it runs again when the node starts again
        subprocess.run([sys.executable, "-c", program.replace(folders["secret"], str(kept))], check=True)
    (mounted,) = (each for each in container["volumeMounts"] if each["name"] == "secret")
    assert mounted == {"name": "secret", "mountPath": folders["secret"], "readOnly": True}
    configuration = overlay.configuration
    assert configuration.edge is not None
    assert configuration.relay is not None
    if name == "deniable-edge":
        there = Path(str(configuration.edge.signing_key_file))
        assert there.parent == Path(folders["secret"])
        open_signing_key(tmp_path / "never", kept / there.name)
        with pytest.raises(SigningKeyError, match="0600"):
            open_signing_key(tmp_path / "never", given / item["path"])
    else:
        there = Path(str(configuration.relay.secret_file))
        assert there.parent == Path(folders["secret"])
        # The same file, where this machine has it.
        text = configuration.path.read_text(encoding="utf-8").replace(str(there), str(kept / there.name))
        (tmp_path / "deniable.yaml").write_text(text, encoding="utf-8")
        relay_secret(load(tmp_path / "deniable.yaml", environment=overlay.environment()), creates=False)
