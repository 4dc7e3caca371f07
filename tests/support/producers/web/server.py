"""A web server in a process of its own, on a free port of loopback."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from tests.support.processes import new_port, wait_until

SECONDS = 60.0
WORKERS = 2


class Server:
    """A running server.

    Parameters
    ----------
    process : the master, which was started.
    port : on loopback.
    log : file with what it prints.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self._log = log

    @property
    def log(self) -> str:
        """What it has printed."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def workers(self) -> list[int]:
        """Return the process ids of its workers, in ascending order."""
        return [pid for pid in _children(self.process.pid) if b"resource_tracker" not in _command_line(pid)]

    def wait_for_others(self, gone: Collection[int]) -> None:
        """Wait until it has two workers, and none of these."""
        assert wait_until(
            lambda: len(now := self.workers()) == WORKERS and not set(now) & set(gone), SECONDS
        ), self.log

    def stop(self, number: signal.Signals) -> int:
        """Send a signal to the master; return its exit status once it has ended."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def is_answering(self) -> bool:
        """Whether it answers a request, of whatever kind."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/")
            return bool(connection.getresponse().status)
        except OSError:
            return False
        finally:
            connection.close()


@contextmanager
def serve(line: str, folder: Path, options: Sequence[str] = ()) -> Iterator[Server]:
    """Run a command line of uvicorn or gunicorn with two workers in a folder; kill it if it is left."""
    program, *arguments = shlex.split(line)
    port = new_port()
    place = {"uvicorn": ["--port", str(port)], "gunicorn": ["--bind", f"127.0.0.1:{port}"]}[program]
    command = [sys.executable, "-m", program, *arguments, *place, *options]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
    server = Server(process, port, log)
    try:
        server.wait_for_others(gone=())
        assert wait_until(server.is_answering, SECONDS), server.log
        yield server
    finally:
        left = [*_children(process.pid), process.pid] if process.poll() is None else []
        for pid in left:
            _kill(pid)
        process.wait(SECONDS)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _children(pid: int) -> list[int]:
    """Return the process ids of a process's living children."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rsplit(")", 1)[1].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(status.parent.name))
    return sorted(found)


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
