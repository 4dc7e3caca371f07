"""Reports a second of one relay: a filled topic `uploads`, a real relay, a real broker."""

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from crc32c import crc32c
from kafka import KafkaProducer

from bench.aggregator.worker import cpu_seconds, memory_mib, metrics_of, value_of
from bench.sections import ResultRow, Section
from deniable.config.file import Configuration, load
from deniable.config.relay_secret import relay_secret
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import Child, deniable_command, spawn, stop
from deniable.deploy.cluster.topics.setup import create
from deniable.deploy.services.relay.command import relay_config
from deniable.estimators.collection import Collection
from deniable.protocol import wire
from deniable.protocol.uploads.frame import encode_frame
from deniable.protocol.uploads.upload import CRC_BYTES, Upload, UploadGroup, encode_upload
from deniable.relay.control import encode_settings
from deniable.relay.keys import RelayKeys

ABOUT = """\
One relay, a topic `uploads` that is full before it starts; processor time of the relay alone, and the
clock, with the broker on the same machine."""
GOALS = {1: 200_000.0, 10: 1_000_000.0}  # reports a CPU second, by the reports of an upload
FRAME_UPLOADS = 256
UPLOADS = "deniable_relay_uploads_total"
FILE = """revision: 1
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}"}}
relay: {{window_uploads: 100000000}}
collections:
{entry}
"""
KRR = """  - {name: browser, mechanism: k-rr, size: 100, epsilon: 2.0,
     window_seconds: 3600, grace_seconds: 3600, budget: none}"""
RAPPOR = """  - {name: page, mechanism: rappor, bits: 128, hashes: 2, cohorts: 8, f: 0.25, p: 0.35,
     q: 0.65, candidates: [A, B], window_seconds: 3600, grace_seconds: 3600, budget: none}"""


class RelayCase(NamedTuple):
    """A collection, uploads, and reports in each."""

    name: str
    entry: str
    uploads: int
    reports: int


LOGS = (
    RelayCase("k-RR, 100 values", KRR, 1_000_000, 1),
    RelayCase("k-RR, 100 values", KRR, 2_000_000, 10),
    RelayCase("RAPPOR, 128 bits, 8 cohorts", RAPPOR, 3_000_000, 1),
    RelayCase("RAPPOR, 128 bits, 8 cohorts", RAPPOR, 1_000_000, 10),
)


def relay() -> Section:
    """Measure all kinds of logs."""
    rows: list[ResultRow] = []
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        for number, case in enumerate(LOGS):
            file = Path(name) / f"relay-{number}.yaml"
            servers, prefix = broker.bootstrap_servers, f"relay-{number}-"
            file.write_text(FILE.format(servers=servers, prefix=prefix, entry=case.entry), encoding="utf-8")
            configuration = load(file, environment={})
            create(configuration.cluster, configuration.topics, 1)
            fill(configuration, case)
            rows.append(measure(configuration, case))
            click.echo(rows[-1])
    missed = [
        f"{row['collection']}, uploads of {row['reports an upload']}: {row['reports a CPU second']:,}"
        for row in rows
        if float(row["reports a CPU second"]) < GOALS[int(row["reports an upload"])]
    ]
    return Section(ABOUT, rows, missed=missed)


def fill(configuration: Configuration, case: RelayCase) -> None:
    """Append settings, then full frames of uploads with random ids, spread over all partitions."""
    topics, keys = configuration.topics, RelayKeys(relay_secret(configuration))
    settings = relay_config(configuration, keys).settings
    words = np.random.default_rng()
    with KafkaProducer(
        bootstrap_servers=configuration.kafka.bootstrap_servers, linger_ms=20, acks="all"
    ) as kafka:
        for partition in range(topics.partitions):
            kafka.send(topics.uploads, encode_settings(keys, partition, settings), partition=partition)
        (collection,) = configuration.collections
        frames = [_frame(collection, case.reports, cohort, words) for cohort in range(collection.cohorts)]
        for number in range(case.uploads // FRAME_UPLOADS):
            partition = number % topics.partitions
            frame = _with_new_ids(frames[number % len(frames)], partition, topics.partitions, words)
            kafka.send(topics.uploads, frame, partition=partition)
        kafka.flush(300)


def _frame(collection: Collection, reports: int, cohort: int, words: np.random.Generator) -> bytes:
    """Return a frame of uploads of this cohort; `_with_new_ids` gives them other ids."""
    mechanism = collection.mechanism.wire_number
    size = wire.report_bytes(mechanism, collection.width)
    start = collection.window_start(time.time())
    uploads = []
    for _ in range(FRAME_UPLOADS):
        values = words.integers(collection.width if size == 1 else 256, size=reports * size, dtype=np.uint8)
        numbers = (collection.fingerprint, mechanism, cohort, start, reports, collection.width)
        uploads.append(encode_upload(Upload(bytes(16), (UploadGroup(*numbers, values.tobytes()),))))
    return encode_frame(uploads)


def _with_new_ids(frame: bytes, partition: int, partitions: int, words: np.random.Generator) -> bytes:
    """Return the frame with other ids, in random order, which all belong to the partition."""
    size = int.from_bytes(frame[7:11], "little")
    body = np.frombuffer(frame, np.uint8)[-size * FRAME_UPLOADS :].reshape(FRAME_UPLOADS, size)
    uploads = words.permutation(body)
    ids = words.integers(2**63, size=(FRAME_UPLOADS, 2), dtype=np.uint64)
    ids[:, 0] = ids[:, 0] // np.uint64(partitions) * np.uint64(partitions) + np.uint64(partition)
    uploads[:, 7:23] = ids.view(np.uint8)
    sums = [crc32c(row) for row in uploads[:, :-CRC_BYTES].copy()]
    uploads[:, -CRC_BYTES:] = np.array(sums, "<u4").view(np.uint8).reshape(-1, CRC_BYTES)
    return frame[: -size * FRAME_UPLOADS] + uploads.tobytes()


def measure(configuration: Configuration, case: RelayCase) -> ResultRow:
    """Start a relay and follow what it has sent to the end of the log."""
    file, log = configuration.path, configuration.path.with_suffix(".log")
    child = spawn(deniable_command("relay", "--config", str(file), "--metrics-port", "0"), log)
    try:
        (began, first, before), (ended, last, after) = _followed(child, log, case)
        reports, seconds = (last - first) * case.reports, ended - began
        return {
            "collection": case.name,
            "reports an upload": case.reports,
            "uploads": case.uploads,
            "reports a CPU second": round(reports / (after - before)),
            "reports/s": round(reports / seconds),
            "relay at most, MiB": round(memory_mib(child, "VmHWM")),
        }
    finally:
        stop([child])


def _followed(child: Child, log: Path, case: RelayCase) -> tuple[tuple[float, float, float], ...]:
    """Return time, uploads and processor seconds at the first batches sent and at the last."""
    seen: list[tuple[float, float, float]] = []
    for moment, text in metrics_of(log):
        uploads = value_of(text, UPLOADS)
        if uploads and (not seen or uploads > seen[-1][1]):
            seen.append((moment, uploads, cpu_seconds(child)))
        if uploads >= case.uploads // FRAME_UPLOADS * FRAME_UPLOADS:
            break
    return seen[0], seen[-1]


CASES = {"relay": relay}
