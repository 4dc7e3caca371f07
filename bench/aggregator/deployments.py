"""A deployment for measurements: collections on a separate broker, and packs of random reports."""

import os
import time
from pathlib import Path

import numpy as np
from kafka import KafkaAdminClient, KafkaProducer

from deploy.cluster.topics.setup import create
from deploy.config.file import Configuration, load
from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from producers import wire

HEAD = 'revision: 1\nkafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}"}}\ncollections:\n'
RAPPOR_128 = (
    "  - {{name: c{number}, mechanism: rappor, bits: 128, hashes: 2, cohorts: 64, f: 0.25, p: 0.35,\n"
    "     q: 0.65, candidates: [A, B], window_seconds: 86400, grace_seconds: 86400, budget: none}}\n"
)
SEND_SECONDS = 300.0


def configure(
    folder: Path, servers: str, prefix: str, collections: int, entry: str = RAPPOR_128
) -> Configuration:
    """Write a collection file with this many equal entries, `{number}` in each, and create its topics."""
    text = HEAD.format(servers=servers, prefix=prefix)
    text += "".join(entry.format(number=number) for number in range(collections))
    file = folder / f"{prefix}.yaml"
    file.write_text(text, encoding="utf-8")
    configuration = load(file, environment={})
    create(configuration.cluster, configuration.topics, 1)
    return configuration


def payload_of(collection: Collection, reports: int) -> bytes:
    """Random reports: uniform bits or buckets."""
    if isinstance(collection.mechanism, KRR):
        size = wire.bucket_dtype(collection.width)
        return np.random.default_rng().integers(collection.width, size=reports).astype(size).tobytes()
    return os.urandom(collection.width // 8 * reports)


def send(
    kafka: KafkaProducer,
    configuration: Configuration,
    collection: Collection,
    payload: bytes,
    reports: int,
    *,
    cohort: int = 0,
    home: int | None = None,
    window_start: int | None = None,
) -> None:
    """Send a pack for a window, by default the current one, to the partition `home`, by default any."""
    partitions = configuration.kafka.partitions
    pack_id = os.urandom(wire.PACK_ID_BYTES)
    while home is not None and wire.partition_of(pack_id, partitions) != home:
        pack_id = os.urandom(wire.PACK_ID_BYTES)
    pack = wire.Pack(
        mechanism=wire.mechanism_number(collection.mechanism),
        cohort=cohort,
        fingerprint=collection.fingerprint,
        window_start=collection.window_start(time.time()) if window_start is None else window_start,
        reports=reports,
        width=collection.width,
        pack_id=pack_id,
        payload=payload,
    )
    partition = wire.partition_of(pack_id, partitions)
    kafka.send(configuration.topics.reports, wire.encode(pack), partition=partition)


def fill(configuration: Configuration, packs: int, reports: int) -> None:
    """Send packs, spread over collections, cohorts and partitions."""
    collections = configuration.collections
    payload = payload_of(collections[0], reports)
    with KafkaProducer(bootstrap_servers=configuration.kafka.bootstrap_servers, linger_ms=20) as kafka:
        for number in range(packs):
            collection = collections[number % len(collections)]
            cohort = number // len(collections) % collection.cohorts
            send(kafka, configuration, collection, payload, reports, cohort=cohort)
        kafka.flush(timeout=SEND_SECONDS)


def bytes_on_disk(servers: str, topic: str) -> int:
    """Size of a topic's segments in all partitions, bytes."""
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        (found,) = admin.describe_log_dirs([topic])
    described = [one for folder in found["log_dirs"] for one in folder["topics"]]
    return sum(partition["partition_size"] for one in described for partition in one["partitions"])
