"""A changed collection file is taken up by the same process, if a start would accept it; else it is named."""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from deniable.cluster.connection.probe import UnreachableError
from deniable.deploy.broker.child_processes import deniable_command, last_lines, spawn, stop
from deniable.deploy.services import reload as module
from deniable.deploy.services.reload import Reload, ReloadRefusedError, check_newer
from tests.support.deploy.collection_texts import WHOLE
from tests.support.deployments import Deployment
from tests.support.messages import PinMessages
from tests.support.processes import new_port, wait_until

REFUSED = "reload refused"


@pytest.fixture
def terminations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Signals that would stop the program."""
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    found: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
    signal.signal(signal.SIGTERM, lambda number, _: found.append(number))
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_file_is_refused_once_and_looked_at_again_while_kafka_is_away(
    tmp_path: Path, terminations: list[int]
) -> None:
    answers: list[Exception | int] = [ReloadRefusedError("lower"), *[UnreachableError("away")] * 3, 7]
    file, asked = tmp_path / "deniable.yaml", []

    def check() -> int:
        asked.append(file.read_text())
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    file.write_text("1")
    reload = Reload(file, check, watches=True)
    with capture_logs() as lines:
        reload.start()
        replace(file, "2")
        assert wait_until(lambda: len(lines) == 1)
        replace(file, "3")
        assert wait_until(lambda: len(terminations) == 1)
    reload.join()
    assert asked == ["2", "3", "3", "3", "3"]
    assert [(each["log_level"], each.get("reason")) for each in lines] == [
        ("error", "lower"),
        ("error", "away"),
        ("info", None),
    ]


def replace(file: Path, text: str) -> None:
    """Change a file at once, as Kubernetes does."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def test_without_watch_only_a_signal_counts(tmp_path: Path, terminations: list[int]) -> None:
    file = tmp_path / "deniable.yaml"
    reload = Reload(file, lambda: 2)
    reload.start()
    file.write_text("2")
    reload.join(0.05)
    assert (reload.is_alive(), terminations) == (True, [])
    os.kill(os.getpid(), signal.SIGHUP)
    assert wait_until(lambda: terminations == [signal.SIGTERM])
    reload.withdraw()
    reload.restart_if_due()  # would not return


def test_messages(pin_messages: PinMessages) -> None:
    check_newer((2, "a"), (2, "a"), "what relays take")
    check_newer((2, "a"), (3, "b"), "what relays take")
    pin_messages(
        {
            "another content under the same revision": lambda: check_newer(
                (2, "a"), (2, "b"), "what relays take"
            ),
            "a lower revision": lambda: check_newer((2, "a"), (1, "a"), "what relays take"),
        }
    )


@pytest.mark.slow
def test_an_edge_serves_a_new_list_from_the_same_process(tmp_path: Path) -> None:
    file, log, port = tmp_path / "deniable.yaml", tmp_path / "edge.log", new_port()
    text = f'kafka: {{bootstrap_servers: "127.0.0.1:9"}}\nedge: {{}}\n{WHOLE}'
    file.write_text(text)
    command = deniable_command("edge", "--config", str(file), "--listen", f"127.0.0.1:{port}")

    def revision() -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/collections", timeout=60) as answer:
            return int(json.loads(json.load(answer)["signed"])["revision"])

    def serves(number: int) -> bool:
        try:
            return revision() == number
        except OSError:
            return False

    edge = spawn(command, log)
    try:
        assert wait_until(lambda: "public key: " in last_lines(log, 100), 120), last_lines(log)
        file.write_text(text.replace("epsilon:", "reports_per_window: 2, epsilon:"))
        os.kill(edge.pid, signal.SIGHUP)
        assert wait_until(lambda: REFUSED in last_lines(log, 100), 60), last_lines(log)
        assert revision() == 1
        file.write_text(file.read_text().replace("revision: 1", "revision: 2"))
        for _ in range(30):  # also while it reloads, when it has no handler for a while
            os.kill(edge.pid, signal.SIGHUP)
            time.sleep(0.1)
        assert wait_until(lambda: last_lines(log, 100).count("public key: ") >= 2, 120), last_lines(log)
        assert wait_until(lambda: serves(2), 60), last_lines(log)
        assert edge.poll() is None
    finally:
        stop([edge])


@pytest.mark.broker
@pytest.mark.slow
def test_a_worker_takes_up_what_its_ledgers_accept(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    made = Deployment(tmp_path, broker, topic_prefix)
    made.create_topics()
    file = tmp_path / "deniable.yaml"
    text = file.read_text()
    added = text + (
        "  - {name: plan, mechanism: k-rr, size: 3, epsilon: 2, window_seconds: 2, grace_seconds: 1, "
        "minimum_reports: 1, budget: none}\n"
    )
    options = ("--web-port", str(new_port()), "--reload-changes")
    with made.started("worker.log", "aggregate", *options) as worker:
        made.wait_until_ready("worker.log")
        for wrong in (added, text.replace("name: place", "name: town").replace("revision: 1", "revision: 2")):
            before = made.output("worker.log").count(REFUSED)
            replace(file, wrong)
            assert wait_until(lambda n=before: made.output("worker.log").count(REFUSED) > n, 60)
        made.run("produce", "carrier", "--field", "carrier", "--no-clients", given=b"carrier\nAA\n")
        replace(file, added.replace("revision: 1", "revision: 2"))
        assert wait_until(lambda: made.output("worker.log").count("page: ") == 2, 120), made.output(
            "worker.log"
        )
        plan = ("produce", "plan", "--field", "plan", "--no-clients")
        assert wait_until(lambda: made.run(*plan, given=b"plan\n1\n").returncode == 0, 60)  # it is published
        assert worker.poll() is None
        compared = made.run("replay")
        assert compared.stdout.endswith("difference: 0\n"), compared.stderr
