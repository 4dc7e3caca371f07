"""A lost `state` is rebuilt under the recorded terms, on a real broker, after the file has changed them."""

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka.structs import ConsumerRecord
from kafka import KafkaAdminClient, KafkaProducer

import deniable
from deniable.aggregator.ledger.terms import Terms
from deniable.aggregator.maintenance.ledger_changes import retire
from deniable.aggregator.maintenance.ledger_reader import ledger_rows, terms_in
from deniable.aggregator.maintenance.rebuild import Rebuilt, rebuild
from deniable.aggregator.maintenance.replay import replay
from deniable.cluster.cluster import Cluster
from deniable.deploy.cluster.deployment import deployment_of
from deniable.deploy.cluster.topics.setup import create
from deniable.estimators.collection import Collection
from tests.chaos.judging import stored
from tests.chaos.load.packs import PackMaker
from tests.chaos.processes.collection_setup import write
from tests.chaos.processes.workers import Workers
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.all]

TEXT = """\
revision: {revision}
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}", partitions: 2, allow_plaintext: true}}
collections:
  - {{name: flash, mechanism: k-rr, size: 40, other: false, epsilon: 1.0, window_seconds: 2,
     grace_seconds: {grace_seconds}, retention_seconds: 600, minimum_reports: 1, budget: none}}
"""
#: Another collection instead.
REPLACED = TEXT.replace("flash", "blaze").replace("size: 40", "size: 41")
LONG, SHORT = 3, 0  # grace before and after the change, seconds
SEND_SECONDS = 3
DRAFTS = 90
#: A rebuild in small transactions that ends itself as `kill -9` would.
KILLED = """\
import os, signal, sys
from deniable.aggregator.maintenance import rebuild
from deniable.aggregator.partition.ledger_store import LedgerStore
from deniable.cluster.reading import partition_reader
from deniable.deploy.cli.main import main

commit, left = LedgerStore.commit, iter(range({commits}))
async def killed(*given):
    if next(left, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return await commit(*given)
LedgerStore.commit = killed
rebuild.COMMIT_RECORDS = partition_reader.RECORDS_PER_POLL = 20
sys.argv[1:] = ["replay", "--rebuild"]
main()
"""


class Deployed:
    """Two partitions, one collection of short windows, and the worker that counts it."""

    def __init__(self, folder: Path, broker: str, prefix: str) -> None:
        self.folder, self.broker, self.prefix = folder, broker, prefix
        self.change(1, LONG)
        self.workers = Workers(self.configuration, folder)
        create(Cluster(broker), self.configuration.topics, 1)

    def change(self, revision: int, grace_seconds: int) -> None:
        """Write another revision of the file."""
        file = self.folder / "deniable.yaml"
        self.configuration = write(file, self.broker, self.prefix, revision, TEXT, grace_seconds)

    def lose(self, *topics: str) -> None:
        """Delete topics, and run `topics create`."""
        names = [self.prefix + topic for topic in topics]
        with KafkaAdminClient(bootstrap_servers=self.broker) as admin:
            admin.delete_topics(names)
            assert wait_until(lambda: not {*names} & {*admin.list_topics()}, 60)
        create(Cluster(self.broker), self.configuration.topics, 1)

    def send(self, seed: int, collection: Collection | None = None) -> None:
        """Packs in time, within the long grace, sent twice, and of no collection."""
        maker = PackMaker(collection or self.configuration.collections[0], random.Random(seed))
        with KafkaProducer(bootstrap_servers=self.broker) as kafka:
            for number in range(DRAFTS):
                draft = maker.draft()
                late = replace(draft, window_start=draft.window_start - 2, pack_id=draft.pack_id[::-1])
                stranger = replace(draft, fingerprint=draft.fingerprint ^ 1)
                for each in (draft, draft, late, stranger)[: 4 if number % 3 else 2]:
                    kafka.send(self.configuration.topics.reports, each.encode(), partition=each.home(2))
                time.sleep(SEND_SECONDS / DRAFTS)

    def records(self, topic: str) -> list[ConsumerRecord]:
        return stored._records(self.broker, self.prefix + topic, 2, stored.Stored())

    def rejected(self) -> Counter[tuple[int, int]]:
        """Number of records of `rejected`, by partition and offset of the record that they reject."""
        found = [json.loads(record.value) for record in self.records("rejected")]
        return Counter((each["partition"], each["offset"]) for each in found)

    def finals(self) -> Counter[bytes]:
        """Number of final estimates, by key."""
        return Counter(r.key for r in self.records("estimates") if json.loads(r.value)["final"])

    def windows(self) -> set[bytes]:
        """Windows that hold packs, by the key of their estimates."""
        cells = stored.ledgers(self.broker, self.configuration.topics).cells
        return {b"flash/%d" % window_start for _, window_start, _ in cells}

    def final_counts(self) -> Counter[bytes]:
        return Counter(record.key for record in self.records("windows"))

    def difference(self) -> int:
        return asyncio.run(replay(deployment_of(self.configuration))).difference

    def rejections(self) -> int:
        """Rejected records, by the ledgers."""
        return stored.ledgers(self.broker, self.configuration.topics).rejected.total()

    def terms(self) -> list[Mapping[int, Terms]]:
        """Terms of each ledger, by fingerprint."""
        deployment = deployment_of(self.configuration)
        return [terms_in(asyncio.run(ledger_rows(deployment, source))) for source in range(2)]

    def rebuild(self) -> Mapping[int, Rebuilt]:
        return asyncio.run(rebuild(deployment_of(self.configuration)))

    def killed_rebuild(self, commits: int) -> None:
        """A rebuild that is killed instead of this transaction."""
        command = [sys.executable, "-c", KILLED.format(commits=commits)]
        ended = subprocess.run(
            command, cwd=self.folder, env={"PYTHONPATH": str(REPOSITORY)}, capture_output=True, timeout=120
        )
        assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()

    def count(self) -> None:
        """Run a worker until all windows that hold packs are final, and all counts equal the log."""
        self.workers.configuration = self.configuration
        worker = self.workers.start()
        assert wait_until(lambda: worker.ready, 60), self.workers.describe()
        assert wait_until(lambda: not self.difference() and self.windows() <= self.finals().keys(), 60), (
            self.workers.describe()
        )
        self.workers.drain(worker, 30)
        assert worker not in self.workers.missed, self.workers.describe()

    def refusal(self) -> str:
        """What a worker says that must end."""
        self.workers.configuration = self.configuration
        worker = self.workers.start()
        assert worker.child.wait(60) == 3, self.workers.describe()
        self.workers.end(worker, signal.SIGKILL)
        return worker.log.read_text()


@pytest.fixture
def deployed(broker: str, topic_prefix: str, tmp_path: Path) -> Iterator[Deployed]:
    deployed = Deployed(tmp_path, broker, topic_prefix)
    try:
        yield deployed
    finally:
        deployed.workers.stop()


@pytest.mark.nightly
def test_rebuild_repeats_the_first_judgement_and_publishes_nothing_twice(deployed: Deployed) -> None:
    """Although the file has another grace, records were not counted yet, and two rebuilds were killed."""
    deployed.send(1)
    deployed.count()
    finals, counted = deployed.finals(), deployed.rejections()
    assert deployed.rejected().total() == counted > 0
    deployed.send(2)
    deployed.change(2, SHORT)
    deployed.lose("state")
    deployed.killed_rebuild(commits=5)
    assert "replay --rebuild" in deployed.refusal()
    deployed.killed_rebuild(commits=25)
    rebuilt = deployed.rebuild()
    assert not any(each.unrecorded or each.disagreement for each in rebuilt.values())
    assert deployed.difference() == 0
    first = stored.ledgers(deployed.broker, deployed.configuration.topics)
    deployed.lose("state")
    deployed.rebuild()
    again = stored.ledgers(deployed.broker, deployed.configuration.topics)
    assert (again.rejected, again.positions) == (first.rejected, first.positions)
    for of_source in deployed.terms():
        [terms] = of_source.values()
        assert [span.grace_seconds for span in terms.spans] == [LONG, SHORT]
    deployed.count()
    rejected = deployed.rejected()
    assert (set(rejected.values()), rejected.total()) == ({1}, deployed.rejections())
    assert rejected.total() > counted
    assert set(deployed.finals().values()) == set(deployed.final_counts().values()) == {1}
    assert finals.items() <= deployed.finals().items()


@pytest.mark.nightly
def test_figures_under_the_files_terms_replace_the_published_ones(deployed: Deployed) -> None:
    """Where `counts` is lost too, the rebuild says so, and rejects what the shorter grace leaves out.

    Of windows in which then no pack counts, readers find nothing any more.
    """
    deployed.send(1)
    deployed.count()
    before, counted = deployed.finals(), deployed.rejections()
    deployed.change(2, SHORT)
    deployed.lose("state", "counts")
    assert [each.unrecorded for each in deployed.rebuild().values()] == [["flash"], ["flash"]]
    assert deployed.difference() > 0
    deployed.count()
    rejected = deployed.rejected()
    assert (set(rejected.values()), rejected.total()) == ({1}, deployed.rejections())
    assert rejected.total() > counted
    replaced = deployed.finals() - before
    assert set(replaced.values()) == {1}
    emptied = before.keys() - deployed.windows()
    assert emptied
    assert emptied <= replaced.keys()
    file = deployed.folder / "deniable.yaml"
    for read in (deniable.read_estimates, deniable.read_windows):
        starts = read(file, collection="flash").column("window_start").to_pylist()
        assert {b"flash/%d" % int(start.timestamp()) for start in starts} == deployed.windows()


@pytest.mark.nightly
def test_rebuild_keeps_a_retirement(deployed: Deployed) -> None:
    """Packs that came after it stay rejected, from the same offset on."""
    flash = deployed.configuration.collections[0]
    deployed.send(1)
    deployed.count()
    file = deployed.folder / "deniable.yaml"
    deployed.configuration = write(file, deployed.broker, deployed.prefix, 2, REPLACED, LONG)
    offsets = asyncio.run(retire(deployment_of(deployed.configuration), flash.name))
    counted = deployed.rejections()
    deployed.send(2, flash)
    deployed.count()
    terms, first = deployed.terms(), stored.ledgers(deployed.broker, deployed.configuration.topics)
    assert [each[flash.fingerprint].until for each in terms] == [offsets[source] for source in range(2)]
    assert deployed.rejections() >= counted + 2 * DRAFTS
    deployed.lose("state")
    rebuilt = deployed.rebuild()
    assert not any(each.unrecorded or each.disagreement for each in rebuilt.values())
    assert deployed.difference() == 0
    again = stored.ledgers(deployed.broker, deployed.configuration.topics)
    assert (again.rejected, again.positions) == (first.rejected, first.positions)
    assert [each[flash.fingerprint] for each in deployed.terms()] == [
        each[flash.fingerprint] for each in terms
    ]
