"""Speed of reading and exporting a month of minutes of a collection of 100 values."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import click
import numpy as np
from kafka import KafkaProducer
from msgspec.structs import replace

from bench.sections import ResultRow, Section
from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.functions.read import read_estimates
from deniable.cluster.cluster import Cluster
from deniable.config.file import Configuration, load
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import deniable_command, last_lines, spawn
from deniable.deploy.cluster.topics.setup import create
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR

DAYS, VALUES, REPORTS = 30, 100, 20_000
DAY_WINDOWS = 1440
WINDOWS = DAYS * DAY_WINDOWS
START = 1_767_225_600
RUNS = 3
READ_GOAL_SECONDS, EXPORT_GOAL = 5.0, 20_000
PROVISIONAL = 4
COLLECTION_FILE = """\
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "bench-{name}-", partitions: 4}}
collections:
  - {{name: page, mechanism: k-rr, size: {values}, other: false, epsilon: 2.0, window_seconds: 60,
     grace_seconds: 30, budget: none}}
"""


def configured(folder: Path, servers: str, name: str) -> Configuration:
    """Write a collection file, and create its topics."""
    file = folder / f"{name}.yaml"
    file.write_text(COLLECTION_FILE.format(servers=servers, name=name, values=VALUES), encoding="utf-8")
    loaded = load(file, environment={})
    create(Cluster(servers), loaded.topics, 1)
    return loaded


def day(collection: Collection) -> list[EstimateRecord]:
    """Return the estimates of a day's minutes, of simulated counts."""
    mechanism = collection.mechanism
    if not isinstance(mechanism, KRR):
        raise TypeError(f"mechanism must be k-rr, got {mechanism.name}")
    generator = np.random.default_rng(1)
    shares = 1 / np.arange(1, VALUES + 1)
    expected = shares / shares.sum() * mechanism.contrast + mechanism.q
    found = []
    for number in range(DAY_WINDOWS):
        counts = generator.multinomial(REPORTS, expected / expected.sum())[None].astype(np.int64)
        window = WindowCounts(counts, np.array([REPORTS]), packs=1, rejected=0)
        result = window_estimate.estimate(collection, window)
        start = START + 60 * number
        found.append(window_estimate.record_of(collection, start, window, result, final=True))
    return found


def month(collection: Collection, provisional: int) -> Iterator[tuple[bytes, bytes]]:
    """Key and JSON of the estimates of a month of like days: some provisional ones before each final one."""
    minutes = day(collection)
    for number in range(WINDOWS):
        start = START + 60 * number
        for revision in range(provisional + 1):
            record = replace(
                minutes[number % DAY_WINDOWS],
                window_start=start,
                window_end=start + 60,
                revision=revision + 1,
                final=revision == provisional,
            )
            yield record.key, encode_estimate(record)


def fill(configuration: Configuration, provisional: int) -> float:
    """Write a month to the topic; return its size in MB."""
    size = 0
    with KafkaProducer(
        bootstrap_servers=configuration.kafka.bootstrap_servers, batch_size=1 << 19, linger_ms=20
    ) as producer:
        topics = configuration.topics
        for number, (key, value) in enumerate(month(configuration.collections[0], provisional)):
            producer.send(topics.estimates, value, key, partition=number % topics.partitions)
            size += len(value)
    return size / 1e6


def timed(read: Callable[[], int]) -> float:
    """Return the median seconds of a read that must give every value of the month."""
    seconds = []
    for _ in range(RUNS):
        began = time.perf_counter()
        rows = read()
        seconds.append(time.perf_counter() - began)
        if rows != WINDOWS * VALUES:
            raise click.ClickException(f"read {rows} rows instead of {WINDOWS * VALUES}")
    return median(seconds)


def exported(configuration: Configuration, output: Path, ending: str) -> float:
    """Run `deniable export` in a process of its own; return its seconds, start included."""
    began = time.perf_counter()
    command = deniable_command(
        "export", "page", "--config", str(configuration.path), "--output", str(output), "--format", ending
    )
    log = output.with_suffix(".log")
    child = spawn(command, log)
    if child.wait():
        raise click.ClickException(f"export failed:\n{last_lines(log)}")
    return time.perf_counter() - began


def rows(folder: Path, servers: str) -> list[ResultRow]:
    """Measure everything."""
    found: list[ResultRow] = []
    reads = {
        "topic, final estimates alone": 0,
        f"topic, {PROVISIONAL} provisional ones before each": PROVISIONAL,
    }
    for place, (name, provisional) in enumerate(reads.items()):
        loaded = configured(folder, servers, f"m{place}")
        size = fill(loaded, provisional)
        seconds = timed(lambda loaded=loaded: len(read_estimates(loaded, collection="page")))  # type: ignore[misc]
        found.append(row(f"read from the {name}", size, seconds))
        if provisional:
            continue
        for ending in ("parquet", "csv"):
            output = folder / ending
            found.append(row(f"export to {ending}", size, exported(loaded, output, ending)))
            mega = sum(path.stat().st_size for path in output.rglob(f"*.{ending}")) / 1e6
            seconds = timed(
                lambda output=output: len(read_estimates(files=output, collection="page"))  # type: ignore[misc]
            )
            found.append(row(f"read from {ending}", mega, seconds))
    return found


def row(what: str, megabytes: float, seconds: float) -> ResultRow:
    """Return a line of the table."""
    return {
        "what": what,
        "MB read": round(megabytes),
        "seconds": seconds,
        "windows a minute": round(WINDOWS / seconds * 60),
    }


def month_of_minutes() -> Section:
    """Measure everything on one broker."""
    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        found = rows(Path(folder), broker.bootstrap_servers)
    about = (
        f"A month of minutes ({WINDOWS:,} windows) of a collection of {VALUES} values, k-RR, as a worker "
        f"writes them, into a table of {WINDOWS * VALUES:,} rows, or from the topic to files. Medians of "
        f"{RUNS} runs, exports once, with the start of the command. The broker is on the same machine. "
        f"Goals: reading in less than {READ_GOAL_SECONDS:g} s, {EXPORT_GOAL:,} windows a minute exported."
    )
    by_name = {str(each["what"]): each for each in found}
    read = float(by_name["read from the topic, final estimates alone"]["seconds"])
    export = float(by_name["export to parquet"]["windows a minute"])
    missed = [f"the month is read in {read:.1f} s"] if read >= READ_GOAL_SECONDS else []
    missed += [f"{export:,.0f} windows a minute are exported"] if export < EXPORT_GOAL else []
    return Section(about, found, missed=missed)


CASES = {"a month of minutes": month_of_minutes}
