"""Worker processes that can be killed, paused, ordered to fail, and restarted."""

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from deploy.broker.child_processes import Child, last_lines, signal_group, spawn, stop
from deploy.broker.errors import BrokerError
from deploy.config.file import Configuration
from estimators.collection import Collection
from tests.chaos.processes.positions import committed, log_ends
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until

ROOT = REPOSITORY
READY_SECONDS = 90.0
RETIRE_SECONDS = 120.0
OLD_FILE = "Error: revision of the collection file must be"


@dataclass
class Worker:
    """One worker process, its log and its working folder.

    An order in the file `order` (a fault point and an action) is taken when the worker passes the point.
    """

    child: Child
    log: Path
    folder: Path

    @property
    def running(self) -> bool:
        return self.child.poll() is None

    def signal(self, number: signal.Signals) -> None:
        signal_group(self.child, number)

    def order(self, point: str, action: str) -> None:
        """Order `action` for the next time it passes `point`; replaces an earlier order."""
        written = self.folder / "order.new"
        written.write_text(f"{point} {action}")
        written.rename(self.folder / "order")

    def withdraw_order(self) -> None:
        (self.folder / "order").unlink(missing_ok=True)

    @property
    def ready(self) -> bool:
        """Whether `/readyz` answers 200."""
        port = re.search(r"page: http://127\.0\.0\.1:(\d+)/", self.log.read_text(errors="replace"))
        if port is None:
            return False
        with closing(http.client.HTTPConnection("127.0.0.1", int(port[1]), timeout=60)) as connection:
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == 200
            except OSError:
                return False

    def says(self, text: str) -> int:
        """Return how often a text occurs in its log."""
        return self.log.read_text(errors="replace").count(text)


@dataclass
class Workers:
    """The workers of one run.

    Parameters
    ----------
    configuration : collections and brokers; replaced during a rolling restart.
    folder : for logs and working folders.
    options : for each worker's runner, such as a defect to test the suite.
    known : collections that any of them counted, by fingerprint.
    retired : by partition and fingerprint, the offset from which packs are rejected.
    """

    configuration: Configuration
    folder: Path
    options: Sequence[str] = ()
    alive: list[Worker] = field(default_factory=list)
    ended: list[Worker] = field(default_factory=list)
    missed: list[Worker] = field(default_factory=list)
    known: dict[int, Collection] = field(default_factory=dict)
    retired: dict[int, dict[int, int]] = field(default_factory=dict)

    @property
    def died(self) -> list[Worker]:
        """Return the workers that ended unexpectedly after they had counted.

        Not those that end because the broker is lost before they join the group, or because they have the
        former file and find a ledger that was opened with the new one.
        """
        gone = [*self.missed, *(worker for worker in self.alive if not worker.running)]
        return [worker for worker in gone if worker.says("ledger open") and not worker.says(OLD_FILE)]

    @property
    def all(self) -> list[Worker]:
        return [*self.ended, *self.alive]

    def start(self, *options: str) -> Worker:
        """Start another worker."""
        self.known |= self.configuration.by_fingerprint()
        name = f"worker-{len(self.all)}"
        home = self.folder / name
        home.mkdir()
        command = [sys.executable, "-m", "tests.chaos.processes.worker", *self.options, *options, str(home)]
        command += ["aggregate", "--config", str(self.configuration.path), "--web-port", "0"]
        log = self.folder / f"{name}.log"
        log.touch()
        environment = {"PYTHONPATH": str(ROOT), "TMPDIR": str(home)}
        worker = Worker(spawn(command, log, environment, home), log, home)
        self.alive.append(worker)
        return worker

    def end(self, worker: Worker, number: signal.Signals) -> None:
        """End a worker by a signal and remove it from `alive`."""
        self.alive.remove(worker)
        self.ended.append(worker)
        if worker.child.poll() not in (None, -signal.SIGKILL):
            self.missed.append(worker)
        worker.signal(number)

    def drain(self, worker: Worker, seconds: float) -> None:
        """End a worker by SIGTERM, like an orchestrator; record a failure or an exceeded time limit."""
        self.end(worker, signal.SIGTERM)
        try:
            in_order = worker.child.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            in_order = False
        if not in_order and worker not in self.missed:
            self.missed.append(worker)

    def retire(self, collection: Collection, later: Configuration) -> None:
        """Retire a collection by command, with a newer file, once its last packs are counted."""
        ends = log_ends(self.configuration)

        def counted() -> bool:
            stored = committed(self.configuration)
            return all(stored[partition] >= end for partition, end in ends.items())

        if not wait_until(counted, READY_SECONDS):
            raise BrokerError("packs before a retirement were not counted")
        command = [sys.executable, "-m", "deploy", "retire", collection.name, "--config", str(later.path)]
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=RETIRE_SECONDS, check=False
        )
        offsets = re.findall(
            r"^partition (\d+): .* is retired from offset (\d+) on$", ended.stdout, re.MULTILINE
        )
        if len(offsets) != self.configuration.kafka.partitions:
            raise BrokerError(f"retire printed: {ended.stdout}{ended.stderr}")
        for partition, offset in offsets:
            self.retired.setdefault(int(partition), {})[collection.fingerprint] = int(offset)
        self.configuration = later

    def keep_running(self, least: int) -> None:
        """Start workers until this many run."""
        for _ in range(least - sum(worker.running for worker in self.alive)):
            self.start()

    def stop(self) -> None:
        """End all workers by SIGTERM."""
        stop([worker.child for worker in self.all], 15)

    def wait_until_open(self) -> bool:
        """Return whether every partition's ledger was opened in time."""
        partitions = self.configuration.kafka.partitions
        return wait_until(
            lambda: sum(worker.says("ledger open") for worker in self.alive) >= partitions, READY_SECONDS
        )

    def describe(self) -> str:
        """Return the last lines of every log."""
        return "\n".join(f"--- {worker.log.name}\n{last_lines(worker.log)}" for worker in self.all)

    def delete_data(self, worker: Worker) -> None:
        """Delete everything in its folder, like a lost volume."""
        shutil.rmtree(worker.folder)
        os.makedirs(worker.folder)
