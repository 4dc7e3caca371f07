"""README's "Your own data in five minutes" and its Python example work as pasted."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from deploy.broker.child_processes import last_lines, spawn, stop
from deploy.broker.ports import free_port
from tests.support.deploy.terminal import Terminal
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Your own data in five minutes")[2].partition("## From devices")[0]
COMMANDS = re.findall(r"^    ((?:deniable|cd) .*)$", SECTION, re.MULTILINE)
INIT, ENTER, CHECK, DEV, ENTER_AGAIN, PRODUCE, WATCH = COMMANDS
SECONDS = 120


@pytest.fixture(scope="module")
def folder(
    kafka_jars: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """The folder that `init` made, beside a running `dev`, and the environment of its shells.

    Only the ports differ from README, since other tests run meanwhile.
    """
    above = tmp_path_factory.mktemp("five-minutes")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DENIABLE_KAFKA__BOOTSTRAP_SERVERS": f"127.0.0.1:{free_port()}",
    }
    made = run(INIT, (above, environment))
    assert made.returncode == 0, made.stderr
    # What it prints is what README shows.
    assert made.stdout.splitlines() == COMMANDS[1:]
    home = above / ENTER.removeprefix("cd ")
    log = above / "dev.log"
    worker = spawn(["sh", "-c", f"exec {DEV} --web-port 0"], log, environment, home)
    try:
        assert wait_until(lambda: "Ctrl-C ends it" in last_lines(log, count=1000), SECONDS), last_lines(log)
        yield home, environment
    finally:
        stop([worker], 60)


def run(line: str, folder: tuple[Path, Mapping[str, str]]) -> "subprocess.CompletedProcess[str]":
    home, environment = folder
    command = ["sh", "-c", line]
    return subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_readme_shows_the_file_that_init_writes(folder: tuple[Path, Mapping[str, str]]) -> None:
    (shown,) = re.findall("```yaml\n(.*?)```", SECTION, re.DOTALL)
    assert shown in (folder[0] / "deniable.yaml").read_text()


def test_values_of_a_file_become_a_final_estimate(
    folder: tuple[Path, Mapping[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_python_example_prints_what_it_says(folder: tuple[Path, Mapping[str, str]]) -> None:
    code, _ = re.findall("```python\n(.*?)```", SECTION, re.DOTALL)
    (message,) = re.findall(r"# (Receipt\(.*\))", code)
    home, _environment = folder
    (home / "example.py").write_text(code)
    ended = run("python example.py", folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{message}\n", "")


def test_check_and_replay_answer_as_readme_says(folder: tuple[Path, Mapping[str, str]]) -> None:
    checked = run(CHECK, folder)
    assert "one report: epsilon 2\n" in checked.stdout
    assert wait_until(lambda: "difference: 0" in run("deniable replay", folder).stdout, SECONDS)
