"""README's "Your own data in five minutes" and its Python example work as pasted."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from deniable.deploy.broker.child_processes import Child, last_lines, spawn, stop
from tests.support.deploy.terminal import Terminal
from tests.support.paths import REPOSITORY
from tests.support.processes import descendants, new_port, state_of, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all]

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Your own data in five minutes")[2].partition("## From devices")[0]
COMMANDS = re.findall(r"^    ((?:deniable|cd) .*)$", SECTION, re.MULTILINE)
INIT, ENTER, CHECK, DEV, ENTER_AGAIN, PRODUCE, WATCH = COMMANDS
SECONDS = 120


Folder = tuple[Path, Mapping[str, str]]


@pytest.fixture(scope="module")
def dev() -> list[Child]:
    """The running `dev`, once it is started."""
    return []


@pytest.fixture(scope="module")
def folder(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory, dev: list[Child]) -> Iterator[Folder]:
    """The folder that `init` made, beside a running `dev`, and the environment of its shells.

    Only ports, and the time that a report may take, differ from README, since other tests run meanwhile.
    """
    above = tmp_path_factory.mktemp("five-minutes")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DENIABLE_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{new_port()}",
        "DENIABLE_PRODUCER__BLOCK_MILLISECONDS": "60000",
    }
    made = run(INIT, (above, environment))
    assert made.returncode == 0, made.stderr
    # What it prints is what README shows.
    assert made.stdout.splitlines() == COMMANDS[1:]
    home = above / ENTER.removeprefix("cd ")
    log = above / "dev.log"
    dev.append(spawn(["sh", "-c", f"exec {DEV} --web-port 0"], log, environment, home))
    try:
        assert wait_until(lambda: "Ctrl-C ends it" in last_lines(log, count=1000), SECONDS), last_lines(log)
        yield home, environment
    finally:
        stop(dev, 60)


def run(line: str, folder: Folder) -> "subprocess.CompletedProcess[str]":
    home, environment = folder
    command = ["sh", "-c", line]
    return subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_readme_shows_the_file_that_init_writes(folder: Folder) -> None:
    (shown,) = re.findall("```yaml\n(.*?)```", SECTION, re.DOTALL)
    assert shown in (folder[0] / "deniable.yaml").read_text()


def test_values_of_a_file_become_a_final_estimate(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    home, environment = folder
    sent = run(PRODUCE, folder)
    assert sent.returncode == 0, sent.stderr
    assert "20000 reports sent in " in sent.stderr
    for name in ("PATH", *(name for name in environment if name.startswith("DENIABLE_"))):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.chdir(home)
    with Terminal.running(["sh", "-c", f"exec {WATCH}"]) as terminal:
        assert terminal.read_until(", final", SECONDS), terminal.written
        assert terminal.read_until("(other)", SECONDS), terminal.written
    assert re.search(r"plan: [\d,]+ reports, final", terminal.written)
    shown = re.search(r"free +│ (\d\d\.\d\d)%", terminal.written)
    assert shown is not None, terminal.written
    # The true share is 70 %; the standard error is 0.5 points, or 7 if a window ended after 100 reports.
    assert abs(float(shown[1]) - 70) < 35


def test_python_example_prints_what_it_says(folder: Folder) -> None:
    code, _ = re.findall("```python\n(.*?)```", SECTION, re.DOTALL)
    (message,) = re.findall(r"# (Receipt\(.*\))", code)
    home, _environment = folder
    (home / "example.py").write_text(code)
    ended = run("python example.py", folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{message}\n", "")


def test_check_and_replay_answer_as_readme_says(folder: Folder) -> None:
    checked = run(CHECK, folder)
    assert "one report: epsilon 2\n" in checked.stdout
    assert wait_until(lambda: "difference: 0" in run("deniable replay", folder).stdout, SECONDS)


def test_ctrl_c_ends_dev_and_all_its_processes(folder: Folder, dev: list[Child]) -> None:
    children = descendants(dev[0].pid)
    assert len(children) == 2  # Kafka and a worker
    dev[0].send_signal(signal.SIGINT)
    assert dev[0].wait(SECONDS) == 130
    assert wait_until(lambda: all(state_of(pid) == "Z" for pid in children))
    assert "Traceback" not in last_lines(folder[0].parent / "dev.log", count=1000)
