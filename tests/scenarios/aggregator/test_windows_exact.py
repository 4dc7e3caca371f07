"""`windows` contains the log's exact counts, each window once, despite kills: on a real broker."""

import json
import random
import re
import signal
import subprocess
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from kafka import KafkaProducer

from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.records.final_window import Page, decode_page
from deniable.cluster.cluster import Cluster
from deniable.config.file import Configuration
from deniable.deploy.cluster.topics.setup import create
from tests.chaos.judging import stored
from tests.chaos.judging.recount import Counted, recount
from tests.chaos.load.packs import PackMaker
from tests.chaos.processes.collection_setup import write
from tests.chaos.processes.workers import Workers
from tests.chaos.run import replayed
from tests.support.deployments import run_command
from tests.support.processes import printed_seed, wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all]

#: `paged` has three pages per window; `tiny` never has enough reports for an estimate.
COLLECTIONS = """\
revision: {revision}
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}"}}
collections:
  - {{name: flash, mechanism: k-rr, size: 40, other: false, epsilon: 1.0, window_seconds: 2,
     grace_seconds: 2, minimum_reports: 1, budget: none}}
  - {{name: place, mechanism: rappor, bits: 64, hashes: 2, cohorts: 3, f: 0.25, p: 0.35, q: 0.65,
     candidates: [A, B, C], window_seconds: 2, grace_seconds: 2, minimum_reports: 1, budget: none}}
  - {{name: paged, mechanism: k-rr, size: 70000, other: false, epsilon: 3.0, window_seconds: 4,
     grace_seconds: 2, minimum_reports: 1, budget: none}}
  - {{name: tiny, mechanism: k-rr, size: 4, other: false, epsilon: 1.0, window_seconds: 2,
     grace_seconds: 2, minimum_reports: 1000000, budget: none}}
"""
PAUSE_SECONDS = 0.03
FINAL_SECONDS = 60


class Load(threading.Thread):
    """Sends packs of every collection until stopped, every tenth one twice."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(daemon=True)
        self.configuration = configuration
        self.stopped = threading.Event()

    def run(self) -> None:
        chance = random.Random(printed_seed())
        makers = [PackMaker(collection, chance) for collection in self.configuration.collections]
        kafka = self.configuration.kafka
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            while not self.stopped.wait(PAUSE_SECONDS):
                for maker in makers:
                    draft = maker.draft()
                    for _ in range(1 + (chance.random() < 0.1)):
                        topic, home = self.configuration.topics.reports, draft.home(kafka.partitions)
                        producer.send(topic, draft.encode(), partition=home)


def written(configuration: Configuration) -> list[Page]:
    """Pages in the order of their partitions."""
    topics = configuration.topics
    records = stored._records(
        configuration.kafka.bootstrap_servers, topics.windows, topics.partitions, stored.Stored()
    )
    pages = [decode_page(record.key, record.value) for record in records]
    homes = {(page.fingerprint, record.partition) for page, record in zip(pages, records, strict=True)}
    assert all(topics.counts_partition(fingerprint) == partition for fingerprint, partition in homes)
    return pages


def newest(pages: list[Page]) -> dict[Window, list[Page]]:
    """Pages of each window's newest revision."""
    found: defaultdict[Window, dict[int, list[Page]]] = defaultdict(dict)
    for page in pages:
        found[page[:2]].setdefault(page.packs, []).append(page)
    return {window: revisions[max(revisions)] for window, revisions in found.items()}


def expected(configuration: Configuration) -> dict[Window, dict[int, Counted]]:
    """Expected counts by window and cohort, from the log alone."""
    topics, servers = configuration.topics, configuration.kafka.bootstrap_servers
    found: defaultdict[Window, dict[int, Counted]] = defaultdict(dict)
    literal = recount(servers, topics.reports, topics.partitions, configuration.by_fingerprint())
    for (fingerprint, start, cohort), counted in literal.cells.items():
        found[fingerprint, start][cohort] = counted
    return found


def kill_often(workers: Workers) -> None:
    """Kill workers inside a transaction, before its commit, while estimating, and at any other moment."""
    for point in ("between-sends", "before-commit", "estimate"):
        victim = workers.alive[0]
        victim.order(point, "kill")
        assert wait_until(lambda victim=victim: not victim.running, 120), (point, workers.describe())
        workers.end(victim, signal.SIGKILL)
        workers.start()
    workers.end(workers.alive[0], signal.SIGKILL)
    workers.start()


@pytest.fixture(scope="module")
def run(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Configuration, Workers]]:
    """A deployment whose workers were killed and whose windows are all final now, with one running worker."""
    folder = tmp_path_factory.mktemp("windows")
    configuration = write(
        folder / "deniable.yaml", broker, f"test-{random.getrandbits(48):x}-", 1, COLLECTIONS
    )
    create(Cluster(broker), configuration.topics, 1)
    workers = Workers(configuration, folder)
    try:
        workers.start()
        workers.start()
        assert workers.wait_until_open(), workers.describe()
        with loading(configuration):
            kill_often(workers)
        wait_until_final(configuration, workers)
        # A worker with these windows final has processed the earlier ones, which are published already.
        for worker in list(workers.alive):
            workers.end(worker, signal.SIGKILL)
        workers.start()
        with loading(configuration):
            assert workers.wait_until_open(), workers.describe()
        wait_until_final(configuration, workers)
        yield configuration, workers
    finally:
        workers.stop()


@contextmanager
def loading(configuration: Configuration) -> Iterator[None]:
    """Send packs continuously."""
    load = Load(configuration)
    load.start()
    try:
        yield
    finally:
        load.stopped.set()
        load.join()


def wait_until_final(configuration: Configuration, workers: Workers) -> None:
    """Wait until every window of the log is in the topic."""
    wanted = expected(configuration).keys()
    assert wait_until(lambda: newest(written(configuration)).keys() == wanted, FINAL_SECONDS), (
        workers.describe()
    )


def test_each_window_has_the_exact_counts_once(run: tuple[Configuration, Workers]) -> None:
    configuration, workers = run
    pages, wanted = written(configuration), expected(configuration)
    assert set(Counter((page[:3], page.packs) for page in pages).values()) == {1}, workers.describe()
    for window, found in newest(pages).items():
        collection = configuration.by_fingerprint()[window[0]]
        assert [page.number for page in found] == list(range(found[0].pages))
        assert found[0].pages == (3 if collection.name == "paged" else 1)
        counts, reports = np.zeros((collection.cohorts, collection.width), np.int64), [0] * collection.cohorts
        for cohort, counted in wanted[window].items():
            counts[cohort], reports[cohort] = counted.counts, counted.reports
        joined: npt.NDArray[np.int64] = np.concatenate([page.counters.astype(np.int64) for page in found])
        np.testing.assert_array_equal(joined, counts.reshape(-1))
        assert found[0].cohort_sizes.tolist() == reports
        assert found[0].packs == sum(counted.packs for counted in wanted[window].values())
    assert len(wanted) > 15


def test_counts_and_final_estimates_cover_the_same_windows(run: tuple[Configuration, Workers]) -> None:
    configuration, _ = run
    topics, servers = configuration.topics, configuration.kafka.bootstrap_servers
    (tiny,) = [c.fingerprint for c in configuration.collections if c.name == "tiny"]
    finals = {(f.fingerprint, f.window_start): f.packs for f in stored.finals(servers, topics)}
    counts = {window: pages[0].packs for window, pages in newest(written(configuration)).items()}
    assert finals == {window: packs for window, packs in counts.items() if window[0] != tiny}
    assert any(window[0] == tiny for window in counts)


def test_replay_finds_no_difference(run: tuple[Configuration, Workers]) -> None:
    configuration, _ = run
    assert replayed(configuration) == 0


def command(configuration: Configuration, *words: str) -> "subprocess.CompletedProcess[str]":
    return run_command((*words, "--config", str(configuration.path)), configuration.path.parent)


@pytest.mark.parametrize("name", ["place", "paged"])
def test_roll_up_covers_every_report(run: tuple[Configuration, Workers], name: str) -> None:
    """From the command, which returns all values, and from a worker, which returns the largest."""
    configuration, workers = run
    collection = configuration.collection(name)
    mine = {
        start: cells for (of, start), cells in expected(configuration).items() if of == collection.fingerprint
    }
    start, end = min(mine), max(mine) + collection.window_seconds
    ended = command(configuration, "rollup", name, "--from", str(start), "--to", str(end), "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    record = json.loads(ended.stdout)
    assert record["reports"] == sum(c.reports for cells in mine.values() for c in cells.values())
    assert (record["coverage"]["windows"], record["coverage"]["foreign"]) == (len(mine), 0)
    assert record["independent"]["reports"] == record["reports"]
    port = re.search(r"^page: http://127.0.0.1:(\d+)/$", workers.alive[-1].log.read_text(), re.MULTILINE)
    assert port
    with closing(HTTPConnection("127.0.0.1", int(port[1]), timeout=60)) as worker:
        worker.request("GET", f"/api/rollup?collection={name}&from={start}&to={end}")
        answer = json.load(worker.getresponse())
    whole, largest = ([source.pop(kind) for kind in ("independent", "shared")] for source in (record, answer))
    sequences = [source.pop("sequence") for source in (record, answer)]
    assert answer == record
    for name in ("share", "low", "high", "low_all", "high_all"):
        every, few = (dict(zip(each["values"], each[name], strict=True)) for each in sequences)
        assert few == {value: every[value] for value in few}
    for every, few in zip(whole, largest, strict=True):
        assert (every["omitted"], len(every["values"])) == (0, len(few["values"]) + few["omitted"])
        shares = dict(zip(every["values"], every["frequency"], strict=True))
        assert [shares[value] for value in few["values"]] == few["frequency"]


def test_past_windows_decode_with_other_candidates(
    run: tuple[Configuration, Workers], tmp_path: Path
) -> None:
    configuration, _ = run
    (tmp_path / "words.txt").write_text("A\nnobody thought of this\nB\n")
    words = ("decode", "place", "--candidates", str(tmp_path / "words.txt"), "--from", "2020-01-01T00Z")
    ended = command(configuration, *words, "--json")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["independent"]["values"] == ["A", "nobody thought of this", "B"]
    shown = command(configuration, *words)
    assert shown.returncode == 0
    assert shown.stderr.startswith("place: ")
    assert "3 candidates" in shown.stdout


def test_small_windows_are_joined_but_not_estimated(run: tuple[Configuration, Workers]) -> None:
    configuration, _ = run
    ended = command(configuration, "rollup", "tiny", "--from", "2020-01-01T00Z")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert re.search(r"^Error: [1-9]\d* .* tiny .*minimum_reports", ended.stderr, re.M)
