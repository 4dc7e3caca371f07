"""`deniable dev` as a process: its end, a second start, and what it refuses."""

import json
import os
import re
import signal
import socket
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from deniable.deploy.broker.child_processes import stop
from tests.deploy.start.dev_process import Dev
from tests.support.deployments import run_command
from tests.support.messages import PinMessages
from tests.support.processes import new_port, state_of, wait_until

FILE = """\
collections:
  - {name: plan, mechanism: k-rr, size: 3, epsilon: 2, window_seconds: 10, grace_seconds: 5, budget: none}
"""


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    (tmp_path / "deniable.yaml").write_text(FILE)
    return {"DENIABLE_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{new_port()}"}


@pytest.fixture
def dev(tmp_path: Path, environment: Mapping[str, str], kafka_jars: None) -> Iterator[Dev]:
    running = Dev(tmp_path, environment)
    yield running
    stop([running.process], 60)


@pytest.mark.nightly
@pytest.mark.broker
def test_kill_leaves_no_process_and_a_lost_worker_ends_it(
    dev: Dev, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    children = dev.children()
    dev.process.kill()
    dev.process.wait(60)
    assert wait_until(lambda: all(state_of(pid) == "Z" for pid in children))
    again = Dev(tmp_path, environment)
    broker, worker = again.children()
    os.kill(worker, signal.SIGKILL)
    assert again.process.wait(60) == 1
    assert "Error: the worker was ended by signal 9; " in again.output()
    assert wait_until(lambda: state_of(broker) == "Z")


@pytest.mark.nightly
@pytest.mark.broker
def test_a_second_start_continues_with_edge_and_relay_and_an_edit_reaches_them(
    tmp_path: Path, environment: Mapping[str, str], kafka_jars: None
) -> None:
    """Ctrl-C ends all processes of the first, the loss of one those of the second."""
    file = tmp_path / "deniable.yaml"
    collections = FILE.replace("grace_seconds: 5", "grace_seconds: 15")
    file.write_text("edge: {}\nrelay: {delivery_seconds: 2}\n" + collections)
    both = Dev(tmp_path, environment)
    assert "created the topics" in both.output()
    children = both.children()
    assert len(children) == 4
    assert re.search(
        r"^uploads: http://127.0.0.1:\d+/v1/reports\npublic key: .{44}\ntry it: ", both.output(), re.M
    )
    os.kill(both.process.pid, signal.SIGINT)
    assert both.process.wait(120) == 130
    assert "Traceback" not in both.output()
    assert wait_until(lambda: all(state_of(pid) == "Z" for pid in children))
    file.write_text("edge: {}\nrelay: {delivery_seconds: 3}\n" + collections)
    again = Dev(tmp_path, environment)
    children = again.children()
    assert "created the topics" not in again.output()
    settings = [each for each in inspected(tmp_path, environment) if each["kind"] == "settings"]
    assert [each["collections"][0]["grace_seconds"] for each in settings][-1] == 12
    relay = next(pid for pid in children if "\0relay\0" in Path(f"/proc/{pid}/cmdline").read_text())
    os.kill(relay, signal.SIGKILL)
    assert again.process.wait(120) == 1
    assert "Error: the relay was ended by signal 9; " in again.output()
    assert wait_until(lambda: all(state_of(pid) == "Z" for pid in children))


def inspected(folder: Path, environment: Mapping[str, str]) -> list[Any]:
    """Return what inspect prints of `uploads`, once the edited file's settings are there."""
    found: list[Any] = []

    def is_followed() -> bool:
        with pytest.MonkeyPatch.context() as patched:
            for name, value in environment.items():
                patched.setenv(name, value)
            done = run_command(("inspect", "uploads", "--partition", "0"), folder)
        assert done.returncode == 0, done.stderr
        found[:] = map(json.loads, done.stdout.splitlines())
        return len({each["revision"] for each in found if each["kind"] == "settings"}) == 2

    assert wait_until(is_followed)
    return found


@pytest.mark.broker
@pytest.mark.nightly
def test_a_second_one_in_the_folder_is_refused(
    dev: Dev, tmp_path: Path, environment: Mapping[str, str]
) -> None:
    said = refused(tmp_path, environment)
    assert said == (
        "Error: deniable dev already runs with the data in .deniable-dev: use it, or end it with Ctrl-C "
        "in its terminal\n"
    )
    assert "already runs with the data" in refused(tmp_path, environment, "--fresh")


@pytest.mark.broker
@pytest.mark.nightly
def test_files_of_the_folder_are_not_run(
    tmp_path: Path, environment: Mapping[str, str], kafka_jars: None
) -> None:
    """Python would look for modules in the working folder first."""
    for name in ("deploy.py", "producers/__init__.py", "aggregator/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit('a file of the user was run')")
    running = Dev(tmp_path, environment)
    running.end()
    assert "a file of the user was run" not in running.output()


def refused(folder: Path, environment: Mapping[str, str], *options: str, status: int = 1) -> str:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in environment.items():
            patched.setenv(name, value)
        done = run_command(("dev", *options), folder)
    assert done.returncode == status
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.slow
def test_another_kafka_and_ports_that_cannot_be_used_are_refused(
    tmp_path: Path, environment: Mapping[str, str], pin_messages: PinMessages
) -> None:
    """Before anything is started."""
    elsewhere = {
        "DENIABLE_KAFKA__BOOTSTRAP_SERVERS": "broker.example:9092",
        "DENIABLE_KAFKA__ALLOW_PLAINTEXT": "true",
    }
    kafka = refused(tmp_path, {**environment, **elsewhere})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        used = {"DENIABLE_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{port}"}
        ports = {"Kafka's port is in use": refused(tmp_path, used)}
        ports["the page's port is in use"] = refused(tmp_path, environment, "--web-port", port)
    next_port = str(int(port) + 1)
    said = {what: line.replace(port, "PORT").replace(next_port, "PORT + 1") for what, line in ports.items()}
    said["the file names another Kafka"] = kafka
    pin_messages({what: partial(str, line) for what, line in said.items()})
    port = environment["DENIABLE_KAFKA__BOOTSTRAP_SERVERS"].partition(":")[2]
    twice = refused(tmp_path, environment, "--web-port", port, status=2)
    assert twice.startswith("Error: --web-port ")
    assert port in twice
    (tmp_path / "deniable.yaml").write_text("edge: {}\nrelay: {delivery_seconds: 2}\n" + FILE)
    twice = refused(tmp_path, environment, "--edge-port", "8321", status=2)
    assert twice.startswith("Error: --edge-port ")
    assert not (tmp_path / ".deniable-dev").exists()
