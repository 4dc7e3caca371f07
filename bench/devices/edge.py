"""Durable uploads a second of an edge, beside a plain handler: a real broker, real sockets."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import click
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from bench.aggregator.worker import cpu_seconds
from bench.devices.load import Target
from bench.sections import ResultRow, Section
from deniable.config.file import Configuration, load
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import Child, deniable_command, spawn, stop
from deniable.deploy.broker.ports import free_port

ABOUT = """\
Uploads of one report over 256 keep-alive connections, each answered once Kafka has it (acks=all): an
edge, and plain handlers that await `send_and_wait` for each. These decode an upload and know its
collection; the edge also checks buckets, cohort, window and rate limit. It knows a head that it has seen
on the same connection, which is what a device's requests have; so it is measured with heads that vary
too. Processor time of the server alone, pinned to a core; load and broker share the other. A closed loop
finds out how fast each server is; then requests leave by a timetable at half of the goal, and their
latency counts from the timetable. Medians of interleaved rounds."""
ROUNDS = 3
SECONDS = 8.0
CONNECTIONS = 256
GOAL = 16_500.0  # uploads a second of one core
TIMES_A_PLAIN_HANDLER = 5
ALLOWED_MS = 50.0  # p99 at half of the goal
PARTITIONS = 4
START_SECONDS = 20.0
RATE = "uploads a CPU second"
FILE = """revision: 1
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "edge-", partitions: 4}}
edge: {{uploads_per_minute: 1000000000}}
collections:
  - {{name: browser, mechanism: k-rr, size: 100, other: false, epsilon: 2.0, window_seconds: 3600,
     grace_seconds: 3600, budget: none}}
"""
VARIED = "edge, heads that vary"
NAMES = ("edge", VARIED, "aiohttp, asyncio", "aiohttp, uvloop")


def edge() -> Section:
    """Measure all servers."""
    cores = sorted(os.sched_getaffinity(0))
    others, server = set(cores[1:]) or set(cores), {cores[0]}
    os.sched_setaffinity(0, others)  # the broker inherits it
    found: dict[str, list[dict[str, float]]] = {name: [] for name in NAMES}
    try:
        with tempfile.TemporaryDirectory() as folder, Broker() as broker:
            configuration = configure(Path(folder), broker.bootstrap_servers)
            for _ in range(ROUNDS):
                for name in NAMES:
                    found[name].append(_measured(name, configuration, server, others))
                    click.echo(f"{name}: {found[name][-1]}")
    finally:
        os.sched_setaffinity(0, cores)
    rows = [_row(name, found) for name in NAMES]
    return Section(ABOUT, rows, missed=missed(rows))


def missed(rows: Sequence[ResultRow]) -> list[str]:
    """What falls short of its goal."""
    slow = [
        f"{row['server']}: {row[RATE]:,} uploads a CPU second, of {GOAL:,.0f} asked"
        for row in rows[:2]
        if float(row[RATE]) < GOAL
    ]
    beside = [
        f"{row['edge is faster by']} times {row['server']}, of {TIMES_A_PLAIN_HANDLER} asked"
        for row in rows[2:]
        if float(row["edge is faster by"]) < TIMES_A_PLAIN_HANDLER
    ]
    late = float(rows[0]["p99, ms"])
    return [*slow, *beside, *([f"p99 is {late} ms, of {ALLOWED_MS:g}"] if late > ALLOWED_MS else [])]


def configure(folder: Path, servers: str) -> Configuration:
    """Write a collection file, and create the topic with a record in each partition, as a relay would."""
    file = folder / "deniable.yaml"
    file.write_text(FILE.format(servers=servers), encoding="utf-8")
    configuration = load(file, environment={})
    topic = configuration.topics.uploads
    admin = KafkaAdminClient(bootstrap_servers=servers)
    settings = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(topic, PARTITIONS, 1, topic_configs=settings)])
    admin.close()
    with KafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        for partition in range(PARTITIONS):
            producer.send(topic, b"begun", partition=partition).get(START_SECONDS)
    return configuration


def _command(name: str, configuration: Configuration, port: int) -> list[str]:
    if name in ("edge", VARIED):
        return deniable_command("edge", "--config", str(configuration.path), "--listen", f"127.0.0.1:{port}")
    (collection,) = configuration.collections
    servers, topic = configuration.kafka.bootstrap_servers, configuration.topics.uploads
    loop = name.split(", ")[1]
    numbers = (str(PARTITIONS), str(port), loop, str(collection.fingerprint))
    return [sys.executable, "-m", "bench.devices.plain_handler", servers, topic, *numbers]


def _measured(name: str, configuration: Configuration, core: set[int], others: set[int]) -> dict[str, float]:
    """Return a server's figures of one round."""
    (collection,) = configuration.collections
    target = Target(
        *(free_port(), collection.fingerprint, 1, collection.width, 3600, CONNECTIONS, SECONDS),
        is_varied=name == VARIED,
    )
    with _running(
        _command(name, configuration, target.port), core, others, configuration.path.parent
    ) as child:
        _ask(replace(target, seconds=0.5), child)  # until it answers, and to warm it up
        fast, processor = _ask(target, child)
        slow, _ = _ask(replace(target, rate=GOAL / 2), child)
    uploads = fast["statuses"].get("204", 0)
    return {
        RATE: uploads / processor,
        "uploads/s": uploads / fast["seconds"],
        "p50": slow["p50"] * 1000,
        "p99": slow["p99"] * 1000,
        "at this rate": slow["statuses"].get("204", 0) / slow["seconds"],
        "errors": fast["lost"] + slow["lost"] + _others(fast) + _others(slow),
    }


def _others(figures: dict[str, Any]) -> int:
    return sum(number for status, number in figures["statuses"].items() if status != "204")


@contextmanager
def _running(command: Sequence[str], core: set[int], others: set[int], folder: Path) -> Iterator[Child]:
    os.sched_setaffinity(0, core)
    try:
        child = spawn(command, folder / "server.log")
    finally:
        os.sched_setaffinity(0, others)
    try:
        yield child
    finally:
        stop([child])


def _ask(target: Target, server: Child) -> tuple[dict[str, Any], float]:
    """Run a load; return its figures and the server's processor seconds while it was measured."""
    load_command = [sys.executable, "-m", "bench.devices.load", json.dumps(asdict(target))]
    ends = time.monotonic() + START_SECONDS
    while True:
        with subprocess.Popen(load_command, stdout=subprocess.PIPE, text=True) as process:
            if process.stdout is None:
                raise AssertionError("it has a pipe")
            marks = []
            while (line := process.stdout.readline()) in ("begins\n", "ends\n"):
                marks.append(cpu_seconds(server))
        if line:
            return json.loads(line), marks[1] - marks[0]
        if time.monotonic() > ends:
            raise TimeoutError("the server does not answer")
        time.sleep(0.3)


def _row(name: str, found: dict[str, list[dict[str, float]]]) -> ResultRow:
    middle = {key: median(each[key] for each in found[name]) for key in found[name][0]}
    best = median(each[RATE] for each in found["edge"])
    return {
        "server": name,
        RATE: round(middle[RATE]),
        "edge is faster by": round(best / middle[RATE], 1),
        "uploads/s, closed loop": round(middle["uploads/s"]),
        f"uploads/s of {GOAL / 2:.0f}": round(middle["at this rate"]),
        "p50, ms": round(middle["p50"], 1),
        "p99, ms": round(middle["p99"], 1),
        "errors": round(sum(each["errors"] for each in found[name])),
    }


CASES = {"edge": edge}
