"""The command as a process: streams that are closed, full or unread, and Ctrl-C from the first moment on."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.deploy.collection_texts import WHOLE
from tests.support.needed import missing
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


def test_characters_that_the_locale_lacks_are_escaped(folder: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    command = [*COMMAND, "aggregate", "--help"]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"OTEL_\\u2026" in ended.stdout


def test_a_user_without_name_and_home_is_told_what_to_set(folder: Path) -> None:
    """Its id is unknown here; what it may read is not what this is about, so it keeps this user's rights."""
    other = ["unshare", "--user", "--map-user=12345"]
    if shutil.which("unshare") is None or subprocess.run([*other, "true"], capture_output=True).returncode:
        missing("user namespaces are not allowed here")
    line = [*other, "env", "--unset=HOME", "--unset=XDG_CACHE_HOME", *COMMAND]
    for command in ("broker", "dev", "demo"):
        ended = subprocess.run([*line, command], cwd=folder, capture_output=True, text=True, timeout=120)
        assert ended.returncode == 1
        assert re.fullmatch(r"Error: .+XDG_CACHE_HOME.+\n", "".join(ended.stderr.splitlines(True)[-1:]))
        assert "Traceback" not in ended.stderr


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
