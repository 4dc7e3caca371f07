"""A deployment for a test: a collection file, and commands run as users run them."""

import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast
from urllib.error import HTTPError
from urllib.request import urlopen

from deploy.broker.child_processes import GUARD, Child, last_lines, spawn, stop
from deploy.broker.guard import PR_SET_PDEATHSIG
from deploy.cli.commands import COMMANDS
from deploy.cli.main import main
from deploy.cluster.topics.setup import create
from deploy.config.file import load
from producers.transport.cluster import Cluster
from tests.support.processes import wait_until

COLLECTIONS = """\
revision: 1
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", partitions: 2, allow_plaintext: true}}
producer: {{pack_seconds: 0.2}}
collections:
  - {{name: carrier, mechanism: k-rr, values: [AA, B6, "9E"], other: false, epsilon: 3.0, window_seconds: 2,
     grace_seconds: 1, minimum_reports: 1, budget: none}}
  - {{name: place, mechanism: rappor, bits: 64, hashes: 2, cohorts: 2, f: 0.25, p: 0.35, q: 0.65,
     candidates: [JFK, LAX, SFO], window_seconds: 2, grace_seconds: 1, minimum_reports: 1, budget: none,
     reports_per_window: 100}}
"""
COMMAND_SECONDS = 120


class Forked:
    """A command in a process forked from one that has imported them all; `stop` takes it like a child."""

    def __init__(self, process: ForkServerProcess) -> None:
        assert process.pid is not None
        self._process = process
        self.pid = process.pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        status = self.poll()
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@dataclass(frozen=True)
class Deployment:
    """A folder with a collection file."""

    folder: Path
    servers: str
    prefix: str

    def __post_init__(self) -> None:
        text = COLLECTIONS.format(servers=self.servers, prefix=self.prefix)
        (self.folder / "deniable.yaml").write_text(text, encoding="utf-8")

    def create_topics(self) -> None:
        """Create the topics like `topics create`, in this process."""
        loaded = load(self.folder / "deniable.yaml", environment={})
        create(Cluster(self.servers), loaded.topics, 1)

    def run(self, *arguments: str, given: bytes = b"") -> "subprocess.CompletedProcess[str]":
        """Run a command to its end in this folder."""
        return run_command(arguments, self.folder, given)

    @contextmanager
    def running(self, log: str, *arguments: str) -> Iterator[Child]:
        """Run a command in the background; its output goes to a file in the folder.

        It is forked, which spares it a second and a half of imports, and has no command line of its own.
        """
        streams = (Path(os.devnull), self.folder / log, self.folder / log)
        streams[1].touch()
        process = _server().Process(
            target=_run, args=(arguments, self.folder, streams, dict(os.environ), True)
        )
        process.start()
        child = cast("Child", Forked(process))
        try:
            yield child
        finally:
            stop([child])

    @contextmanager
    def started(self, log: str, *arguments: str) -> Iterator[Child]:
        """Start a command in the background as a user does; its output goes to a file in the folder."""
        child = spawn(_command(arguments), self.folder / log, folder=self.folder)
        try:
            yield child
        finally:
            stop([child])

    @contextmanager
    def piped(self, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a command with pipes for stdin, stdout and stderr; it ends with this process."""
        guarded = [sys.executable, "-I", "-S", str(GUARD), str(os.getpid()), *_command(arguments)]
        pipe = subprocess.PIPE
        with subprocess.Popen(guarded, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self.folder) as process:
            try:
                yield process
            finally:
                process.kill()

    def output(self, log: str) -> str:
        """Return the output of a background command so far."""
        return last_lines(self.folder / log, count=1000)

    def address(self, log: str) -> str:
        """Wait for a worker to print the address of its page; return it."""
        assert wait_until(lambda: "page: " in self.output(log), 120), self.output(log)
        return next(line[6:] for line in self.output(log).splitlines() if line.startswith("page: "))

    def wait_until_ready(self, log: str) -> None:
        """Wait until a worker has partitions and their ledgers are open."""
        address = f"{self.address(log)}readyz"
        assert wait_until(lambda: _answers(address), 120), self.output(log)


def run_command(
    arguments: tuple[str, ...], folder: Path, given: bytes = b""
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a process forked from one that has imported them all.

    Raises
    ------
    subprocess.TimeoutExpired, after the command is killed.
    """
    with TemporaryDirectory() as parent:
        streams = tuple(Path(parent) / name for name in ("in", "out", "err"))
        streams[0].write_bytes(given)
        process = _server().Process(target=_run, args=(arguments, folder, streams, dict(os.environ)))
        process.start()
        process.join(COMMAND_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(arguments, COMMAND_SECONDS)
        out, err = (each.read_bytes().decode() for each in streams[1:])
        assert process.exitcode is not None
        return subprocess.CompletedProcess(arguments, process.exitcode, out, err)


def _answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=60):  # noqa: S310 - on loopback
            return True
    except HTTPError as error:
        error.close()
        return False


def _command(arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "deploy", *arguments]


@cache
def _server() -> ForkServerContext:
    """Return what forks: a process with all commands imported, which ends with this one."""
    context = multiprocessing.get_context("forkserver")
    modules = [path.partition(":")[0] for path, _ in COMMANDS.values()]
    context.set_forkserver_preload(["deploy.cli.main", *modules])
    return context


def _run(
    arguments: tuple[str, ...],
    folder: Path,
    streams: tuple[Path, Path, Path],
    environment: dict[str, str],
    in_background: bool = False,
) -> None:
    if in_background:
        os.setsid()
        # The process that forked this one ends with the tests'.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    written = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, (stream, flags) in enumerate(zip(streams, (os.O_RDONLY, written, written), strict=True)):
        opened = os.open(stream, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering, encoding="utf-8", closefd=False)
        for number, (mode, buffering) in enumerate((("r", -1), ("w", -1), ("w", 1)))
    )
    sys.argv = ["deniable", *arguments]
    main()
