"""The processes of one kind in a run: started, ended and replaced; deaths that nobody ordered are noted."""

import http.client
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from deniable.config.file import Configuration
from deniable.deploy.broker.child_processes import stop
from tests.support.processes import Process, new_port

STOP_SECONDS = 15.0


@dataclass
class Fleet(ABC):
    """The processes of one kind in a run.

    Parameters
    ----------
    configuration : collection file and brokers; replaced during a rolling restart.
    folder : for logs and working folders.
    options : of each process, such as a defect to test the suite; see `child`.
    alive : those that should run.
    ended : those that were ended.
    missed : those of `ended` that had ended by themselves before, or did not end in time.
    """

    configuration: Configuration
    folder: Path
    options: Sequence[str] = ()
    alive: list[Process] = field(default_factory=list)
    ended: list[Process] = field(default_factory=list)
    missed: list[Process] = field(default_factory=list)

    kind = Process

    @property
    def all(self) -> list[Process]:
        return [*self.ended, *self.alive]

    @property
    def died(self) -> list[Process]:
        """Return the processes that ended unexpectedly."""
        return [*self.missed, *(process for process in self.alive if not process.running)]

    def run(self, options: Sequence[str], command: str, *arguments: str) -> Process:
        """Start a command of `deniable` in a folder of its own."""
        home = self.folder / f"{command}-{len(self.all)}"
        module = "tests.chaos.processes.child"
        line = [*self.options, *options, str(home), command, "--config", str(self.configuration.path)]
        process = self.kind.start(module, [*line, *arguments], home, {"TMPDIR": str(home)})
        self.alive.append(process)
        return process

    @abstractmethod
    def start(self, *options: str) -> Process:
        """Start another process."""

    def end(self, process: Process, number: signal.Signals) -> None:
        """End a process by a signal and remove it from `alive`."""
        self.alive.remove(process)
        self.ended.append(process)
        if process.child.poll() not in (None, -signal.SIGKILL):
            self.missed.append(process)
        process.signal(number)
        if number is signal.SIGKILL:
            process.child.wait()

    def drain(self, process: Process, seconds: float) -> None:
        """End a process by SIGTERM, like an orchestrator; note a failure or an exceeded time limit."""
        self.end(process, signal.SIGTERM)
        try:
            in_order = process.child.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            in_order = False
        if not in_order and process not in self.missed:
            self.missed.append(process)

    def keep_running(self, least: int) -> None:
        """Start processes until this many run."""
        for _ in range(least - sum(process.running for process in self.alive)):
            self.start()

    def stop(self) -> None:
        """End all processes by SIGTERM."""
        stop([process.child for process in self.all], STOP_SECONDS)

    def describe(self) -> str:
        """Return the last lines of every log."""
        return "\n".join(process.describe() for process in self.all)


@dataclass
class Relays(Fleet):
    """The relays of a run."""

    def start(self, *options: str) -> Process:
        """Start another relay."""
        return self.run(options, "relay")


@dataclass
class Edges(Fleet):
    """The edges of a run, two at most; a successor takes the port of the one that has ended.

    Parameters
    ----------
    ports : on loopback.
    """

    ports: list[int] = field(default_factory=lambda: [new_port(), new_port()])

    def start(self, *options: str) -> Process:
        """Start another edge."""
        used = {edge.port for edge in self.alive}
        port = next(port for port in self.ports if port not in used)
        edge = self.run(options, "edge", "--listen", f"127.0.0.1:{port}")
        edge.port = port
        return edge

    def are_ready(self) -> bool:
        """Return whether all that should run take uploads."""
        return all(is_ready(edge.port) for edge in self.alive)


def is_ready(port: int) -> bool:
    """Return whether `/readyz` answers 200 on this port of loopback."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
