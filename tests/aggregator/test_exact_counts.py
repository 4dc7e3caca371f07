"""Promise 2 on a real broker: whatever is killed, paused or sent twice, the counts equal a plain recount."""

import asyncio
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from faults import Load, Workers, configure, pause, recount
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from aggregator.deployment import Deployment
from aggregator.replay import Comparison, _ledger_claim, replay
from deploy.collection_file import Configuration
from deploy.deployment import deployment_of
from tests.deploy.processes import wait_until

SESSION_SECONDS = 10  # after which the group takes a silent worker for dead
PACKS_PER_SECOND = 400


def stored(comparison: Comparison, configuration: Configuration) -> dict[tuple[int, int], Counter[int]]:
    """Stored counts by window, cohorts kept apart in the bucket's number."""
    found: dict[tuple[int, int], Counter[int]] = {}
    for window in comparison.counts.windows():
        collection = configuration.by_fingerprint()[window[0]]
        totals = comparison.counts.totals(window, collection)
        found[window] = Counter()
        for cohort, counts in enumerate(totals.counts.tolist()):
            for bucket, count in enumerate(counts):
                found[window][cohort * collection.width + bucket] += count
    return found


def disturb(workers: Workers, seed: int) -> None:
    """About 45 s of faults: kill -9, a pause past the session timeout, SIGTERM, scaling up and down."""
    order = random.Random(seed).sample(["kill", "pause", "term", "scale"], 4)
    for fault in order:
        time.sleep(3)
        if fault == "pause":
            timer = pause(workers.running[0], SESSION_SECONDS + 4)
            time.sleep(SESSION_SECONDS + 6)
            timer.join()
        elif fault == "scale":
            workers.start()
            time.sleep(5)
            workers.kill(signal.SIGTERM)
        else:
            workers.kill(signal.SIGKILL if fault == "kill" else signal.SIGTERM)
            time.sleep(1)
            workers.start()


def disturb_log(configuration: Configuration) -> None:
    """Garbage, and a foreign producer that commits and aborts transactions in the same log."""
    topic = configuration.topics.reports
    foreign = KafkaProducer(
        bootstrap_servers=configuration.kafka.bootstrap_servers, transactional_id=f"{topic}-stranger"
    )
    foreign.init_transactions()
    for turn in range(6):
        foreign.begin_transaction()
        for partition in range(configuration.kafka.partitions):
            foreign.send(topic, b"no pack", partition=partition)
        foreign.commit_transaction() if turn % 2 else foreign.abort_transaction()
    foreign.close()


@pytest.mark.broker
@pytest.mark.parametrize("seed", [1])
def test_counts_survive_faults(broker: str, topic_prefix: str, tmp_path: Path, seed: int) -> None:
    """Two or three workers under faults, every tenth pack sent twice, garbage and transactions in the log.

    Every acknowledged pack is counted exactly once, integer for integer as a literal recount has it.
    """
    configuration = configure(tmp_path, broker, topic_prefix)
    workers = Workers(configuration, tmp_path)
    load = Load(configuration, PACKS_PER_SECOND, seed)
    try:
        workers.start()
        workers.start()
        load.start()
        disturb_log(configuration)
        disturb(workers, seed)
        disturb_log(configuration)
        load.stopped.set()
        load.join()
        assert load.error is None
        comparison = asyncio.run(replay(deployment_of(configuration), 60))
    finally:
        workers.stop()
    assert comparison.difference == 0, workers.tell()
    counts, seen = recount(configuration)
    assert load.acknowledged <= seen
    assert len(seen) > 20 * PACKS_PER_SECOND
    by_window: dict[tuple[int, int], Counter[int]] = {}
    widths = {c.fingerprint: c.width for c in configuration.collections}
    for (fingerprint, window, cohort), bucket_counts in counts.items():
        mine = by_window.setdefault((fingerprint, window), Counter())
        for bucket, count in bucket_counts.items():
            mine[cohort * widths[fingerprint] + bucket] += count
    assert {w: +c for w, c in stored(comparison, configuration).items()} == by_window


@pytest.mark.broker
def test_a_hole_that_retention_deletes_is_no_loss(broker: str, topic_prefix: str, tmp_path: Path) -> None:
    """The log ends in a transaction's marker, all is counted, and retention deletes everything.

    The stored position has passed the marker, so the next owner does not take it for records that were lost.
    """
    configuration = configure(tmp_path, broker, topic_prefix)
    deployment = deployment_of(configuration)
    topic, partitions = configuration.topics.reports, range(configuration.kafka.partitions)
    ends = [2] * len(partitions)  # of a record and a marker each
    workers = Workers(configuration, tmp_path)
    try:
        workers.start()
        stranger = KafkaProducer(bootstrap_servers=broker, transactional_id=f"{topic}-stranger")
        stranger.init_transactions()
        stranger.begin_transaction()
        for partition in partitions:
            stranger.send(topic, b"no pack", partition=partition)
        stranger.commit_transaction()
        stranger.close()
        assert wait_until(lambda: stored_positions(deployment) == ends, 60), workers.tell()
        workers.kill(signal.SIGTERM)
        with KafkaAdminClient(bootstrap_servers=broker) as admin:
            admin.delete_records({TopicPartition(topic, partition): -1 for partition in partitions})
        workers.start()
        assert wait_until(lambda: "ledger open" in workers.logs[-1].read_text(), 60), workers.tell()
        time.sleep(3)
        assert "ledger lost" not in workers.logs[-1].read_text()
    finally:
        workers.stop()


def stored_positions(deployment: Deployment) -> list[int]:
    """Position of every ledger as stored."""

    async def read() -> list[int]:
        sources = range(deployment.topics.partitions)
        return [(await _ledger_claim(deployment, source)).position for source in sources]

    return asyncio.run(read())
