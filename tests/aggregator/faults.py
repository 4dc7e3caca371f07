"""A run of workers under faults: load, faults, and a recount that shares no code with the ledger."""

import os
import random
import signal
import struct
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from deploy.children import Child, last_lines, signal_group, spawn, stop
from deploy.collection_file import Configuration, load
from deploy.topic_setup import create
from estimators.krr import KRR
from producers import wire

COLLECTIONS = """\
revision: 1
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", allow_plaintext: true}}
collections:
  - {{name: fruit, mechanism: k-rr, size: 300, other: false, epsilon: 2.0, window_seconds: 3600,
     grace_seconds: 3600, budget: none}}
  - {{name: place, mechanism: rappor, bits: 64, hashes: 2, cohorts: 3, f: 0.25, p: 0.35, q: 0.65,
     candidates: [A, B, C], window_seconds: 3600, grace_seconds: 3600, budget: none}}
"""
HEADER = struct.Struct("<4sBBHQQII16sI")
REPORTS = 20


def configure(folder: Path, servers: str, prefix: str) -> Configuration:
    """Write a collection file whose windows outlast the test, and make its topics."""
    file = folder / "deniable.yaml"
    file.write_text(COLLECTIONS.format(servers=servers, prefix=prefix), encoding="utf-8")
    configuration = load(file, environment={})
    create(servers, configuration.topics, 1)
    return configuration


@dataclass
class Workers:
    """Worker processes that are killed, paused and started again."""

    configuration: Configuration
    folder: Path
    running: list[Child] = field(default_factory=list)
    ended: list[Child] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)

    def start(self) -> None:
        log = self.folder / f"worker-{len(self.logs)}.log"
        self.logs.append(log)
        arguments = ["aggregate", "--config", str(self.configuration.path), "--web-port", "0"]
        self.running.append(spawn([sys.executable, "-m", "deploy", *arguments], log))

    def kill(self, number: signal.Signals) -> None:
        worker = self.running.pop(0)
        self.ended.append(worker)
        signal_group(worker, number)

    def stop(self) -> None:
        stop([*self.running, *self.ended])

    def tell(self) -> str:
        return "\n".join(f"--- {log.name}\n{last_lines(log)}" for log in self.logs)


class Load(threading.Thread):
    """Sends packs at a steady rate; every tenth twice, a third of those some seconds later."""

    def __init__(self, configuration: Configuration, packs_per_second: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.configuration = configuration
        self.packs_per_second = packs_per_second
        self.random = random.Random(seed)
        self.stopped = threading.Event()
        self.acknowledged: set[bytes] = set()
        self.sent = 0
        self.error: BaseException | None = None

    def run(self) -> None:
        kafka = KafkaProducer(
            bootstrap_servers=self.configuration.kafka.bootstrap_servers, acks="all", enable_idempotence=True
        )
        later: list[tuple[float, wire.Pack]] = []
        try:
            while not self.stopped.wait(0.05):
                for _ in range(self.packs_per_second // 20):
                    pack = self._pack()
                    self._send(kafka, pack)
                    if self.random.random() < 0.1:
                        delay = self.random.choice([0.0, 0.0, 8.0])
                        later.append((time.monotonic() + delay, pack))
                due = [pack for moment, pack in later if moment <= time.monotonic()]
                later = [(moment, pack) for moment, pack in later if moment > time.monotonic()]
                for pack in due:
                    self._send(kafka, pack)
            for _, pack in later:
                self._send(kafka, pack)
            kafka.flush(timeout=60)
        except BaseException as error:
            self.error = error
            raise
        finally:
            kafka.close(timeout=5)

    def _send(self, kafka: KafkaProducer, pack: wire.Pack) -> None:
        partitions = self.configuration.kafka.partitions
        partition = wire.partition_of(pack.pack_id, partitions)
        future = kafka.send(self.configuration.topics.reports, wire.encode(pack), partition=partition)
        future.add_callback(lambda _: self.acknowledged.add(pack.pack_id))
        self.sent += 1

    def _pack(self) -> wire.Pack:
        collection = self.random.choice(self.configuration.collections)
        krr = isinstance(collection.mechanism, KRR)
        window = collection.window_start(time.time())
        size = REPORTS * (2 if krr else collection.width // 8)
        payload = self.random.randbytes(size)
        if krr:
            payload = struct.pack(f"<{REPORTS}H", *[self.random.randrange(300) for _ in range(REPORTS)])
        return wire.Pack(
            mechanism=wire.mechanism_number(collection.mechanism),
            cohort=self.random.randrange(collection.cohorts),
            fingerprint=collection.fingerprint,
            window_start=window,
            reports=REPORTS,
            width=collection.width,
            pack_id=self.random.randbytes(16),
            payload=payload,
        )


def recount(configuration: Configuration) -> tuple[dict[tuple[int, int, int], Counter[int]], set[bytes]]:
    """Read the whole log and count it literally: by fingerprint, window and cohort, each pack id once."""
    topic, partitions = configuration.topics.reports, configuration.kafka.partitions
    consumer = KafkaConsumer(
        bootstrap_servers=configuration.kafka.bootstrap_servers, auto_offset_reset="earliest"
    )
    sources = [TopicPartition(topic, partition) for partition in range(partitions)]
    consumer.assign(sources)
    consumer.seek_to_beginning(*sources)
    ends = consumer.end_offsets(sources)
    counts: dict[tuple[int, int, int], Counter[int]] = {}
    seen: set[bytes] = set()
    while any(consumer.position(source) < ends[source] for source in sources):
        for batch in consumer.poll(timeout_ms=500).values():
            for record in batch:
                _count(record.value, counts, seen)
    consumer.close()
    return counts, seen


def _count(record: bytes, counts: dict[tuple[int, int, int], Counter[int]], seen: set[bytes]) -> None:
    if len(record) < HEADER.size or record[:4] != b"DNBL":
        return
    _, _, mechanism, cohort, fingerprint, window, reports, width, pack_id, _ = HEADER.unpack(
        record[: HEADER.size]
    )
    if pack_id in seen:
        return
    seen.add(pack_id)
    mine = counts.setdefault((fingerprint, window, cohort), Counter())
    payload = record[HEADER.size :]
    if mechanism == 1:
        mine.update(struct.unpack(f"<{reports}H", payload))
        return
    for start in range(0, len(payload), width // 8):
        row = int.from_bytes(payload[start : start + width // 8], "little")
        mine.update(bit for bit in range(width) if row >> bit & 1)


def pause(child: Child, seconds: float) -> threading.Timer:
    """Stop a worker as a suspended machine would, and let it go on later: a zombie by then."""
    os.killpg(child.pid, signal.SIGSTOP)
    timer = threading.Timer(seconds, lambda: signal_group(child, signal.SIGCONT))
    timer.start()
    return timer
