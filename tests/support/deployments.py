"""A deployment for a test: a collection file, and commands run as users run them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError
from urllib.request import urlopen

from deniable.cluster.cluster import Cluster
from deniable.config.file import load
from deniable.deploy.broker.child_processes import GUARD, Child, last_lines, spawn, stop
from deniable.deploy.cluster.topics.setup import create
from tests.support.processes import fork, wait_until

COLLECTIONS = """\
revision: 1
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", partitions: 2, allow_plaintext: true}}
producer: {{pack_seconds: 0.2}}
collections:
  - {{name: carrier, mechanism: k-rr, values: [AA, B6, "9E"], other: false, epsilon: 3.0, window_seconds: 2,
     grace_seconds: 10, minimum_reports: 1, budget: none}}
  - {{name: place, mechanism: rappor, bits: 64, hashes: 2, cohorts: 2, f: 0.25, p: 0.35, q: 0.65,
     candidates: [JFK, LAX, SFO], window_seconds: 2, grace_seconds: 10, minimum_reports: 1, budget: none,
     reports_per_window: 100}}
"""
COMMAND_SECONDS = 120


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

    def doctor(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """Run `doctor --as producer`, again while a busy machine takes longer than its steps may."""
        for _ in range(20):
            ended = self.run("doctor", "--as", "producer", *options)
            if "no answer within" not in ended.stdout and "no time was left" not in ended.stdout:
                break
        return ended

    @contextmanager
    def running(self, log: str, *arguments: str) -> Iterator[Child]:
        """Run a command in the background; its output goes to a file in the folder.

        It is forked, which spares it a second and a half of imports, and has no command line of its own.
        """
        path = self.folder / log
        path.touch()
        child = fork("deniable", arguments, self.folder, (Path(os.devnull), path, path))
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
        read, *written = streams = (Path(parent) / "in", Path(parent) / "out", Path(parent) / "err")
        read.write_bytes(given)
        child = fork("deniable", arguments, folder, streams, own_session=False)
        try:
            status = child.wait(COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        out, err = (each.read_bytes().decode() for each in written)
        return subprocess.CompletedProcess(arguments, status, out, err)


def _answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=60):  # noqa: S310 - on loopback
            return True
    except HTTPError as error:
        error.close()
        return False


def _command(arguments: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "deniable", *arguments]
