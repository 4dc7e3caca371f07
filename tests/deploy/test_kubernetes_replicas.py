"""The step `replicas`: producers without a volume, with budgets in PostgreSQL and a shared secret."""

import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from deniable.config.file import Configuration, load
from deniable.producers.opening.from_file import producer_config
from deniable.protocol.secrets.secret import read_secret
from tests.support.deploy.overlays import Overlay

NAME = "deniable-producer"


@pytest.fixture(scope="module", params=["small", "large"])
def overlay(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Overlay:
    return Overlay(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def pod(overlay: Overlay) -> dict[str, Any]:
    template: dict[str, Any] = overlay.one("Deployment", NAME)["spec"]["template"]["spec"]
    return template


def configuration(overlay: Overlay, folder: Path) -> Configuration:
    """Return what a pod reads: the collection file, and its environment over it."""
    (container,) = overlay.one("Deployment", NAME)["spec"]["template"]["spec"]["containers"]
    file = folder / "deniable.yaml"
    file.write_text(overlay.one("ConfigMap", overlay.config_map)["data"]["deniable.yaml"])
    given = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    return load(file, environment=given)


def mounts(container: dict[str, Any]) -> dict[str, str]:
    """Return the folder of each volume."""
    return {each["name"]: each["mountPath"] for each in container["volumeMounts"]}


def volumes(pod: dict[str, Any]) -> dict[str, Any]:
    return {each.pop("name"): each for each in [dict(each) for each in pod["volumes"]]}


@pytest.mark.slow
def test_it_differs_from_the_step_producer_in_volumes_secret_and_database_only(
    overlay: Overlay, pod: dict[str, Any]
) -> None:
    alone = overlay.one("StatefulSet", NAME)["spec"]["template"]["spec"]
    (theirs,), (ours,) = alone["containers"], pod["containers"]
    assert {key for key in ours if ours[key] != theirs[key]} == {"env", "volumeMounts"}
    assert {key for key in pod if pod[key] != alone.get(key)} == {"containers", "initContainers", "volumes"}
    spec = overlay.one("Deployment", NAME)["spec"]
    assert spec["replicas"] == 2
    assert "volumeClaimTemplates" not in spec
    assert volumes(pod)["state"] == {"emptyDir": {"sizeLimit": "1Gi"}}


@pytest.mark.slow
def test_database_is_verified_and_its_password_only_referenced(
    overlay: Overlay, pod: dict[str, Any], tmp_path: Path
) -> None:
    database = producer_config(configuration(overlay, tmp_path), connects=False).budget_store
    assert database is not None
    url = urlsplit(database.url)
    given = {name: value for name, (value,) in parse_qs(url.query).items()}
    (container,) = pod["containers"]
    authority = Path(given["sslrootcert"])
    assert given["sslmode"] == "verify-full"
    assert mounts(container)["budgets-ca"] == str(authority.parent)
    secret = volumes(pod)["budgets-ca"]["secret"]
    cluster, _, _ = str(url.hostname).partition("-rw")
    assert (secret["secretName"], secret["items"][0]["path"]) == (f"{cluster}-ca", authority.name)
    password = next(each for each in container["env"] if each["name"] == "PGPASSWORD")
    assert password["valueFrom"] == {"secretKeyRef": {"name": f"{cluster}-{url.username}", "key": "password"}}
    policy = overlay.one("NetworkPolicy", "deniable-budgets")["spec"]
    assert policy["policyTypes"] == ["Egress"]
    (rule,) = policy["egress"]
    assert rule["to"] == [{"podSelector": {"matchLabels": {"cnpg.io/cluster": cluster}}}]
    assert rule["ports"] == [{"protocol": "TCP", "port": url.port}]
    labels = overlay.one("Deployment", NAME)["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()


@pytest.mark.slow
def test_secret_is_copied_so_that_only_its_user_can_read_it(
    overlay: Overlay, pod: dict[str, Any], tmp_path: Path
) -> None:
    """The kubelet lets the group of the pod read what it mounts; a producer refuses that."""
    (copies,), (container,) = pod["initContainers"], pod["containers"]
    assert volumes(pod)["given-secret"]["secret"]["secretName"] == "deniable-secret"
    given, kept = tmp_path / "given", tmp_path / "kept"
    given.mkdir()
    kept.mkdir()
    (given / "secret").write_bytes(bytes(range(32)))
    (given / "secret").chmod(0o440)
    folders = mounts(copies)
    program = copies["args"][0].replace(folders["given-secret"], str(given))
    assert copies["command"] == ["python", "-c"]
    for _ in range(2):  # it runs again when the node starts again
        program = program.replace(folders["secret"], str(kept))
        subprocess.run([sys.executable, "-c", program], check=True)
        read_secret(kept / "secret")
    path = configuration(overlay, tmp_path).producer.secret_file
    assert path == f"{mounts(container)['secret']}/secret"
    assert folders["secret"] == mounts(container)["secret"]
