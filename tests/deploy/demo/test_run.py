"""The demo as a user has it: it comes out right by itself, and leaves nothing behind however it ends."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from deniable.deploy.broker.locked_folder import HeldFolder
from tests.support.processes import wait_until

MARK = "DENIABLE_TEST_MARK"
START_SECONDS = 120
ONCE_SECONDS = 280  # 90 s on an idle machine; here other tests may run beside it

Starter = Callable[..., "subprocess.Popen[str]"]


def marked(mark: str) -> list[int]:
    """Processes that descend from the demo, found by a variable in their environment."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                environment = (process / "environ").read_bytes()
            except OSError:
                continue
            if f"{MARK}={mark}".encode() in environment.split(b"\0"):
                found.append(int(process.name))
    return found


def folder_of(mark: str) -> Path:
    """The demo's folder, which its workers' command lines name."""
    for process in marked(mark):
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")
        if "--config" in words:
            return Path(words[words.index("--config") + 1]).parent
    raise AssertionError("no worker runs")


def wait_until_gone(mark: str, seconds: float = 60) -> list[int]:
    """What still runs after a while; empty as soon as nothing does."""
    deadline = time.monotonic() + seconds
    while (running := marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return running


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex


@pytest.fixture
def start_demo(kafka_jars: None, mark: str, tmp_path: Path) -> Iterator[Starter]:
    """Starts `deniable demo` in a session of its own, and makes sure that it ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(option: str = "--once", **environment: str) -> subprocess.Popen[str]:
        with (tmp_path / "stderr").open("w") as stderr:
            demo = subprocess.Popen(
                [sys.executable, "-m", "deniable", "demo", option],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
                env={**os.environ, MARK: mark, **environment},
            )
        started.append(demo)
        return demo

    yield start
    for demo in started:
        if demo.poll() is None:
            demo.kill()
        demo.communicate()


@pytest.mark.nightly
@pytest.mark.broker
def test_demo_once_ends_with_ok(start_demo: Starter, mark: str, tmp_path: Path) -> None:
    """All flights through the whole path: exact, with honest intervals, and `demo: ok` as the last line."""
    output, _ = start_demo().communicate(timeout=ONCE_SECONDS)
    shown = (tmp_path / "stderr").read_text().split(" flights sent, ")[0]
    assert len(re.findall(r"^metrics: http://127\.0\.0\.1:\d+/metrics$", shown, re.MULTILINE)) == 3
    assert re.search(r"^canary: chi-square of \d+ final windows, largest ", output, re.MULTILINE), output
    assert output.rstrip().splitlines()[-1] == "demo: ok", output
    assert "difference: 0" in output
    assert output.count("336,776 reports") == 4
    assert output.count("327,346 reports") == 1
    assert "502,782 of the reports came over HTTP" in output  # of each fourth flight, five or six
    assert wait_until_gone(mark) == []


@pytest.mark.broker
@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, marks=pytest.mark.nightly),
        pytest.param(signal.SIGINT, marks=pytest.mark.nightly),
        pytest.param(signal.SIGTERM, marks=pytest.mark.nightly),
    ],
)
def test_it_opens_the_try_page_and_leaves_nothing_running(
    start_demo: Starter, mark: str, tmp_path: Path, number: signal.Signals
) -> None:
    """In the browser that the person has chosen; killed, interrupted or asked to end, all processes end."""
    opened, browser = tmp_path / "opened", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >{opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    demo = start_demo("--browser", BROWSER=f"{browser} %s")
    assert wait_until(lambda: opened.exists() or demo.poll() is not None, START_SECONDS)
    assert demo.poll() is None, (tmp_path / "stderr").read_text()
    address = opened.read_text().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/try", address)
    with closing(HTTPConnection(address.split("/")[2], timeout=60)) as connection:
        connection.request("GET", "/try")
        assert b"<title>" in connection.getresponse().read()
    folder = folder_of(mark)
    assert (folder / "secret").stat().st_mode & 0o777 == 0o600
    demo.send_signal(number)
    status = demo.wait(timeout=120)
    assert wait_until_gone(mark) == []
    expected = {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143}
    assert status == expected[number]
    assert "Traceback" not in (tmp_path / "stderr").read_text()
    if number is signal.SIGKILL:
        assert folder.is_dir()
        HeldFolder().release()  # as the next demo or broker does
    assert not folder.exists()
