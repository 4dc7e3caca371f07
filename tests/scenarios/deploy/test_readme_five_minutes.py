"""README's "Your own data in five minutes" and its Python example work as pasted, beside a real Kafka."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from deploy.broker.child_processes import last_lines, spawn, stop
from tests.support.deploy.terminal import Terminal
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Your own data in five minutes")[2].partition("## Commands")[0]
COMMANDS = re.findall(r"^    ((?:deniable|python3) .*?)(?: +# .*)?$", SECTION, re.MULTILINE)
BROKER, WORKER, CSV, PRODUCE, WATCH = COMMANDS
SECONDS = 120


@pytest.fixture(scope="module")
def folder(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """A folder with README's file and a worker started by README's line, and the environment of its shells.

    Only these differ from README: Kafka's address and the prefix of topics, by the environment; the page's
    port; and a window of 10 s instead of 60, since the tests wait for its end.
    """
    home = tmp_path_factory.mktemp("five-minutes")
    (text,) = re.findall("```yaml\n(.*?)```", SECTION, re.DOTALL)
    assert "window_seconds: 60\n" in text
    (home / "deniable.yaml").write_text(text.replace("window_seconds: 60\n", "window_seconds: 10\n"))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DENIABLE_KAFKA__BOOTSTRAP_SERVERS": broker,
        "DENIABLE_KAFKA__TOPIC_PREFIX": f"test-{uuid4().hex[:12]}-",
        "DENIABLE_KAFKA__ALLOW_PLAINTEXT": "true",
    }
    worker = spawn(["sh", "-c", f"{WORKER} --web-port 0"], home / "worker.log", environment, home)
    try:
        assert wait_until(lambda: "page: " in last_lines(home / "worker.log", count=1000), SECONDS)
        yield home, environment
    finally:
        stop([worker])


def run(line: str, folder: tuple[Path, Mapping[str, str]]) -> "subprocess.CompletedProcess[str]":
    home, environment = folder
    command = ["sh", "-c", line]
    return subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_the_commands_are_those_of_the_section() -> None:
    names = [line.split()[1] for line in COMMANDS if line.startswith("deniable")]
    assert names == ["broker", "topics", "produce", "watch"]
    assert BROKER == "deniable broker --data-dir kafka"  # started by the fixture `broker`, on a free port


def test_values_of_a_file_become_a_final_estimate(
    folder: tuple[Path, Mapping[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, environment = folder
    made = run(CSV, folder)
    assert (made.returncode, made.stderr) == (0, "")
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
    (code,) = re.findall("```python\n(.*?)```", SECTION, re.DOTALL)
    (message,) = re.findall(r"# (Receipt\(.*\))", code)
    home, _environment = folder
    (home / "example.py").write_text(code)
    ended = run("python example.py", folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{message}\n", "")


def test_check_and_replay_answer_as_readme_says(folder: tuple[Path, Mapping[str, str]]) -> None:
    checked = run("deniable check", folder)
    assert "one report: epsilon 2, " in checked.stdout
    assert wait_until(lambda: "difference: 0" in run("deniable replay", folder).stdout, SECONDS)
