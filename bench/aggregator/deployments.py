"""A deployment for measurements: collections on a separate broker, and packs of random reports."""

import asyncio
import os
import time
from pathlib import Path

import numpy as np
from aiokafka import AIOKafkaProducer
from kafka import KafkaAdminClient, KafkaProducer

from bench.aggregator.packs import packs_of
from deniable.config.file import Configuration, load
from deniable.deploy.cluster.topics.setup import create
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.transport.connection import BATCH_BYTES
from deniable.protocol import wire

HEAD = (
    "revision: 1\n"
    'kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", partitions: {partitions}}}\n'
    "collections:\n"
)
RAPPOR_128 = (
    "  - {{name: c{number}, mechanism: rappor, bits: 128, hashes: 2, cohorts: 64, f: 0.25, p: 0.35,\n"
    "     q: 0.65, candidates: [A, B], window_seconds: 86400, grace_seconds: 86400, budget: none}}\n"
)
SEND_SECONDS = 300.0


def configure(
    folder: Path, servers: str, prefix: str, collections: int, entry: str = RAPPOR_128, partitions: int = 4
) -> Configuration:
    """Write a collection file with this many equal entries, `{number}` in each, and create its topics."""
    text = HEAD.format(servers=servers, prefix=prefix, partitions=partitions)
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
    low, high = os.urandom(8), os.urandom(wire.PACK_ID_BYTES - 8)
    if home is not None:
        number = int.from_bytes(low, "little") // 2 // partitions * partitions + home
        low = number.to_bytes(8, "little")
    pack_id = low + high
    pack = wire.Pack(
        mechanism=collection.mechanism.wire_number,
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


def fill(configuration: Configuration, packs: int, reports: int, window_start: int | None = None) -> bytes:
    """Append packs as our producers do, acks=all and batches of their size, to partitions of equal length.

    Parameters
    ----------
    configuration : of the deployment; all its collections have one mechanism.
    packs, reports : numbers of packs, and of reports in each.
    window_start : of all packs, unix seconds; by default the present window.

    Returns
    -------
    The payload of every pack.
    """
    return asyncio.run(_filled(configuration, packs, reports, window_start))


async def _filled(configuration: Configuration, packs: int, reports: int, window_start: int | None) -> bytes:
    collections, topics = configuration.collections, configuration.topics
    payload = payload_of(collections[0], reports)
    start = collections[0].window_start(time.time()) if window_start is None else window_start
    step = max(1, BATCH_BYTES // (wire.HEADER_BYTES + len(payload)))
    servers = configuration.kafka.bootstrap_servers
    async with AIOKafkaProducer(bootstrap_servers=servers, acks="all", max_batch_size=BATCH_BYTES) as kafka:

        async def fill_partition(home: int) -> None:
            for first in range(home * step, packs, topics.partitions * step):
                numbers = range(first, min(packs, first + step))
                batch = kafka.create_batch()
                for pack in packs_of(collections, numbers, payload, reports, start, home, topics.partitions):
                    if batch.append(key=None, value=pack, timestamp=None) is None:
                        await kafka.send_batch(batch, topics.reports, partition=home)
                        batch = kafka.create_batch()
                        batch.append(key=None, value=pack, timestamp=None)
                await kafka.send_batch(batch, topics.reports, partition=home)

        await asyncio.gather(*map(fill_partition, range(topics.partitions)))
        await kafka.flush()
    return payload


def bytes_on_disk(servers: str, topic: str) -> int:
    """Size of a topic's segments in all partitions, bytes."""
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        (found,) = admin.describe_log_dirs([topic])
    described = [one for folder in found["log_dirs"] for one in folder["topics"]]
    return sum(partition["partition_size"] for one in described for partition in one["partitions"])
