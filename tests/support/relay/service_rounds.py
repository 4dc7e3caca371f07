"""A round with real relays: the command `deniable relay`, a deployment's topics, workers' counts."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from deploy.cluster.topics.plan import plan
from deploy.cluster.topics.setup import create
from deploy.config.file import load
from relay.service.outcomes import Totals, decode_outcomes, totals
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until
from tests.support.relay.rounds import COLLECTIONS, EARLY_SECONDS, INTAKE_GRACE, PARTITIONS, Round

BEGIN_SECONDS = 60.0
FILE = """revision: {revision}
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", partitions: {partitions}}}
relay: {{secret_file: secret, delivery_seconds: {delivery}, batch_reports: 300, shuffle_reports: {shuffle},
  pack_reports: 25, idle_seconds: 0.5}}
collections:
  - {{name: relayed-krr, mechanism: k-rr, size: 7, other: false, epsilon: 2.0, window_seconds: 2,
     grace_seconds: 120, budget: none}}
  - {{name: relayed-rappor, mechanism: rappor, bits: 16, hashes: 2, cohorts: 2, f: 0.25, p: 0.35, q: 0.65,
     candidates: [A], memoize: false, window_seconds: 3, grace_seconds: 120, budget: none}}
"""


class ServiceRound(Round):
    """Like `Round`, with real relays; `Round.start` takes `assigned` instead of a defect."""

    def begin(self, name: str) -> None:
        """Write the collection file and create its topics; relays append the settings."""
        self.logs: list[Path] = []
        self._folder = tempfile.TemporaryDirectory()
        self.file = Path(self._folder.name) / "deniable.yaml"
        self._prefix, self.report_partitions = f"{name}-", PARTITIONS
        (self.file.parent / "secret").touch(0o600)
        (self.file.parent / "secret").write_bytes(bytes(range(32)))
        self.write()
        self.configuration = load(self.file, environment={})
        assert self.configuration.by_fingerprint().keys() == {each.fingerprint for each in COLLECTIONS}
        create(self.configuration.cluster, self.configuration.topics, 1, self.configuration.collections)

    def write(self, revision: int = 1, shuffle: int = 20) -> None:
        """Write the collection file, which relays read when they start."""
        text = FILE.format(
            servers=self.servers,
            prefix=self._prefix,
            partitions=PARTITIONS,
            delivery=COLLECTIONS[0].grace_seconds - INTAKE_GRACE,
            revision=revision,
            shuffle=shuffle,
        )
        self.file.write_text(text)

    def start(self, **order: Any) -> subprocess.Popen[bytes]:
        """Start a relay that takes this order: point, batches, kill and assigned."""
        given = {"partitions": PARTITIONS, "early_seconds": EARLY_SECONDS, **order}
        module = "tests.support.relay.service_process"
        command = [sys.executable, "-m", module, str(self.file), json.dumps(given)]
        log = Path(os.environ.get("RELAY_LOGS", self._folder.name)) / f"{self._prefix}{len(self.relays)}.log"
        self.logs.append(log)
        with log.open("wb") as output:
            process = subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=output)
        self.relays.append(process)
        return process

    def reconnect(self) -> None:
        """Upload over new connections: after an outage, old ones wait so long that uploads come too late."""
        for edge in self.edges:
            edge.close()
        self.edges = [KafkaProducer(bootstrap_servers=self.servers, acks="all") for _ in self.edges]

    def send(self, seconds: float) -> None:
        """Upload as edges do: not before a relay has begun on each partition."""
        assert wait_until(self._has_begun, BEGIN_SECONDS)
        super().send(seconds)

    def _has_begun(self) -> bool:
        consumer = KafkaConsumer(bootstrap_servers=self.servers)
        try:
            sources = [TopicPartition(self.uploads, each) for each in range(PARTITIONS)]
            return all(consumer.end_offsets(sources).values())
        finally:
            consumer.close()

    def outcomes(self) -> Totals:
        """Add up what relays say became of the uploads."""
        topics = self.configuration.topics
        records = self._read(topics.rejected_uploads, topics.partitions)
        return totals(decode_outcomes(each.value) for found in records.values() for each in found)

    def has_said_all(self) -> bool:
        """Whether accepted and rejected reports are what devices were told."""
        return self.outcomes().uploaded == self.uploaded.written

    def end(self, relay: subprocess.Popen[bytes], seconds: float = 30.0) -> int:
        """Stop a relay in good order once it works on a partition; return its exit status."""
        log = self.logs[self.relays.index(relay)]
        assert wait_until(lambda: "partition opened" in log.read_text(), BEGIN_SECONDS)
        relay.terminate()
        return relay.wait(seconds)

    def topics(self) -> list[str]:
        return [each.name for each in plan(self.configuration.topics)]

    def close(self) -> None:
        super().close()
        self._folder.cleanup()
