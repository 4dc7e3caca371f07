"""A round: devices upload through two edges, relays fail, and what workers count is compared.

The relays are real: the command `deniable relay`, with a deployment's topics.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from deniable.aggregator.ledger.acceptance import Rejection
from deniable.aggregator.ledger.ledger import Ledger
from deniable.cluster.topics.plan import plan
from deniable.config.file import load
from deniable.deploy.cluster.topics.setup import create
from deniable.protocol import wire
from deniable.protocol.marker import RELAYS_BYTES
from deniable.protocol.uploads.frame import encode_frame
from deniable.protocol.uploads.relay_position import Position
from deniable.protocol.uploads.upload import Upload, decode_upload, encode_upload
from deniable.relay.service.outcomes import Totals, decode_outcomes, totals
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until
from tests.support.relay.logs import group_of
from tests.support.relay.uploaded import COLLECTIONS, INTAKE_GRACE, INTAKES, Counted, Uploaded

PARTITIONS = 2
EARLY_SECONDS = 1
LEAST_REPORTS = 600
BEGIN_SECONDS = 60.0
FILE = """revision: {revision}
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", partitions: {partitions}}}
relay: {{secret_file: secret, delivery_seconds: {delivery}, batch_reports: 300, shuffle_reports: {shuffle},
  pack_reports: 25, idle_seconds: 0.5}}
collections:
  - {{name: relayed-krr, mechanism: k-rr, size: 7, other: false, epsilon: 2.0, window_seconds: 2,
     grace_seconds: {grace}, budget: none}}
  - {{name: relayed-rappor, mechanism: rappor, bits: 16, hashes: 2, cohorts: 2, f: 0.25, p: 0.35, q: 0.65,
     candidates: [A], memoize: false, window_seconds: 3, grace_seconds: {grace}, budget: none}}
"""


class Round:
    """A collection file, its topics, two edges, and relays.

    Parameters
    ----------
    servers : of a broker.
    seed : of contents and resent uploads.
    grace_seconds : of the workers; relays take uploads for INTAKE_GRACE seconds after a window's end.
    """

    def __init__(self, servers: str, seed: int, grace_seconds: int = COLLECTIONS[0].grace_seconds) -> None:
        self.servers, self.chance, self.grace_seconds = servers, random.Random(seed), grace_seconds
        self.edges = [KafkaProducer(bootstrap_servers=servers, acks="all") for _ in range(2)]
        self.uploaded = Uploaded()
        self.relays: list[subprocess.Popen[bytes]] = []
        self.logs: list[Path] = []
        self._folder = tempfile.TemporaryDirectory()
        self._prefix = f"relay-{uuid.uuid4().hex[:10]}-"
        self.file = Path(self._folder.name) / "deniable.yaml"
        (self.file.parent / "secret").touch(0o600)
        (self.file.parent / "secret").write_bytes(bytes(range(32)))
        self.write()
        self.configuration = load(self.file, environment={})
        assert self.configuration.by_fingerprint().keys() == {each.fingerprint for each in COLLECTIONS}
        self._topics = self.configuration.topics
        create(self.configuration.cluster, self._topics, 1, self.configuration.collections)

    def write(self, revision: int = 1, shuffle: int = 20) -> None:
        """Write the collection file, which relays read when they start."""
        text = FILE.format(
            servers=self.servers,
            prefix=self._prefix,
            partitions=PARTITIONS,
            grace=self.grace_seconds,
            delivery=self.grace_seconds - INTAKE_GRACE,
            revision=revision,
            shuffle=shuffle,
        )
        self.file.write_text(text)

    def start(self, **order: Any) -> subprocess.Popen[bytes]:
        """Start a relay that takes this order: point, batches, kill and assigned."""
        given = {"partitions": PARTITIONS, "early_seconds": EARLY_SECONDS, **order}
        module = "tests.support.relay.relay_process"
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
        """Upload for some seconds, longer on a busy machine.

        A tenth is sent again at once, and a tenth again at the end. Nothing is sent before a relay has begun
        on each partition.
        """
        assert wait_until(self._has_begun, BEGIN_SECONDS)
        ends_at, least = time.monotonic() + seconds, self.uploaded.reports + LEAST_REPORTS
        while time.monotonic() < ends_at or self.uploaded.reports < least:
            self._send_some()
        self._send(self.chance.sample(self.uploaded.uploads, len(self.uploaded.uploads) // 10))

    def send_until(self, is_done: Callable[[], bool], seconds: float) -> None:
        """Upload until this is true; fail after so many seconds."""
        ends_at = time.monotonic() + seconds
        while not is_done():
            assert time.monotonic() < ends_at
            self._send_some()

    def _send_some(self) -> None:
        fresh = [self._upload() for _ in range(30)]
        data = [encode_upload(each) for each in fresh]
        self._send(data)
        for each in fresh:
            self.uploaded.add(each)
        self.uploaded.uploads += data
        self._send(self.chance.sample(data, 3))
        time.sleep(0.05)

    def _upload(self) -> Upload:
        groups = []
        for _ in range(self.chance.choice((1, 1, 2))):
            intake = self.chance.choice(INTAKES)
            now = int(time.time())
            groups.append(group_of(intake, self.chance, now - now % intake.window_seconds))
        return Upload(self.chance.randbytes(16), tuple(groups))

    def _send(self, uploads: Sequence[bytes]) -> None:
        """Send frames by one of the edges, and wait until Kafka has them."""
        edge, sent = self.chance.choice(self.edges), []
        for partition in range(PARTITIONS):
            own = [each for each in uploads if wire.partition_of(each[7:23], PARTITIONS) == partition]
            for first in range(0, len(own), 256):
                frame = encode_frame(own[first : first + 256])
                sent.append(edge.send(self._topics.uploads, frame, partition=partition))
        for each in sent:
            each.get(30)
        groups = (group for each in uploads for group in decode_upload(each).groups)
        self.uploaded.written += sum(group.reports for group in groups)

    def counted(self) -> Counted:
        """Fold `reports` as workers and `deniable replay` do."""
        found = Counted()
        by_fingerprint = {each.fingerprint: each for each in COLLECTIONS}
        for partition, records in self._read(self._topics.reports).items():
            ledger = Ledger(partition, PARTITIONS)
            ledger.agree(by_fingerprint, 1)
            for record in records:
                outcome = ledger.apply(record.offset, record.timestamp, record.value)
                found.records += 1
                if isinstance(outcome, Rejection):
                    found.rejected[outcome.reason] += 1
            for key, tally in ledger.counts.tallies.items():
                found.counts[key] = found.counts.get(key, 0) + tally.counts
        return found

    def _read(self, topic: str) -> Mapping[int, list[Any]]:
        sources = [TopicPartition(topic, each) for each in range(PARTITIONS)]
        consumer = KafkaConsumer(bootstrap_servers=self.servers, auto_offset_reset="earliest")
        records: dict[int, list[Any]] = {each.partition: [] for each in sources}
        try:
            consumer.assign(sources)
            ends = consumer.end_offsets(sources)
            while any(consumer.position(each) < ends[each] for each in sources):
                for source, batch in consumer.poll(200).items():
                    records[source.partition] += batch
        finally:
            consumer.close()
        return records

    def difference(self, counted: Counted) -> int:
        """Return the sum of absolute differences between what was uploaded and what is counted."""
        keys = self.uploaded.counts.keys() | counted.counts.keys()
        pairs = ((self.uploaded.counts.get(key, 0), counted.counts.get(key, 0)) for key in keys)
        return int(sum(np.abs(np.asarray(one) - other).sum() for one, other in pairs))

    def has_rewound(self) -> bool:
        """Whether a relay would now begin to read behind the first record of each partition."""
        consumer = KafkaConsumer(bootstrap_servers=self.servers, group_id=self._topics.relay_group)
        try:
            sources = [TopicPartition(self._topics.uploads, each) for each in range(PARTITIONS)]
            held = [consumer.committed(each, metadata=True) for each in sources]
        finally:
            consumer.close()
        return all(each and Position.of(each.offset, each.metadata).rewind > 0 for each in held)

    def _has_begun(self) -> bool:
        consumer = KafkaConsumer(bootstrap_servers=self.servers)
        try:
            sources = [TopicPartition(self._topics.uploads, each) for each in range(PARTITIONS)]
            return all(consumer.end_offsets(sources).values())
        finally:
            consumer.close()

    def outcomes(self) -> Totals:
        """Add up what relays say became of the uploads."""
        records = self._read(self._topics.rejected_uploads)
        return totals(decode_outcomes(each.value) for found in records.values() for each in found)

    def is_waited_for(self) -> bool:
        """Whether workers have said, in each partition, how far relays have sent."""
        records = self._read(self._topics.reports).values()
        return all(any(len(each.value) == RELAYS_BYTES for each in found) for found in records)

    def has_said_all(self) -> bool:
        """Whether accepted and rejected reports are what devices were told."""
        return self.outcomes().uploaded == self.uploaded.written

    def end(self, relay: subprocess.Popen[bytes], seconds: float = 30.0) -> int:
        """Stop a relay in good order once it works on a partition; return its exit status."""
        log = self.logs[self.relays.index(relay)]
        assert wait_until(lambda: "partition opened" in log.read_text(), BEGIN_SECONDS)
        relay.terminate()
        return relay.wait(seconds)

    def settled(self, seconds: float) -> Counted:
        """Wait until the difference is 0, at most so long; then once more, after all relays went on."""
        ends_at = time.monotonic() + seconds
        while self.difference(self.counted()) and time.monotonic() < ends_at:
            time.sleep(0.7)
        for relay in self.relays:
            if relay.poll() is None:
                relay.send_signal(signal.SIGCONT)
        time.sleep(2)
        return self.counted()

    def close(self) -> None:
        for relay in self.relays:
            relay.kill()
            relay.wait()
        for edge in self.edges:
            edge.close()
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            admin.delete_topics([each.name for each in plan(self._topics)])
        self._folder.cleanup()
