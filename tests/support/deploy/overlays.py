"""Render the Kubernetes overlays by kustomize."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from deniable.config.file import Configuration, load
from tests.support.needed import tool
from tests.support.paths import REPOSITORY

FOLDER = REPOSITORY / "deploy" / "kubernetes"
WORKLOADS = ("Deployment", "StatefulSet", "Job")
#: In their order; the last two are alternatives. An overlay has the steps that it has folders for.
STEPS = ("topics", "aggregator", "relay", "edge", "producer", "replicas")


def render(folder: Path) -> list[dict[str, Any]]:
    """Return the documents of `kustomize build` for a folder."""
    kustomize = tool("kustomize", "go install sigs.k8s.io/kustomize/kustomize/v5", "NO_KUSTOMIZE")
    built = subprocess.run([kustomize, "build", folder], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return list(YAML(typ="safe").load_all(built.stdout))


class Overlay:
    """Return the documents of all steps, by kind and name."""

    def __init__(self, name: str, folder: Path) -> None:
        folders = {step: FOLDER / "overlays" / name / step for step in STEPS}
        self.steps = {step: render(each) for step, each in folders.items() if each.is_dir()}
        self.all: list[dict[str, Any]] = []
        for document in (each for documents in self.steps.values() for each in documents):
            if document not in self.all:  # the collection file is in each step
                self.all.append(document)
        (held,) = (each for each in self.of("ConfigMap") if "deniable.yaml" in each["data"])
        self.config_map: str = held["metadata"]["name"]
        (folder / "deniable.yaml").write_text(held["data"]["deniable.yaml"])
        self.configuration: Configuration = load(folder / "deniable.yaml", environment=self.environment())

    def environment(self) -> dict[str, str]:
        """Return the environment variables of a worker."""
        pod = self.one("Deployment", "deniable-aggregator")["spec"]["template"]["spec"]
        return {each["name"]: each["value"] for each in pod["containers"][0]["env"]}

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.all if each["kind"] == kind]

    def one(self, kind: str, name: str) -> dict[str, Any]:
        (found,) = (each for each in self.of(kind) if each["metadata"]["name"] == name)
        return found

    def pods(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Return the name, pod and only container of every workload."""
        for kind in WORKLOADS:
            for each in self.of(kind):
                pod = each["spec"]["template"]["spec"]
                (container,) = pod["containers"]
                yield each["metadata"]["name"], pod, container
