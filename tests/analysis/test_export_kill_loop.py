"""`deniable export --follow` is killed again and again on a real Kafka: each window is in the files once."""

import random
import re
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from kafka import KafkaProducer

import deniable
from aggregator.records.estimate import EstimateRecord, encode_estimate
from deploy.config.file import load
from tests.analysis.test_day_files import FINAL
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

parquet = pytest.importorskip("pyarrow.parquet", reason="the extra analysis is not installed")
pytestmark = [pytest.mark.broker, pytest.mark.all]

KILLS, WINDOWS, START = 6, 2000, 1_769_817_600
EXPORT = ("export", "carrier", "--output", "out")


class Worker(threading.Thread):
    """Writes final estimates of one window after the other, and of each tenth an older one anew."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(daemon=True)
        loaded = load(deployment.folder / "deniable.yaml", environment={})
        self.topic, self.partitions = loaded.topics.estimates, loaded.topics.partitions
        self.fingerprint = f"{loaded.collection('carrier').fingerprint:016x}"
        self.servers = deployment.servers
        self.newest: dict[int, int] = {}

    def run(self) -> None:
        chance = random.Random(5)
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for number in range(WINDOWS):
                self.send(producer, START + 2 * number, 1)
                if number % 10 == 0:
                    self.send(producer, START + 2 * chance.randrange(number + 1), 2 + number)
                if number % 50 == 0:
                    producer.flush()
                    time.sleep(0.1)

    def send(self, producer: KafkaProducer, start: int, revision: int) -> None:
        record: EstimateRecord = msgspec.structs.replace(
            FINAL,
            collection="carrier",
            fingerprint=self.fingerprint,
            window_start=start,
            window_end=start + 2,
            revision=revision,
            reports=revision,
        )
        self.newest[start] = revision
        place = start // 2 % self.partitions
        producer.send(self.topic, encode_estimate(record), record.key, partition=place)


def in_files(folder: Path) -> Counter[tuple[int, int]]:
    """Rows of each window and revision, as they are in the files."""
    found: Counter[tuple[int, int]] = Counter()
    for path in folder.rglob("*.parquet"):
        table = parquet.ParquetFile(path).read(["window_start", "revision"])
        starts = [int(each.timestamp()) for each in table["window_start"].to_pylist()]
        found.update(zip(starts, table["revision"].to_pylist(), strict=True))
    return found


def test_kills_leave_each_window_once(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """After each kill and at the end: no window twice or in two revisions, and no file that cannot be read.

    Catches progress that is kept before the files are (windows are missing at the end), and files that are
    appended to or written in place.
    """
    deployment, chance = Deployment(tmp_path, broker, topic_prefix), random.Random(9)
    deployment.create_topics()
    worker, out = Worker(deployment), tmp_path / "out"
    rows = len(FINAL.values) + 1
    worker.start()
    for number in range(KILLS):
        log, before = f"export-{number}.log", in_files(out)
        with deployment.running(log, *EXPORT, "--follow") as run:
            if number % 4:  # otherwise it is killed at its start, or before its first file
                grown = wait_until(lambda before=before: in_files(out) != before, 60)
                assert grown or not worker.is_alive(), deployment.output(log)
            time.sleep(chance.uniform(0, 1.5))
            run.send_signal(signal.SIGKILL)
            run.wait(30)
        found = in_files(out)
        assert set(found.values()) <= {rows}
        assert len({start for start, _ in found}) == len(found)
    worker.join()
    with deployment.running("last.log", *EXPORT, "--follow") as run:
        with KafkaProducer(bootstrap_servers=broker) as producer:  # what it waits for comes while it follows
            worker.send(producer, START + 2 * WINDOWS, 1)
        expected = {(start, revision): rows for start, revision in worker.newest.items()}
        assert wait_until(lambda: in_files(out) == expected, 120), deployment.output("last.log")
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 130
    lines = deployment.output("last.log").splitlines()
    assert lines[0].startswith("carrier: ")
    assert lines[0].endswith(" so far; following, Ctrl-C ends")
    assert re.fullmatch(r"carrier: \d+ windows? written to \d files?", lines[-1])
    assert deployment.run(*EXPORT).stderr == "carrier: no new windows\n"
    from_topic = deniable.read_estimates(tmp_path / "deniable.yaml", collection="carrier", other=True)
    assert deniable.read_estimates(collection="carrier", files=out, other=True) == from_topic
