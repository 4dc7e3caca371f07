"""The workers of a run, and the collections that they have counted."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from urllib.request import urlopen

from deniable.config.file import Configuration
from deniable.deploy.broker.errors import BrokerError
from deniable.estimators.collection import Collection
from tests.chaos.processes.fleet import Fleet, is_ready
from tests.chaos.processes.positions import committed, log_ends
from tests.support.paths import REPOSITORY
from tests.support.processes import Process, wait_until

ROOT = REPOSITORY
READY_SECONDS = 120.0
RETIRE_SECONDS = 120.0
OLD_FILE = "Error: revision of the collection file must be"


class Worker(Process):
    """A worker, whose page is at the port that it prints."""

    @property
    def page(self) -> int:
        """The port of its page; 0 before it has one."""
        found = re.search(r"page: http://127\.0\.0\.1:(\d+)/", self.log.read_text(errors="replace"))
        return int(found[1]) if found else 0

    @property
    def ready(self) -> bool:
        """Whether `/readyz` answers 200."""
        return self.page != 0 and is_ready(self.page)

    def positions(self) -> dict[int, int]:
        """Return the next offset that it counts, by partition."""
        with urlopen(f"http://127.0.0.1:{self.page}/metrics", timeout=60) as answer:
            page = answer.read().decode()
        found = re.findall(r'^deniable_position_records{partition="(\d)"} (\S+)$', page, re.MULTILINE)
        return {int(partition): int(float(offset)) for partition, offset in found}


@dataclass
class Workers(Fleet):
    """The workers of a run.

    Parameters
    ----------
    known : collections that any of them counted, by fingerprint.
    retired : by partition and fingerprint, the offset from which packs are rejected.
    """

    known: dict[int, Collection] = field(default_factory=dict)
    retired: dict[int, dict[int, int]] = field(default_factory=dict)

    kind = Worker

    @property
    def died(self) -> list[Process]:
        """Return the workers that ended unexpectedly after they had counted.

        Not those that end because the broker is lost before they join the group, or because they have the
        former file and find a ledger that was opened with the new one.
        """
        return [worker for worker in super().died if worker.says("ledger open") and not worker.says(OLD_FILE)]

    def start(self, *options: str) -> Worker:
        """Start another worker."""
        self.known |= self.configuration.by_fingerprint()
        return self.run(options, "aggregate", "--web-port", "0")

    def retire(self, collection: Collection, later: Configuration) -> None:
        """Retire a collection by command, with a newer file, once its last packs are counted."""
        ends = log_ends(self.configuration)

        def counted() -> bool:
            stored = committed(self.configuration)
            return all(stored[partition] >= end for partition, end in ends.items())

        if not wait_until(counted, READY_SECONDS):
            raise BrokerError("packs before a retirement were not counted")
        command = [sys.executable, "-m", "deniable", "retire", collection.name, "--config", str(later.path)]
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

    def wait_until_open(self) -> bool:
        """Return whether every partition's ledger was opened in time."""
        partitions = self.configuration.kafka.partitions
        return wait_until(
            lambda: sum(worker.says("ledger open") for worker in self.alive) >= partitions, READY_SECONDS
        )

    def delete_data(self, worker: Process) -> None:
        """Delete everything in its folder, like a lost volume."""
        shutil.rmtree(worker.folder)
        worker.folder.mkdir()
