"""Every command on a broker that requires authentication, by password and by certificate."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.brokers.secured.deployments import by_certificate, by_password
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all]

FLIGHTS = 300  # per producer


def new_folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


def wait_for_all_reports(watching: "subprocess.Popen[bytes]") -> None:
    """Wait until final estimates contain the reports of both producers."""
    reports = 0
    assert watching.stdout is not None
    while reports < 2 * FLIGHTS:
        estimate = json.loads(watching.stdout.readline())
        reports += estimate["reports"] if estimate["final"] else 0
    assert reports == 2 * FLIGHTS


def test_every_command_works(secured_broker: SecuredBroker, tmp_path: Path, topic_prefix: str) -> None:
    """No command shows the password, neither in its arguments nor in its output.

    In one deployment, one half connects by password and the other by certificate.
    """
    password = by_password(secured_broker, new_folder(tmp_path, "password"), topic_prefix)
    certificate = by_certificate(secured_broker, new_folder(tmp_path, "certificate"), topic_prefix)
    outputs = []

    def run(deployment: Deployment, *arguments: str, given: bytes = b"") -> str:
        ended = deployment.run(*arguments, given=given)
        assert ended.returncode == 0, f"{arguments}: {ended.stderr}"
        outputs.append(ended.stdout + ended.stderr)
        return ended.stdout

    run(password, "topics", "create")
    with (
        password.started("worker.log", "aggregate", "--web-port", "0") as worker,
        certificate.started("worker.log", "aggregate", "--web-port", "0") as other_worker,
        password.piped("watch", "carrier") as watching,
        certificate.piped("watch", "carrier") as other_watching,
    ):
        lines = b"carrier\n" + b"AA\n" * FLIGHTS
        for each in (password, certificate):
            run(each, "topics", "check")
        for each in (password, certificate):
            each.wait_until_ready("worker.log")
        for each in (password, certificate):
            run(each, "produce", "carrier", "--field", "carrier", "--no-clients", given=lines)
        wait_for_all_reports(watching)
        wait_for_all_reports(other_watching)
        assert run(password, "replay") == "difference: 0\n"
        assert str(2 * FLIGHTS) in run(password, "rollup", "carrier", "--from", "0", "--json")
        assert run(password, "inspect", "reports", "--tail", "1")
        arguments = b"".join(Path(f"/proc/{each.pid}/cmdline").read_bytes() for each in (worker, watching))
    file = password.folder / "deniable.yaml"
    head, _, _ = file.read_text().replace("revision: 1", "revision: 2").partition("  - {name: place")
    file.write_text(head)
    run(password, "retire", "place")
    logs = [password.output("worker.log"), certificate.output("worker.log")]
    secret = str(secured_broker.admin_settings()["sasl_plain_password"])
    assert all(secret not in each for each in (*outputs, *logs, arguments.decode()))
    assert all("Traceback" not in each for each in (*outputs, *logs))
    assert wait_until(lambda: worker.poll() is not None and other_worker.poll() is not None)
