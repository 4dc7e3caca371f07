"""Edges and relays of a run: started, killed, paused, and replaced by ones that die at a chosen step."""

import json
import signal
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import URLError

from deploy.broker.child_processes import Child, deniable_command, last_lines, signal_group, spawn, stop
from deploy.broker.ports import free_port
from deploy.config.file import Configuration
from producers.wire import EARLY_SECONDS
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until

DEATH_SECONDS = 20.0


@dataclass
class Seat:
    """The place of one process; who takes it may change.

    Parameters
    ----------
    log : of all its processes.
    died : how often one ended that nobody had ended.
    """

    log: Path
    died: int = 0
    child: Child | None = None

    @property
    def is_running(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def take(self, command: Sequence[str]) -> None:
        """Start a process here, unless one runs."""
        if self.is_running:
            return
        self.died += self.child is not None
        self.child = spawn(command, self.log, {"PYTHONPATH": str(REPOSITORY)}, self.log.parent)

    def send(self, number: signal.Signals) -> None:
        if self.child is not None:
            signal_group(self.child, number)

    def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End the process, and wait until it has."""
        child, self.child = self.child, None
        if child is None:
            return
        self.died += child.poll() is not None
        signal_group(child, number)
        child.wait(DEATH_SECONDS)

    def await_death(self) -> bool:
        """Wait until a process that was told to kill itself has; False if it lives on."""
        has_died = wait_until(lambda: not self.is_running, DEATH_SECONDS)
        if has_died:
            self.child = None
        return has_died


@dataclass
class Edges:
    """The edges of a run, each on its own port."""

    configuration: Configuration
    folder: Path
    ports: list[int] = field(default_factory=list)
    seats: list[Seat] = field(default_factory=list)

    def open(self) -> None:
        """Give another edge its place, and start it."""
        self.ports.append(free_port())
        self.seats.append(Seat(self.folder / f"edge-{len(self.seats)}.log"))
        self.start(self.seats[-1])

    def start(self, seat: Seat) -> None:
        file, port = str(self.configuration.path), self.ports[self.seats.index(seat)]
        seat.take(deniable_command("edge", "--config", file, "--listen", f"127.0.0.1:{port}"))

    def start_mortal(self, seat: Seat, frames: int) -> None:
        """Start an edge that dies between Kafka's acknowledgement of this frame and its answers."""
        port = self.ports[self.seats.index(seat)]
        order = {"file": str(self.configuration.path), "port": port, "frames": frames}
        seat.take([sys.executable, "-m", "tests.support.edge.edge_process", json.dumps(order)])

    def are_ready(self) -> bool:
        """Whether all would take uploads."""
        return all(map(_is_ready, self.ports))


@dataclass
class Relays:
    """The relays of a run.

    Parameters
    ----------
    orders : for each relay, such as a defect; see `tests.support.relay.service_process`.
    """

    configuration: Configuration
    folder: Path
    orders: dict[str, Any] = field(default_factory=dict)
    seats: list[Seat] = field(default_factory=list)

    def open(self) -> None:
        """Give another relay its place, and start it."""
        self.seats.append(Seat(self.folder / f"relay-{len(self.seats)}.log"))
        self.start(self.seats[-1])

    def start(self, seat: Seat, **order: Any) -> None:
        """Start a relay; one with an order is `deniable relay` with a hook at the place to die."""
        file, given = str(self.configuration.path), self.orders | order
        if not given:
            seat.take(deniable_command("relay", "--config", file))
            return
        given |= {"partitions": self.configuration.kafka.partitions, "early_seconds": EARLY_SECONDS}
        module = "tests.support.relay.service_process"
        seat.take([sys.executable, "-m", module, file, json.dumps(given)])


def end_all(*groups: Edges | Relays) -> None:
    """End all processes in good order."""
    stop([seat.child for group in groups for seat in group.seats if seat.child is not None], 15)


def describe(*groups: Edges | Relays) -> str:
    """Return the last lines of every log."""
    logs = [seat.log for group in groups for seat in group.seats]
    return "\n".join(f"--- {log.name}\n{last_lines(log)}" for log in logs if log.exists())


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10):
            return True
    except (URLError, OSError):
        return False
