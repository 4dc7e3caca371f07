"""What `produce` and `topics create` refuse once a broker answers, and what they say last."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.deployments import Deployment

pytestmark = pytest.mark.broker

NO_WORKER = "whether the workers count carrier with these parameters cannot be known: "
NO_OTHER = "reports of carrier cannot show a wrong column, "
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
    assert (nothing.returncode, nothing.stdout, len(lines)) == (1, "", 6)
    assert lines[0].startswith(NO_WORKER)
    assert lines[1].startswith(NO_OTHER)
    assert "created a new secret" in lines[2]
    assert lines[3].startswith("line 2 ")
    assert lines[4].startswith("0 reports ")
    assert lines[5].startswith("Error: ")
    assert (deployment.folder / ".deniable").stat().st_mode & 0o777 == 0o700

    broken = deployment.run(*PRODUCE, given=b"carrier\n" + b"AA\n" * 10_000 + b'"AA\n')
    # A busy machine waits.
    lines = [line for line in broken.stderr.splitlines() if not line.startswith("waiting ")]
    assert (broken.returncode, broken.stdout, len(lines)) == (1, "", 4), broken.stderr
    assert lines[0].startswith(NO_WORKER)
    assert lines[1].startswith(NO_OTHER)
    assert lines[2].startswith("10000 reports ")
    assert lines[3].startswith("Error: line 10002 of the input: ")

    some = deployment.run(
        *clients, given=b"carrier,who\n" + b"".join(b"AA,%d\n" % n for n in range(10)) + b"AA,\n"
    )
    assert (some.returncode, some.stdout) == (0, "")
    assert "; 1 line " in some.stderr

    empty = deployment.run(*PRODUCE, given=b"carrier\n")
    assert (empty.returncode, "\n0 reports " in empty.stderr) == (0, True)


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
    unknown, column, error = refused.stderr.splitlines()
    assert unknown.startswith(NO_WORKER)
    assert column.startswith(NO_OTHER)
    assert error.startswith("Error: secret file shared/secret: ")
    secret.chmod(0o600)
    secret.write_bytes(b"short")
    refused = deployment.run(*options, given=b"carrier\nAA\n")
    assert refused.stderr.splitlines()[-1].startswith("Error: secret file shared/secret: ")
    assert [file.name for file in folder.iterdir()] == ["secret"]


def test_a_closed_stdin_is_reported(deployment: Deployment) -> None:
    deployment.create_topics()
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "deniable", *PRODUCE],
        cwd=deployment.folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("Error: the input ")
    assert "Traceback" not in ended.stderr


def test_other_partition_number_is_created_once_and_stays(deployment: Deployment) -> None:
    """What the file must say is the last word, since nothing else runs before it does."""
    prefix = deployment.prefix
    made = deployment.run("topics", "create", "--partitions", "3")
    assert (made.returncode, len(made.stdout.split())) == (0, 7)
    created, warning = made.stderr.splitlines()
    assert created.startswith("7 topics ")
    assert "kafka.partitions: 3" in warning
    for arguments in (["create"], ["check"], ["create", "--partitions", "2"]):
        refused = deployment.run("topics", *arguments)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith(f"Error: topic {prefix}reports has 3 partitions, ")
