"""What `produce` and `topics create` refuse once a broker answers, and what they say last."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.deployments import Deployment

pytestmark = pytest.mark.broker

PRODUCE = ("produce", "carrier", "--field", "carrier", "--no-clients")


@pytest.fixture
def deployment(broker: str, topic_prefix: str, tmp_path: Path) -> Deployment:
    return Deployment(tmp_path, broker, topic_prefix)


def test_unsendable_packs_are_reported_after_sent_ones(deployment: Deployment) -> None:
    """The new secret is announced once, and the error comes last."""
    deployment.create_topics()
    clients = ("produce", "carrier", "--field", "carrier", "--clients", "who")
    nothing = deployment.run(*clients, given=b"carrier,who\nAA,\n")
    lines = nothing.stderr.splitlines()
    assert (nothing.returncode, nothing.stdout, len(lines)) == (1, "", 4)
    assert "created a new secret" in lines[0]
    assert lines[1] == "line 2 skipped: its client is missing, empty or not text"
    assert lines[2] == "0 reports sent in 0 packs (0 reports/s); 1 line skipped"
    assert lines[3] == (
        "Error: no line of the input can be used; are --field carrier, --clients who and --format right?"
    )
    assert (deployment.folder / ".deniable").stat().st_mode & 0o777 == 0o700

    broken = deployment.run(*PRODUCE, given=b"carrier\n" + b"AA\n" * 10_000 + b'"AA\n')
    lines = broken.stderr.splitlines()
    assert (broken.returncode, broken.stdout, len(lines)) == (1, "", 2)
    assert lines[0].startswith("10000 reports sent in ")
    assert lines[1].startswith("Error: line 10002 of the input: a quote in it does not close, ")

    some = deployment.run(
        *clients, given=b"carrier,who\n" + b"".join(b"AA,%d\n" % n for n in range(10)) + b"AA,\n"
    )
    assert (some.returncode, some.stdout) == (0, "")
    assert some.stderr.endswith("; 1 line skipped\n")

    empty = deployment.run(*PRODUCE, given=b"carrier\n")
    assert (empty.returncode, empty.stderr.startswith("0 reports sent in 0 packs")) == (0, True)


def test_unusable_folder_is_one_line(deployment: Deployment) -> None:
    """A secret that others may read, and one that is none: neither file nor folder is touched further."""
    deployment.create_topics()
    folder = deployment.folder / "shared"
    folder.mkdir()
    secret = folder / "secret"
    secret.write_bytes(bytes(32))
    secret.chmod(0o644)
    options = (*PRODUCE, "--data-dir", "shared")
    refused = deployment.run(*options, given=b"carrier\nAA\n")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "Error: secret file shared/secret: mode must be 0600 or stricter, got 0644; run: chmod 600 "
        "shared/secret\n"
    )
    secret.chmod(0o600)
    secret.write_bytes(b"short")
    refused = deployment.run(*options, given=b"carrier\nAA\n")
    assert refused.stderr.startswith("Error: secret file shared/secret: must have 32 to ")
    assert [file.name for file in folder.iterdir()] == ["secret"]


def test_a_closed_stdin_is_reported(deployment: Deployment) -> None:
    deployment.create_topics()
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "deploy", *PRODUCE],
        cwd=deployment.folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "Error: the input cannot be read: Bad file descriptor"
    assert "Traceback" not in ended.stderr


def test_other_partition_number_is_created_once_and_stays(deployment: Deployment) -> None:
    """What the file must say is the last word, since nothing else runs before it does."""
    prefix = deployment.prefix
    made = deployment.run("topics", "create", "--partitions", "3")
    assert (made.returncode, len(made.stdout.split())) == (0, 7)
    assert made.stderr.splitlines() == [
        "7 topics created",
        "they have 3 partitions, but deniable.yaml says 2: set kafka.partitions: 3 in it, "
        "or all other commands refuse the topics",
    ]
    for arguments in (["create"], ["check"], ["create", "--partitions", "2"]):
        refused = deployment.run("topics", *arguments)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.splitlines()[0] == (
            f"Error: topic {prefix}reports has 3 partitions, not 2, and the number must never change: "
            "use 3 (kafka.partitions), or another kafka.topic_prefix"
        )
