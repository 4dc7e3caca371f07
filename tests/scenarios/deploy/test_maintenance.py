"""Ledgers that are lost, retired or of another log: through the commands, on a real broker."""

import re
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all]

FLIGHTS = 600


@pytest.fixture
def deployment(broker: str, topic_prefix: str, tmp_path: Path) -> Deployment:
    """A deployment whose worker has counted some reports and ended."""
    deployment = Deployment(tmp_path, broker, topic_prefix)
    deployment.create_topics()
    (tmp_path / "flights.csv").write_text("carrier\n" + "AA\n" * FLIGHTS, encoding="utf-8")
    with deployment.running("first.log", "aggregate", "--web-port", "0"):
        send(deployment)
        compare(deployment)
    return deployment


def produce(deployment: Deployment) -> CompletedProcess[str]:
    options = ["--input", "flights.csv", "--field", "carrier", "--no-clients"]
    return deployment.run("produce", "carrier", *options)


def send(deployment: Deployment) -> None:
    sent = produce(deployment)
    assert sent.returncode == 0, sent.stderr


def compare(deployment: Deployment, *options: str) -> str:
    """Output of a replay that finds no difference."""
    replayed = deployment.run("replay", *options)
    assert (replayed.returncode, replayed.stdout) == (0, "difference: 0\n"), replayed.stderr
    return replayed.stderr


def delete(deployment: Deployment, topic: str) -> None:
    with KafkaAdminClient(bootstrap_servers=deployment.servers) as admin:
        admin.delete_topics([deployment.prefix + topic])
        assert wait_until(lambda: deployment.prefix + topic not in admin.list_topics(), 120)


def refusal(deployment: Deployment) -> str:
    """Message of a worker that must end."""
    ended = deployment.run("aggregate", "--web-port", "0")
    assert ended.returncode == 3, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


def edit(deployment: Deployment, *replacements: tuple[str, str]) -> None:
    file = deployment.folder / "deniable.yaml"
    text = file.read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def test_deleted_state_is_rebuilt_from_the_log(deployment: Deployment) -> None:
    delete(deployment, "state")
    again = deployment.run("topics", "create")
    assert (again.returncode, again.stdout) == (0, f"{deployment.prefix}state\n")
    assert "1 topic created\nnot ready: topic" in again.stderr
    assert "then run deniable replay --rebuild" in again.stderr
    checked = deployment.run("topics", "check")
    assert checked.returncode == 1
    assert "then run deniable replay --rebuild" in checked.stderr
    assert "it was deleted, or a rebuild was interrupted. To count again" in refusal(deployment)
    output = compare(deployment, "--rebuild")
    assert "records counted again" in output
    once_more = deployment.run("replay", "--rebuild")
    assert once_more.returncode == 1
    assert "no ledger of" in once_more.stderr
    with deployment.running("second.log", "aggregate", "--web-port", "0"):
        send(deployment)
        compare(deployment)


@pytest.mark.nightly
def test_worker_reports_lost_ledgers_and_discards_them(
    deployment: Deployment,
) -> None:
    with deployment.running("second.log", "aggregate", "--web-port", "0") as worker:
        send(deployment)
        compare(deployment)
        delete(deployment, "state")
        assert deployment.run("topics", "create").returncode == 0
        send(deployment)
        assert worker.wait(90) == 3
    assert (
        "it was deleted, or a rebuild was interrupted. To count again"
        in (deployment.folder / "second.log").read_text()
    )
    assert deployment.run("topics", "check").returncode == 1
    assert "records counted again" in compare(deployment, "--rebuild")
    with deployment.running("third.log", "aggregate", "--web-port", "0"):
        send(deployment)
        compare(deployment)


@pytest.mark.nightly
def test_recreated_log_is_not_counted_into_old_state(deployment: Deployment) -> None:
    delete(deployment, "reports")
    again = deployment.run("topics", "create")
    assert (again.returncode, again.stdout) == (0, f"{deployment.prefix}reports\n")
    assert "1 topic created\nnot ready: " in again.stderr
    remedy = again.stderr.split("not ready: ")[1]
    assert "was deleted and recreated" in remedy
    assert deployment.run("topics", "check").stderr == f"Error: {remedy}"
    assert refusal(deployment).endswith(f"Error: {remedy}")


@pytest.mark.nightly
def test_recreated_log_ends_a_running_worker(deployment: Deployment) -> None:
    """Also if the new log has grown as long as the old one; a shorter one is found by its length."""
    with deployment.running("second.log", "aggregate", "--web-port", "0") as worker:
        deployment.wait_until_ready("second.log")
        compare(deployment)
        delete(deployment, "reports")
        deployment.create_topics()
        with KafkaProducer(bootstrap_servers=deployment.servers) as kafka:
            for number in range(200):
                kafka.send(f"{deployment.prefix}reports", b"no pack", partition=number % 2)
        assert worker.wait(90) == 3
    assert " recreated" in (deployment.folder / "second.log").read_text()


@pytest.mark.nightly
def test_newer_rows_end_a_worker_before_counting(deployment: Deployment) -> None:
    """As after the rollback of a release with a higher version."""
    with KafkaProducer(bootstrap_servers=deployment.servers) as kafka:
        kafka.send(f"{deployment.prefix}state", key=b"P", value=b"\x02" + bytes(32), partition=0).get(10)
    assert f"partition 0 of {deployment.prefix}state: row version " in refusal(deployment)


def test_collection_ends_only_by_command(deployment: Deployment) -> None:
    accepted = deployment.run("replay", "--accept-loss")
    nothing = "nothing is lost: every ledger's position is within the log\n"
    assert (accepted.returncode, accepted.stdout) == (0, nothing)
    edit(deployment, ("epsilon: 3.0", "epsilon: 2.0"))
    mistyped = deployment.run("retire", "carrier")
    assert mistyped.returncode == 1
    assert "revision" in mistyped.stderr
    edit(deployment, ("revision: 1", "revision: 2"), ("epsilon: 2.0", "epsilon: 3.0"))
    unknown = deployment.run("retire", "carriers")
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("Error: no collection 'carriers' ")
    kept = deployment.run("retire", "carrier")
    assert kept.returncode == 1
    assert "to end it, first remove it from the file" in kept.stderr
    edit(deployment, ("epsilon: 3.0", "epsilon: 2.0"))
    assert "deniable retire carrier" in refusal(deployment)
    retired = deployment.run("retire", "carrier")
    assert retired.returncode == 0, retired.stderr
    assert retired.stdout.count("'carrier' is retired from offset") == 2
    with deployment.running("second.log", "aggregate", "--web-port", "0"):
        # Until the worker has published what it counts, produce refuses and sends nothing.
        assert wait_until(lambda: produce(deployment).returncode == 0, 60), produce(deployment).stderr
        compare(deployment)
    edit(deployment, ("revision: 2", "revision: 1"))
    assert "revision" in refusal(deployment)


@pytest.mark.nightly
def test_retired_collection_stops_counting_in_a_running_worker(deployment: Deployment) -> None:
    """The worker still has the previous file, as does the producer."""
    new = (
        (deployment.folder / "deniable.yaml")
        .read_text(encoding="utf-8")
        .replace("epsilon: 3.0", "epsilon: 2.0")
        .replace("revision: 1", "revision: 2")
    )
    (deployment.folder / "new.yaml").write_text(new, encoding="utf-8")
    gone = new.replace("name: carrier", "name: airline")
    (deployment.folder / "gone.yaml").write_text(gone, encoding="utf-8")
    with deployment.running("second.log", "aggregate", "--web-port", "0"):
        deployment.wait_until_ready("second.log")
        page = deployment.address("second.log")
        first, second = (
            deployment.run("retire", "carrier", "--config", f"{x}.yaml") for x in ("new", "gone")
        )
        assert (first.returncode, second.returncode) == (0, 0), second.stderr
        assert first.stdout.startswith("partition 0: 'carrier' is retired from offset ")
        assert second.stdout == first.stdout
        send(deployment)
        compare(deployment)
        with closing(HTTPConnection(page.split("/")[2], timeout=60)) as connection:
            connection.request("GET", "/metrics")
            metrics = connection.getresponse().read().decode()
    assert re.search(
        r'^deniable_packs_rejected_total\{reason="unknown_collection"\} [1-9]', metrics, re.MULTILINE
    )
    assert '\ndeniable_reports_total{collection="carrier",result="counted"} 0.0\n' in metrics
