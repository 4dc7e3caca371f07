"""Children end with their parent, and when they are stopped."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deniable.deploy.broker.child_processes import GUARD, deniable_command, last_lines, spawn, stop
from tests.support.paths import REPOSITORY
from tests.support.processes import state_of, wait_until

PARENT = """
import sys, time
from pathlib import Path
from deniable.deploy.broker.child_processes import spawn
print(spawn(["sleep", "600"], Path(sys.argv[1])).pid, flush=True)
time.sleep(600)
"""
POLITE = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done"
STUBBORN = "trap '' TERM; sleep 600 & echo $!; while :; do sleep 600; done"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_child_ends_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert wait_until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
        parent.send_signal(number)
    assert wait_until(lambda: state_of(pid) == "Z")


def test_child_of_a_dead_parent_does_not_run() -> None:
    command = [sys.executable, "-I", "-S", GUARD, str(os.getpid() + 1), "echo", "ran"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.stderr.startswith("cannot run echo: ")


def test_a_command_of_ours_runs_no_file_of_the_folder(tmp_path: Path) -> None:
    """Without -P, Python would look for `deploy` in the working folder first."""
    for name in ("deploy.py", "producers/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit('a file of the user was run')")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        deniable_command("--version"),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("deniable, version ")


def test_no_other_child_is_started_in_that_way() -> None:
    sources = {path: path.read_text() for path in (REPOSITORY / "deploy").rglob("*.py")}
    assert [path.name for path, text in sources.items() if '"-m"' in text] == ["child_processes.py"]


def test_missing_command_is_named_in_the_log(tmp_path: Path) -> None:
    child = spawn(["no-such-command"], tmp_path / "log")
    assert child.wait(120) == 1
    assert last_lines(tmp_path / "log").startswith("cannot run no-such-command: ")


def test_a_thread_may_not_start_children(tmp_path: Path) -> None:
    refusals: list[RuntimeError] = []

    def start() -> None:
        try:
            spawn(["true"], tmp_path / "log")
        except RuntimeError as error:
            refusals.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert len(refusals) == 1


def test_a_child_has_its_environment_and_folder(tmp_path: Path) -> None:
    child = spawn(["sh", "-c", "echo $SAID; pwd"], tmp_path / "log", {"SAID": "hello"}, tmp_path)
    assert child.wait(120) == 0
    assert last_lines(tmp_path / "log") == f"hello\n{tmp_path}"


def test_stop_asks_first(tmp_path: Path) -> None:
    children = [spawn(["sleep", "600"], tmp_path / "log") for _ in range(2)]
    stop(children)
    stop(children)
    assert [child.returncode for child in children] == [-signal.SIGTERM] * 2


@pytest.mark.slow
def test_stop_kills_deaf_child_and_its_children(tmp_path: Path) -> None:
    child = spawn(["sh", "-c", STUBBORN], tmp_path / "log")
    assert wait_until(lambda: last_lines(tmp_path / "log") != "")
    stop([child], seconds=0.3)
    assert child.returncode == -signal.SIGKILL
    assert wait_until(lambda: state_of(int(last_lines(tmp_path / "log"))) == "Z")


def test_stop_wakes_a_paused_child(tmp_path: Path) -> None:
    child = spawn(["sh", "-c", POLITE], tmp_path / "log")
    assert wait_until(lambda: last_lines(tmp_path / "log") == "ready")
    child.send_signal(signal.SIGSTOP)
    stop([child])
    assert child.returncode == 3


def test_last_lines_begin_at_the_given_byte(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n" + "".join(f"line {i}\n" for i in range(100)))
    assert last_lines(tmp_path / "log", start=7, count=2) == "line 98\nline 99"
    assert last_lines(tmp_path / "log", start=7, count=1000).startswith("line 0\n")
