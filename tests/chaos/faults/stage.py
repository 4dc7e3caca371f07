"""The processes and topics that a fault may touch during a run, and what several faults do to them."""

import random
import signal
import time
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.judging.service import Service
from tests.chaos.load.load import Load
from tests.chaos.processes.broker import ChaosBroker
from tests.chaos.processes.cluster.cluster import ChaosCluster
from tests.chaos.processes.fleet import Edges, Fleet, Relays
from tests.chaos.processes.workers import Workers
from tests.support.processes import Process, wait_until

SESSION_SECONDS = 10.0  # after which the group considers a silent worker dead
MAX_PAUSE_SECONDS = 17.0  # a checkpoint begun before the pause is abandoned after 20 s
PASS_SECONDS = 60.0  # a process passes every fault point in 15, on a machine that is not overloaded


@dataclass
class Stage:
    """A run under load; `chance` makes all random choices.

    Parameters
    ----------
    workers : of every run.
    service : samples what they store.
    edges, relays : of runs of the path of devices; else None.
    load : of workers alone; else None.
    senders : of the load; a fault may add some.
    ready_seconds : the longest time that workers needed after a fault; see Verdict.
    """

    chance: random.Random
    seed: int
    broker: ChaosBroker | ChaosCluster
    ends_at: float
    workers: Workers
    service: Service
    load: Load | None = None
    edges: Edges | None = None
    relays: Relays | None = None
    senders: list[Any] = field(default_factory=list)
    ready_seconds: float = 0.0

    @property
    def left(self) -> float:
        """Seconds until the load ends."""
        return self.ends_at - time.monotonic()

    def rest(self, least: float, most: float) -> None:
        """Sleep, at most until the end of the run."""
        time.sleep(max(0.0, min(self.chance.uniform(least, most), self.left)))

    def fleet(self, kind: str) -> Fleet:
        """Return `workers`, `edges` or `relays`."""
        fleet: Fleet = getattr(self, kind)
        return fleet

    def victim(self, fleet: Fleet) -> Process:
        running = [process for process in fleet.alive if process.running]
        return self.chance.choice(running) if running else fleet.start()

    def replace(self, fleet: Fleet, process: Process, number: signal.Signals) -> None:
        """End a process; start another one after a short rest."""
        fleet.end(process, number)
        self.rest(0, 3)
        fleet.start()

    def sleep_through_session(self, worker: Process) -> None:
        """Wait until others count a stopped worker's partitions; then wake it up as a zombie."""
        others = [other for other in self.workers.alive if other is not worker]
        opened = {other: other.says("ledger open") for other in others}
        started = time.monotonic()
        time.sleep(SESSION_SECONDS)
        wait_until(
            lambda: any(other.says("ledger open") > opened[other] for other in others),
            MAX_PAUSE_SECONDS - SESSION_SECONDS - 2,
        )
        time.sleep(min(2.0, max(0.0, MAX_PAUSE_SECONDS - (time.monotonic() - started))))
        worker.signal(signal.SIGCONT)

    def strike(self, fleet: Fleet, point: str, action: str, passes: int = 1) -> Process | None:
        """Order a fault at a point; return the process that executed it, or None.

        Not every worker estimates, so that order goes to all workers, and the first to estimate executes it.
        """
        ordered = list(fleet.alive) if point == "estimate" else [self.victim(fleet)]
        text = f"fault point {point}: "
        before = {process: process.says(text) for process in ordered}
        for process in ordered:
            process.order(point, action, passes)
        wait_until(lambda: any(process.says(text) > before[process] for process in ordered), PASS_SECONDS)
        for process in ordered:
            process.withdraw_order()
        return next((process for process in ordered if process.says(text) > before[process]), None)
