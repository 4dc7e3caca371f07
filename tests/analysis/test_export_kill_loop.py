"""`deniable export` is killed at each of its points on a real Kafka: each window is in the files once."""

import re
import signal
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest
from kafka import KafkaProducer

import deniable
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.records.final_window import FinalWindow, encode_pages
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.cluster.cluster import Cluster
from deniable.cluster.topics.checks import connected
from deniable.config.file import load
from tests.analysis.s3_server import HeldUpload, S3Server
from tests.analysis.test_day_files import FINAL
from tests.support.deployments import Deployment
from tests.support.processes import Process, wait_until, write_order
from tests.support.producers.topics import change

parquet = pytest.importorskip("pyarrow.parquet", reason="the extra analysis is not installed")
csv = pytest.importorskip("pyarrow.csv", reason="the extra analysis is not installed")
pytestmark = [pytest.mark.broker, pytest.mark.all]

WINDOWS = 100  # of a round
START = 1_769_817_600 - 3 * WINDOWS  # those of the second round are of two days, and so in two files
#: Between two windows in the log: the hour before the progress, from where runs read, has few of them.
LOG_MILLISECONDS = 120_000
DAYS_MILLISECONDS = 5 * 86_400_000
ROWS = {"estimates": len(FINAL.values) + 1, "windows": 1}
VERSION = {"estimates": "revision", "windows": "packs"}


class Log:
    """Final estimates and windows of one period after the other, as workers write them.

    Attributes
    ----------
    newest : revision of each window, by start.
    """

    def __init__(self, deployment: Deployment) -> None:
        loaded = load(deployment.folder / "deniable.yaml", environment={})
        self.topics, self.collection = loaded.topics, loaded.collection("carrier")
        self.servers = deployment.servers
        self.newest: dict[int, int] = {}
        self.log_ms = time.time_ns() // 1_000_000 - DAYS_MILLISECONDS

    def grow(self, windows: int = WINDOWS) -> None:
        """Append windows, and of each tenth an older one anew."""
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for number in range(len(self.newest), len(self.newest) + windows):
                self.log_ms += LOG_MILLISECONDS
                self.send(producer, START + 2 * number, 1)
                if number % 10 == 0:
                    self.send(producer, START + 2 * (number // 3), 2 + number)

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
        place = {"partition": start // 2 % self.topics.partitions, "timestamp_ms": self.log_ms}
        producer.send(self.topics.estimates, encode_estimate(record), record.key, **place)
        counts = WindowCounts(
            np.full((1, collection.width), revision), np.array([revision]), packs=revision, rejected=0
        )
        for key, value in encode_pages(FinalWindow.of(collection, start, counts)):
            producer.send(self.topics.windows, value, key, **place)


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
    output: str
    store: S3Server | None = None

    @property
    def command(self) -> tuple[str, ...]:
        """Arguments of `deniable`."""
        return "export", "carrier", "--of", self.kind, "--format", self.ending, "--output", self.output

    def start(self, folder: Path, number: int, point: str = "") -> Process:
        """Start it in the folder of the collection file; it follows, and perhaps dies at a point."""
        home = folder / f"export-{number}"
        if point:
            write_order(home, point)
        line = [str(home), *self.command, "--follow", "--config", str(folder / "deniable.yaml")]
        return Process.start("tests.chaos.processes.child", line, home)

    def files(self) -> dict[str, bytes]:
        """Content of each file, as it is there."""
        if self.store is None:
            return {str(path): path.read_bytes() for path in Path(self.output).rglob(f"*.{self.ending}")}
        return {name: self.store.content(name) for name in self.store.names(self.output)}

    def found(self) -> Counter[tuple[int, int]]:
        """Rows of each window and version, by readers that know nothing of deniable.

        No window is there twice, in two versions, or in part; and no file that cannot be read.
        """
        import pyarrow as pa

        found: Counter[tuple[int, int]] = Counter()
        for content in self.files().values():
            source, names = pa.BufferReader(content), ["window_start", VERSION[self.kind]]
            table = (parquet.read_table if self.ending == "parquet" else csv.read_csv)(source).select(names)
            starts = table["window_start"].cast(pa.timestamp("s", "UTC")).cast("int64").to_pylist()
            found.update(zip(starts, table[names[1]].to_pylist(), strict=True))
        assert set(found.values()) <= {ROWS[self.kind]}
        assert len({start for start, _ in found}) == len(found)
        return found

    def has(self, log: Log) -> bool:
        """Whether it has exactly the windows and versions of a log."""
        return self.found() == {each: ROWS[self.kind] for each in log.newest.items()}


@pytest.fixture
def deployment(broker: str, topic_prefix: str, tmp_path: Path) -> Deployment:
    """A deployment whose log is as old as the log of the test says."""
    made = Deployment(tmp_path, broker, topic_prefix)
    made.create_topics()
    times = {"message.timestamp.type": "CreateTime"}
    with connected(Cluster(broker)) as admin:
        for topic in ("estimates", "windows"):
            change(admin, f"{topic_prefix}{topic}", times)
    return made


def check_end(export: Export, deployment: Deployment, log: Log) -> None:
    """The next run completes the files, follows the log and ends in good order; another finds nothing."""
    run = export.start(deployment.folder, len(log.newest))
    assert wait_until(lambda: run.says("so far") and export.has(log)), run.describe()
    log.grow(1)  # what it waits for comes while it follows
    assert wait_until(lambda: export.has(log)), run.describe()
    run.signal(signal.SIGINT)
    assert run.child.wait() == 130
    first, *_, last = run.log.read_text().rstrip().splitlines()
    assert re.fullmatch(r"carrier: .* so far; following, Ctrl-C ends", first)
    assert re.fullmatch(r"carrier: [\d,]+ windows? written to \d+ files?", last)
    assert deployment.run(*export.command).stderr == "carrier: no new windows\n"


@pytest.mark.nightly
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("kind", ["estimates", "windows"])
def test_kills_leave_each_window_once(deployment: Deployment, tmp_path: Path, kind: str, ending: str) -> None:
    """After each kill and at the end: no window twice or in two revisions, and no file that cannot be read.

    Killed once a file is written, the first of two was replaced, and progress was kept. Catches progress
    that is kept before the files are (windows are missing at the end), and files that are appended to or
    written in place.
    """
    export, log = Export(kind, ending, str(tmp_path / "output")), Log(deployment)
    for number, point in enumerate(("written", "replaced", "kept")):
        log.grow()
        export.start(tmp_path, number, point).await_kill(point)
        assert not export.has(log) or point == "kept"
    check_end(export, deployment, log)
    if kind == "estimates":
        from_topic = deniable.read_estimates(tmp_path / "deniable.yaml", collection="carrier", other=True)
        assert deniable.read_estimates(collection="carrier", files=export.output, other=True) == from_topic


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "ending"), [("estimates", "parquet"), ("windows", "csv")])
def test_kills_leave_each_window_once_in_a_bucket(
    deployment: Deployment,
    tmp_path: Path,
    store: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    ending: str,
) -> None:
    """As in folders; killed within an upload, before its answer, and after one. The late upload is refused.

    Catches uploads in parts that are seen before the last, and uploads without a condition, which would undo
    what the next run wrote.
    """
    export, log = Export(kind, ending, store.prefix(), store), Log(deployment)
    for half in (False, True):
        log.grow()
        before = export.files()
        with closing(HeldUpload(store, half=half)) as between:
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{between.address}")
            run = export.start(tmp_path, half)
            assert between.held.wait(120), run.describe()
            run.kill()
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{store.address}")
            assert export.files() == before
            done = deployment.run(*export.command)
            assert done.returncode == 0, done.stderr
            after = export.files()
            assert b" 412 " in between.deliver()
            assert export.files() == after
        assert export.has(log)
    log.grow()
    export.start(tmp_path, 2, "replaced").await_kill("replaced")
    assert not export.has(log)
    check_end(export, deployment, log)
