"""The command as a process: streams that are closed, full or unread, and Ctrl-C from the first moment on."""

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.deploy.collection_texts import WHOLE
from tests.support.processes import wait_until

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "deniable"]

SLOW_MODULE = """
import os, time
os.write(2, b"loading")
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deniable.yaml").write_text(WHOLE)
    return tmp_path


def run(
    folder: Path, redirection: str, *arguments: str, unbuffered: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run a command with its streams redirected as a shell does it."""
    line = ["sh", "-c", f'exec "$@" {redirection}', "sh", *COMMAND, *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
def test_output_that_cannot_be_written_is_reported(folder: Path, redirection: str) -> None:
    ended = run(folder, redirection, "check")
    assert ended.returncode == 1
    assert re.fullmatch(r"Error: stdout .+\n", ended.stderr)


def test_unbuffered_output_that_cannot_be_written_is_reported(folder: Path) -> None:
    ended = run(folder, ">/dev/full", "check", unbuffered="1")
    assert (ended.returncode, ended.stderr) == (1, f"Error: {os.strerror(errno.ENOSPC)}\n")


@pytest.mark.all
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_a_stderr_that_nobody_reads_spoils_nothing(folder: Path, redirection: str) -> None:
    ended = run(folder, redirection, "check")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("carrier: ")
    refused = run(folder, redirection, "check", "--config", "none.yaml")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert run(folder, redirection, "check", "--nope").returncode == 2


def test_closed_streams_give_the_exit_status(folder: Path) -> None:
    assert run(folder, ">&- 2>&- <&-", "check").returncode == 1
    assert run(folder, ">/dev/full 2>/dev/full", "--help").returncode == 1


def test_departed_reader_is_no_error(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        ended = subprocess.run(
            [*COMMAND, "check"], cwd=folder, stdout=stdout, stderr=subprocess.PIPE, timeout=120
        )
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_ctrl_c_is_quiet_while_a_command_is_loaded(folder: Path) -> None:
    modules = folder / "modules"
    modules.mkdir()
    (modules / "msgspec.py").write_text(SLOW_MODULE)
    message = folder / "stderr"
    with (
        message.open("wb") as stderr,
        subprocess.Popen(
            [*COMMAND, "check"],
            cwd=folder,
            stderr=stderr,
            env={**os.environ, "PYTHONPATH": f"{modules}:{os.environ.get('PYTHONPATH', '')}"},
        ) as process,
    ):
        assert wait_until(lambda: message.read_bytes() == b"loading")
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
    assert message.read_bytes() == b"loading"
