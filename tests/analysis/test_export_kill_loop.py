"""`deniable export --follow` is killed again and again on a real Kafka: each window is in the files once."""

import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

import deniable
from aggregator.records.estimate import EstimateRecord, encode_estimate
from aggregator.records.final_window import FinalWindow, encode_pages
from aggregator.records.window_counts import WindowCounts
from analysis.export.local_folder import UNFINISHED
from analysis.tables.export_state import state_folder
from deploy.broker.child_processes import Child
from deploy.cluster.topics.setup import connected
from deploy.config.file import load
from producers.transport.cluster import Cluster
from tests.analysis.s3_server import HeldUpload, S3Server
from tests.analysis.test_day_files import FINAL
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

parquet = pytest.importorskip("pyarrow.parquet", reason="the extra analysis is not installed")
csv = pytest.importorskip("pyarrow.csv", reason="the extra analysis is not installed")
pytestmark = [pytest.mark.broker, pytest.mark.all]

START = 1_769_817_600
#: Between two windows in the log: the hour before the progress, from where runs read, has few of them.
LOG_MILLISECONDS = 30_000
DAYS_MILLISECONDS = 5 * 86_400_000
ROWS = {"estimates": len(FINAL.values) + 1, "windows": 1}
VERSION = {"estimates": "revision", "windows": "packs"}

Found = Counter[tuple[int, int]]


class Worker(threading.Thread):
    """Writes final estimates and windows of one period after the other, of each tenth an older one anew."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(daemon=True)
        loaded = load(deployment.folder / "deniable.yaml", environment={})
        self.topics = loaded.topics
        self.collection = loaded.collection("carrier")
        self.servers = deployment.servers
        self.ends = threading.Event()
        self.newest: dict[int, int] = {}
        self.log_ms = time.time_ns() // 1_000_000 - DAYS_MILLISECONDS

    def run(self) -> None:
        chance = random.Random(5)
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for number in count():
                self.log_ms = min(self.log_ms + LOG_MILLISECONDS, time.time_ns() // 1_000_000)
                self.send(producer, START + 2 * number, 1)
                if number % 10 == 0:
                    self.send(producer, START + 2 * chance.randrange(number + 1), 2 + number)
                if number % 50 == 0:
                    producer.flush()
                    if self.ends.wait(0.3):
                        return

    def send(self, producer: KafkaProducer, start: int, revision: int) -> None:
        collection = self.collection
        record: EstimateRecord = msgspec.structs.replace(
            FINAL,
            collection="carrier",
            fingerprint=f"{collection.fingerprint:016x}",
            window_start=start,
            window_end=start + 2,
            revision=revision,
            reports=revision,
        )
        self.newest[start] = revision
        place = start // 2 % self.topics.partitions
        self.append(producer, self.topics.estimates, place, record.key, encode_estimate(record))
        counts = WindowCounts(
            np.full((1, collection.width), revision), np.array([revision]), packs=revision, rejected=0
        )
        for key, value in encode_pages(FinalWindow.of(collection, start, counts)):
            self.append(producer, self.topics.windows, place, key, value)

    def append(
        self, producer: KafkaProducer, topic: str, place: int, key: bytes | None, value: bytes
    ) -> None:
        producer.send(topic, value, key, partition=place, timestamp_ms=self.log_ms)


@dataclass(frozen=True)
class Export:
    """An export of one kind and format, to a folder or a prefix of a bucket.

    Parameters
    ----------
    kind, ending : of its files.
    output : the folder, or the URL of the prefix.
    store : of the prefix.
    """

    kind: str
    ending: str
    output: Path | str
    store: S3Server | None = None

    @property
    def command(self) -> tuple[str, ...]:
        """Arguments of `deniable`."""
        options = ("--of", self.kind, "--format", self.ending, "--output", str(self.output))
        return "export", "carrier", *options

    def contents(self) -> Iterator[bytes]:
        """Content of each file, as it is there."""
        if self.store is None:
            yield from (path.read_bytes() for path in Path(self.output).rglob(f"*.{self.ending}"))
            return
        yield from map(self.store.content, self.store.names(str(self.output)))

    def found(self) -> Found:
        """Rows of each window and version, by readers that know nothing of deniable."""
        import pyarrow as pa

        found: Found = Counter()
        for content in self.contents():
            source, names = pa.BufferReader(content), ["window_start", VERSION[self.kind]]
            table = (parquet.read_table if self.ending == "parquet" else csv.read_csv)(source).select(names)
            starts = table["window_start"].cast(pa.timestamp("s", "UTC")).cast("int64").to_pylist()
            found.update(zip(starts, table[names[1]].to_pylist(), strict=True))
        return found

    def check_whole(self) -> None:
        """No window twice, in two versions, or in part; and no file that cannot be read."""
        found = self.found()
        assert set(found.values()) <= {ROWS[self.kind]}
        assert len({start for start, _ in found}) == len(found)

    def has(self, newest: Mapping[int, int]) -> bool:
        """Whether it has exactly these windows and versions."""
        return self.found() == {each: ROWS[self.kind] for each in newest.items()}


def kill(run: Child) -> None:
    run.send_signal(signal.SIGKILL)
    run.wait(30)


def in_work(export: Export) -> set[Path]:
    """Files that are being written."""
    return set(state_folder(Path(export.output)).glob(f"*.{export.ending}{UNFINISHED}"))


def places(export: Export) -> set[tuple[Path, int]]:
    """Files and their inodes: another set as soon as one was replaced."""
    return {(path, path.stat().st_ino) for path in Path(export.output).rglob(f"*.{export.ending}")}


@pytest.fixture
def worker(broker: str, topic_prefix: str, tmp_path: Path) -> Iterator[Worker]:
    """A worker in a deployment at `tmp_path`."""
    deployment = Deployment(tmp_path, broker, topic_prefix)
    deployment.create_topics()
    worker = Worker(deployment)
    times = {"message.timestamp.type": "CreateTime"}
    with connected(Cluster(broker)) as admin:
        topics = (worker.topics.estimates, worker.topics.windows)
        admin.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, each, configs=times) for each in topics]
        )
    yield worker
    if worker.is_alive():
        worker.ends.set()
        worker.join()


@pytest.mark.nightly
def test_kills_leave_each_window_once(worker: Worker, broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """After each kill and at the end: no window twice or in two revisions, and no file that cannot be read.

    Killed are exports of each kind and format, near their start, while a file is written, and after some are.
    Catches progress that is kept before the files are (windows are missing at the end), and files that are
    appended to or written in place.
    """
    deployment, chance = Deployment(tmp_path, broker, topic_prefix), random.Random(9)
    exports = [
        Export(kind, ending, tmp_path / f"{kind}-{ending}")
        for kind in ("estimates", "windows")
        for ending in ("parquet", "csv")
    ]
    worker.start()
    for number, moment in enumerate(("written", "start", "replaced")):
        for export in exports:
            log = f"{export.kind}-{export.ending}-{number}.log"
            Path(export.output).mkdir(exist_ok=True)
            before = places(export)
            with deployment.running(log, *export.command, "--follow") as run:
                if moment == "start":
                    time.sleep(chance.uniform(0.5, 1.5))
                elif moment == "written":
                    assert _soon(lambda export=export: bool(in_work(export))), deployment.output(log)
                    time.sleep(chance.uniform(0, 0.02))
                else:
                    assert _soon(lambda export=export, before=before: places(export) != before)
                    time.sleep(chance.uniform(0, 0.1))
                kill(run)
            export.check_whole()
    worker.ends.set()
    worker.join()
    with ExitStack() as stack, KafkaProducer(bootstrap_servers=broker) as producer:
        runs = [
            stack.enter_context(
                deployment.running(f"{export.kind}-{export.ending}.log", *export.command, "--follow")
            )
            for export in exports
        ]
        worker.send(producer, max(worker.newest) + 2, 1)  # what they wait for comes while they follow
        for export, run in zip(exports, runs, strict=True):
            log = f"{export.kind}-{export.ending}.log"
            assert wait_until(lambda export=export: export.has(worker.newest), 120), deployment.output(log)
            assert wait_until(lambda log=log: "so far" in deployment.output(log), 60)
            run.send_signal(signal.SIGINT)
        for export, run in zip(exports, runs, strict=True):
            assert run.wait(60) == 130
            lines = deployment.output(f"{export.kind}-{export.ending}.log").splitlines()
            assert re.fullmatch(r"carrier: .* so far; following, Ctrl-C ends", lines[0])
            assert re.fullmatch(r"carrier: [\d,]+ windows? written to \d+ files?", lines[-1])
    for export in exports[:: len(exports) - 1]:
        assert deployment.run(*export.command).stderr == "carrier: no new windows\n"
    from_topic = deniable.read_estimates(tmp_path / "deniable.yaml", collection="carrier", other=True)
    for export in exports[:2]:
        assert deniable.read_estimates(collection="carrier", files=export.output, other=True) == from_topic


def _soon(happens: Any, seconds: float = 60.0) -> bool:
    """Like `wait_until`, but looking all the time: a file is in work for a few milliseconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if happens():
            return True
    return False


@pytest.mark.parametrize(
    ("kind", "ending"),
    [("estimates", "parquet"), pytest.param("windows", "csv", marks=[pytest.mark.nightly])],
)
def test_kills_leave_each_window_once_in_a_bucket(
    worker: Worker,
    broker: str,
    topic_prefix: str,
    tmp_path: Path,
    store: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    ending: str,
) -> None:
    """As in folders; killed within an upload, before its answer, and after some. The late upload is refused.

    Catches uploads in parts that are seen before the last, and uploads without a condition, which would undo
    what the next run wrote.
    """
    deployment, chance = Deployment(tmp_path, broker, topic_prefix), random.Random(9)
    export = Export(kind, ending, store.prefix(), store)
    worker.start()
    for number in range(4):
        log = f"export-{number}.log"
        url = str(export.output)
        before, sizes = [store.names(url), export.found()], store.sizes(url)
        with closing(HeldUpload(store, half=number == 1)) as between:
            if number < 3:
                monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{between.address}")
            with deployment.running(log, *export.command, "--follow") as run:
                if number < 3:
                    assert between.held.wait(60), deployment.output(log)
                else:
                    grown = wait_until(lambda url=url, sizes=sizes: store.sizes(url) != sizes, 60)
                    assert grown, deployment.output(log)
                    time.sleep(chance.uniform(0, 1))
                kill(run)
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{store.address}")
            if number < 3:
                assert [store.names(url), export.found()] == before
                done = deployment.run(*export.command)
                assert done.returncode == 0, done.stderr
                after = export.found()
                assert b" 412 " in between.deliver()
                assert export.found() == after
            export.check_whole()
    worker.ends.set()
    worker.join()
    done = deployment.run(*export.command)
    assert done.returncode == 0, done.stderr
    assert export.has(worker.newest)
    assert deployment.run(*export.command).stderr == "carrier: no new windows\n"
