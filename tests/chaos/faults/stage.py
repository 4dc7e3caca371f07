"""The processes and topics that a fault may touch during a run, and actions that several faults share."""

import random
import signal
import time
from dataclasses import dataclass

from tests.chaos.load.load import Load
from tests.chaos.processes.broker import ChaosBroker
from tests.chaos.processes.workers import Worker, Workers
from tests.support.processes import wait_until

SESSION_SECONDS = 10.0  # after which the group considers a silent worker dead
MOST_PAUSE_SECONDS = 17.0  # a checkpoint begun before the pause is abandoned after 20 s
PASS_SECONDS = 15.0  # in which a worker passes every fault point


@dataclass
class Stage:
    """A run of workers under load; `chance` makes all random choices."""

    chance: random.Random
    seed: int
    broker: ChaosBroker
    workers: Workers
    load: Load | None
    ends_at: float

    @property
    def left(self) -> float:
        """Seconds until the load ends."""
        return self.ends_at - time.monotonic()

    def rest(self, least: float, most: float) -> None:
        """Sleep, at most until the end of the run."""
        time.sleep(max(0.0, min(self.chance.uniform(least, most), self.left)))

    def victim(self) -> Worker:
        running = [worker for worker in self.workers.alive if worker.running]
        return self.chance.choice(running) if running else self.workers.start()

    def replace(self, worker: Worker, number: signal.Signals) -> None:
        """End a worker; start another one after a short rest."""
        self.workers.end(worker, number)
        self.rest(0, 3)
        self.workers.start()

    def sleep_through_session(self, worker: Worker) -> None:
        """Wait until others count a stopped worker's partitions; then wake it up as a zombie."""
        others = [other for other in self.workers.alive if other is not worker]
        opened = {other.log: other.says("ledger open") for other in others}
        started = time.monotonic()
        time.sleep(SESSION_SECONDS)
        wait_until(
            lambda: any(other.says("ledger open") > opened[other.log] for other in others),
            MOST_PAUSE_SECONDS - SESSION_SECONDS - 2,
        )
        time.sleep(min(2.0, max(0.0, MOST_PAUSE_SECONDS - (time.monotonic() - started))))
        worker.signal(signal.SIGCONT)

    def strike(self, point: str, action: str) -> Worker | None:
        """Order a fault inside a checkpoint or an estimate; return the worker that executed it, or None.

        Not every worker estimates, so that order goes to all workers, and the first to estimate executes it.
        """
        asked = list(self.workers.alive) if point == "estimate" else [self.victim()]
        text = f"fault point {point}: "
        obeyed = {worker.log: worker.says(text) for worker in asked}
        for worker in asked:
            worker.order(point, action)
        wait_until(lambda: any(w.says(text) > obeyed[w.log] for w in asked), PASS_SECONDS)
        for worker in asked:
            worker.withdraw_order()
        return next((w for w in asked if w.says(text) > obeyed[w.log]), None)
