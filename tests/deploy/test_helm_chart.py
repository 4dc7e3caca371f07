"""The Helm chart: each step is what kustomize makes of the same files, but for what its template lists."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.support.deploy.overlays import FOLDER, STEPS, render
from tests.support.needed import tool

NAMES = ("small", "large", "devices")
#: How the two ways name the collection file's ConfigMap: after its content, and after the step.
CONFIG_MAP = re.compile(rf"deniable-({'|'.join(STEPS)}|[a-z0-9]{{10}})")

pytestmark = [pytest.mark.slow]


def helm(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    program = tool("helm", "go install helm.sh/helm/v3/cmd/helm", "NO_HELM")
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def template(*values: str) -> "subprocess.CompletedProcess[str]":
    settings = [part for value in values for part in ("--set", value)]
    return helm("template", "x", FOLDER, "--namespace", "deniable", "--kube-version", "1.37.0", *settings)


def rendered(*values: str) -> list[dict[str, Any]]:
    made = template(*values)
    assert made.returncode == 0, made.stderr
    return list(YAML(typ="safe").load_all(made.stdout))


def comparable(documents: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return documents by kind and name, without what differs on purpose."""
    found = {}
    for document in documents:
        if document["kind"] == "ConfigMap" and "deniable.yaml" in document["data"]:
            document["metadata"]["name"] = "deniable"
        for meta in (document["metadata"], document.get("spec", {}).get("template", {}).get("metadata", {})):
            meta.pop("annotations", None) if document["kind"] != "Ingress" else None
        pod = document.get("spec", {}).get("template", {}).get("spec", {})
        for volume in pod.get("volumes", ()):
            if "configMap" in volume:
                assert CONFIG_MAP.fullmatch(volume["configMap"]["name"])
                volume["configMap"]["name"] = "deniable"
        found[document["kind"], document["metadata"]["name"]] = document
    assert len(found) == len(documents)
    return found


@pytest.mark.parametrize("overlay", NAMES)
def test_chart_and_kustomize_make_the_same_of_each_step(overlay: str) -> None:
    for step in STEPS:
        folder = FOLDER / "overlays" / overlay / step
        if not folder.is_dir():
            assert template(f"overlay={overlay}", f"step={step}").returncode == 1
            continue
        made = comparable(rendered(f"overlay={overlay}", f"step={step}"))
        assert made == comparable(render(folder)), step


def test_lint_finds_nothing() -> None:
    linted = helm("lint", "--strict", FOLDER)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_values_reach_what_they_name(tmp_path: Path) -> None:
    file = tmp_path / "deniable.yaml"
    text = (FOLDER / "overlays" / "small" / "settings" / "deniable.yaml").read_text()
    file.write_text(text.replace("partitions: 4", "partitions: 12").replace("[AA, B6", '["A,{{ x }}", B6'))
    own = "image=registry.example/own:2", "minWorkers=3", "step=aggregator"
    settings = [part for value in own for part in ("--set", value)]
    made = helm(
        *("template", "x", FOLDER, "--kube-version", "1.37.0", "--namespace", "n"),
        *(*settings, "--set-file", f"collectionFile={file}"),
    )
    assert made.returncode == 0, made.stderr
    found = {
        (each["kind"], each["metadata"]["name"]): each for each in YAML(typ="safe").load_all(made.stdout)
    }
    assert found["ConfigMap", "deniable-aggregator"]["data"] == {"deniable.yaml": file.read_text()}
    scaled = found["ScaledObject", "deniable-aggregator"]["spec"]
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (3, 12)
    (container,) = found["Deployment", "deniable-aggregator"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/own:2"
    assert {each["metadata"]["namespace"] for each in found.values()} == {"n"}
    file.write_text(text.replace("topic_prefix: deniable-", "topic_prefix: other-"))
    refused = helm(
        "template", "x", FOLDER, "--kube-version", "1.37.0", "--set-file", f"collectionFile={file}"
    )
    assert refused.returncode == 1
    assert "kafka.topic_prefix" in refused.stderr


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("minWorkers=5", "minWorkers must be at most kafka.partitions of the collection file (4), got 5"),
        ("minWorkers=-1", "/minWorkers"),
        ("image=own image", "/image"),
        ("step=null", "'step'"),
        ("collectionFile=deniable.yaml", "--set-file collectionFile=deniable.yaml"),
        ("collectionFile=kafka: 7", "kafka of the collection file must be a section, got 7"),
    ],
)
def test_values_that_fit_nothing_are_refused_by_name(value: str, named: str) -> None:
    refused = template("step=aggregator", value)
    assert refused.returncode == 1
    assert named in refused.stderr


@pytest.mark.parametrize(
    ("stated", "got"), [("", "null"), ("partitions: many", '"many"'), ("partitions: 0", "0")]
)
def test_number_of_partitions_is_never_left_to_strimzi(tmp_path: Path, stated: str, got: str) -> None:
    """It must not change later, and a topic without it would get another one than workers expect."""
    file = tmp_path / "deniable.yaml"
    text = (FOLDER / "overlays" / "small" / "settings" / "deniable.yaml").read_text()
    file.write_text(text.replace("partitions: 4", stated))
    refused = helm(
        "template", "x", FOLDER, "--kube-version", "1.37.0", "--set-file", f"collectionFile={file}"
    )
    assert refused.returncode == 1
    assert (
        f"kafka.partitions of the collection file must be an integer of at least 1, got {got}"
        in refused.stderr
    )


def test_what_a_release_owns_is_safe_to_upgrade_and_uninstall() -> None:
    """Topics outlive it, and the Job is made anew; nothing else has a hook."""
    for document in rendered("step=topics"):
        noted = document["metadata"].get("annotations", {})
        assert ("helm.sh/resource-policy" in noted) is (document["kind"] == "KafkaTopic")
        assert ("helm.sh/hook" in noted) is (document["kind"] == "Job")
