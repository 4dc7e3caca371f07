"""A deployment for measurements: equal RAPPOR collections of 128 bits on a broker of their own."""

import os
import time
from pathlib import Path

from kafka import KafkaProducer

from deploy.collection_file import Configuration, load
from deploy.topic_setup import create
from producers import wire

HEAD = 'revision: 1\nkafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}"}}\ncollections:\n'
ENTRY = (
    "  - {{name: c{number}, mechanism: rappor, bits: 128, hashes: 2, cohorts: 64, f: 0.25, p: 0.35,\n"
    "     q: 0.65, candidates: [A, B], window_seconds: 86400, grace_seconds: 86400, budget: none}}\n"
)
ROW_BYTES = 16
SEND_SECONDS = 300.0


def configure(folder: Path, servers: str, prefix: str, collections: int) -> Configuration:
    """Write a collection file, and make its topics."""
    text = HEAD.format(servers=servers, prefix=prefix)
    text += "".join(ENTRY.format(number=number) for number in range(collections))
    file = folder / f"{prefix}.yaml"
    file.write_text(text, encoding="utf-8")
    configuration = load(file, environment={})
    create(servers, configuration.topics, 1)
    return configuration


def fill(configuration: Configuration, packs: int, reports: int) -> None:
    """Send packs of random rows, spread over collections, cohorts and partitions."""
    payload, now = os.urandom(ROW_BYTES * reports), time.time()
    collections = configuration.collections
    with KafkaProducer(bootstrap_servers=configuration.kafka.bootstrap_servers, linger_ms=20) as kafka:
        for number in range(packs):
            collection = collections[number % len(collections)]
            pack_id = number.to_bytes(8, "little") + os.urandom(8)
            pack = wire.Pack(
                mechanism=wire.mechanism_number(collection.mechanism),
                cohort=number // len(collections) % collection.cohorts,
                fingerprint=collection.fingerprint,
                window_start=collection.window_start(now),
                reports=reports,
                width=collection.width,
                pack_id=pack_id,
                payload=payload,
            )
            partition = wire.partition_of(pack_id, configuration.kafka.partitions)
            kafka.send(configuration.topics.reports, wire.encode(pack), partition=partition)
        kafka.flush(timeout=SEND_SECONDS)
