"""One round: devices upload through two edges, relays fail, and what workers count is compared."""

import json
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from aggregator.ledger.acceptance import Rejection
from aggregator.ledger.ledger import Ledger
from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.rappor import Rappor
from producers import wire
from producers.transport.uploads.frame import encode_frame
from producers.transport.uploads.upload import Upload, decode_upload, encode_upload
from relay.control import Intake, encode_settings
from relay.recovery import Position
from tests.support.paths import REPOSITORY
from tests.support.relay.logs import KEYS, group_of, settings_of

PARTITIONS = 2
REPORT_PARTITIONS = 3
INTAKE_GRACE = 4
EARLY_SECONDS = 1
LEAST_REPORTS = 600
COLLECTIONS = [
    Collection("relayed-krr", KRR.from_epsilon(7, 2.0), window_seconds=2, grace_seconds=120),
    Collection(
        "relayed-rappor",
        Rappor.from_probabilities(16, 2, 2, 0.25, 0.35, 0.65),
        window_seconds=3,
        grace_seconds=120,
    ),
]
INTAKES = [
    Intake(
        each.fingerprint,
        wire.mechanism_number(each.mechanism),
        each.width,
        each.cohorts,
        each.window_seconds,
        INTAKE_GRACE,
    )
    for each in COLLECTIONS
]

Counts = dict[tuple[int, int, int], np.ndarray[Any, Any]]


@dataclass
class Uploaded:
    """What devices uploaded: all uploads that were acknowledged, and the counts of their reports.

    `written` has the reports of all uploads, with those that were sent again.
    """

    uploads: list[bytes] = field(default_factory=list)
    counts: Counts = field(default_factory=dict)
    reports: int = 0
    written: int = 0

    def add(self, upload: Upload) -> None:
        for group in upload.groups:
            rows = np.frombuffer(group.rows, np.uint8)
            if group.mechanism == wire.RAPPOR_NUMBER:
                bits = np.unpackbits(rows, bitorder="little").reshape(-1, group.width)
                found = bits.sum(axis=0, dtype=np.int64)
            else:
                found = np.bincount(rows, minlength=group.width)
            key = (group.fingerprint, group.window_start, group.cohort)
            self.counts[key] = self.counts.get(key, 0) + found
            self.reports += group.reports


@dataclass
class Counted:
    """What a worker's ledgers count, rejected packs by reason, and records of `reports`."""

    counts: Counts = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    records: int = 0


class Round:
    """Topics, senders and relays of one round.

    Parameters
    ----------
    servers : of a broker.
    seed : of contents and resent uploads.
    """

    def __init__(self, servers: str, seed: int) -> None:
        self.servers, self.chance = servers, random.Random(seed)
        name = f"relay-{uuid.uuid4().hex[:10]}"
        self.uploads, self.reports = f"{name}-uploads", f"{name}-reports"
        self.report_partitions = REPORT_PARTITIONS
        self.edges = [KafkaProducer(bootstrap_servers=servers, acks="all") for _ in range(2)]
        self.uploaded = Uploaded()
        self.relays: list[subprocess.Popen[bytes]] = []
        self.begin(name)

    def begin(self, name: str) -> None:
        """Create topics, and append settings."""
        stamped = {"message.timestamp.type": "LogAppendTime"}
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            for topic, partitions in ((self.uploads, PARTITIONS), (self.reports, REPORT_PARTITIONS)):
                one = {"num_partitions": partitions, "replication_factor": 1, "configs": stamped}
                admin.create_topics({topic: one})
        settings = settings_of(*INTAKES, batch_reports=300, shuffle_reports=20, pack_reports=25)
        for each in range(PARTITIONS):
            record = encode_settings(KEYS, each, settings)
            self.edges[0].send(self.uploads, record, partition=each).get(30)

    def start(self, **order: Any) -> subprocess.Popen[bytes]:
        """Start a relay that takes this order: point, batches and kill, or defect."""
        given = {
            "servers": self.servers,
            "uploads": self.uploads,
            "reports": self.reports,
            "report_partitions": REPORT_PARTITIONS,
            "partitions": PARTITIONS,
            "early_seconds": EARLY_SECONDS,
            **order,
        }
        command = [sys.executable, "-m", "tests.support.relay.relay_process", json.dumps(given)]
        self.relays.append(subprocess.Popen(command, cwd=REPOSITORY))
        return self.relays[-1]

    def send(self, seconds: float) -> None:
        """Upload for some seconds, longer on a busy machine.

        A tenth is sent again at once, and a tenth again at the end.
        """
        ends_at, least = time.monotonic() + seconds, self.uploaded.reports + LEAST_REPORTS
        while time.monotonic() < ends_at or self.uploaded.reports < least:
            self._send_some()
        self._send(self.chance.sample(self.uploaded.uploads, len(self.uploaded.uploads) // 10))

    def send_until(self, is_done: Callable[[], bool], seconds: float) -> None:
        """Upload until this is true, at most for so many seconds, with relays that nothing stops beside."""
        self.start()
        ends_at = time.monotonic() + seconds
        while not is_done() and time.monotonic() < ends_at:
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
                sent.append(edge.send(self.uploads, frame, partition=partition))
        for each in sent:
            each.get(30)
        groups = (group for each in uploads for group in decode_upload(each).groups)
        self.uploaded.written += sum(group.reports for group in groups)

    def counted(self) -> Counted:
        """Fold `reports` as workers and `deniable replay` do."""
        found = Counted()
        by_fingerprint = {each.fingerprint: each for each in COLLECTIONS}
        for partition, records in self._records().items():
            ledger = Ledger(partition, self.report_partitions)
            ledger.agree(by_fingerprint, 1)
            for record in records:
                outcome = ledger.apply(record.offset, record.timestamp, record.value)
                found.records += 1
                if isinstance(outcome, Rejection):
                    found.rejected[outcome.reason] += 1
            for key, tally in ledger.counts.tallies.items():
                found.counts[key] = found.counts.get(key, 0) + tally.counts
        return found

    def _records(self) -> Mapping[int, list[Any]]:
        return self._read(self.reports, self.report_partitions)

    def _read(self, topic: str, partitions: int) -> Mapping[int, list[Any]]:
        sources = [TopicPartition(topic, each) for each in range(partitions)]
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
        consumer = KafkaConsumer(bootstrap_servers=self.servers, group_id=self.uploads)
        try:
            sources = [TopicPartition(self.uploads, each) for each in range(PARTITIONS)]
            held = [consumer.committed(each, metadata=True) for each in sources]
        finally:
            consumer.close()
        return all(each and Position.of(each.offset, each.metadata).rewind > 0 for each in held)

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
            admin.delete_topics(self.topics())

    def topics(self) -> list[str]:
        """Return the names of all topics of this round."""
        return [self.uploads, self.reports]
