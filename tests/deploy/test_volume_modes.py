"""A producer in a pod starts again on the volume that the kubelet has mounted again."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.deploy.overlays import Overlay

PRODUCER = """
import logging, sys
from pathlib import Path
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.config.settings.allowance import Allowance
from deniable.producers.transport.connection import DeliveryError
from deniable.producers.producer import Producer
from deniable.producers.config import ProducerConfig

logging.basicConfig(level=logging.WARNING)
carrier = Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True)
producer = Producer(ProducerConfig(
    allowances=(Allowance(carrier, None),), bootstrap_servers="127.0.0.1:9", topic="reports", partitions=4,
    data_dir=Path(sys.argv[1]), connect_seconds=0.1, block_milliseconds=10_000,
))
print(producer.report("carrier", ["AA"] * 5, None).stored, "stored")
try:
    producer.close(timeout=0.1)
except DeliveryError as error:
    print("kept")
"""


def mount(root: Path, group: int, policy: str) -> None:
    """Do to a volume what the kubelet does at each mount.

    Source: Kubernetes, pkg/volume/volume_linux.go, `SetVolumeOwnership`.
    """
    as_root_must_be = 0o660 | 0o110 | stat.S_ISGID
    now = root.stat()
    matches = now.st_gid == group and now.st_mode & as_root_must_be == as_root_must_be
    if policy == "OnRootMismatch" and matches:
        return
    for path in (*root.rglob("*"), root):  # the root last
        os.chown(path, -1, group)
        added = as_root_must_be if path.is_dir() else 0o660
        path.chmod(stat.S_IMODE(path.stat().st_mode) | added)


def start(folder: Path) -> subprocess.CompletedProcess[str]:
    """A producer without a broker; in a process of its own, for kafka-python leaves refused sockets open."""
    command = [sys.executable, "-W", "ignore", "-c", PRODUCER, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def pod(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """The producer's, and its data_dir below the mount of its volume."""
    overlay = Overlay("small", tmp_path_factory.mktemp("small"))
    template = overlay.one("StatefulSet", "deniable-producer")["spec"]["template"]["spec"]
    mounts = template["containers"][0]["volumeMounts"]
    (path,) = (each["mountPath"] for each in mounts if each["name"] == "state")
    return template["securityContext"], Path(overlay.configuration.producer.data_dir).relative_to(path)


@pytest.mark.all
def test_producer_starts_again_when_its_volume_is_mounted_again(
    pod: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    """And nobody but its user can write into its folder: a folder that is the mount itself would be open."""
    rights, below = pod
    for starts in (1, 2):
        mount(tmp_path, os.getgid(), rights["fsGroupChangePolicy"])
        run = start(tmp_path / below)
        assert run.stdout.splitlines() == ["5 stored", "kept"], run.stderr
        assert ("created a new secret" in run.stderr) == (starts == 1)
        assert "others may replace" not in run.stderr


@pytest.mark.all
def test_other_group_policy_would_break_a_restart(pod: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    """What is done to the volume here is what the policy protects from."""
    _, below = pod
    mount(tmp_path, os.getgid(), "Always")
    assert start(tmp_path / below).returncode == 0
    mount(tmp_path, os.getgid(), "Always")
    assert "mode must be 0600 or stricter, got 0660; run: chmod 600" in start(tmp_path / below).stderr
