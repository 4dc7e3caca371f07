"""A worker of hundreds of partitions: longer pauses, and few ledgers opened at a time."""

import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition.assignment import OPENINGS, Assignment
from deniable.aggregator.partition.owner import PartitionOwner
from deniable.aggregator.partition.timing import DEFAULT, FULL_SPEED_PARTITIONS
from deniable.protocol.topic_names import Topics
from tests.support.aggregator.builders import COLLECTIONS, DEPLOYMENT, LOG
from tests.support.aggregator.owner_runs import DEADLINE_SECONDS, QUICK, Broker, served_from_memory

PARTITIONS = 40


@pytest.mark.parametrize("partitions", [0, 1, FULL_SPEED_PARTITIONS])
def test_few_partitions_are_served_at_full_speed(partitions: int) -> None:
    assert DEFAULT.shared_by(partitions) == DEFAULT


@pytest.mark.parametrize("partitions", [64, 250, 1000])
def test_transactions_a_second_do_not_grow_with_partitions(partitions: int) -> None:
    timing = DEFAULT.shared_by(partitions)
    assert partitions / timing.checkpoint == pytest.approx(FULL_SPEED_PARTITIONS / DEFAULT.checkpoint)
    assert partitions / timing.publish == pytest.approx(FULL_SPEED_PARTITIONS / DEFAULT.publish)
    assert timing.longest_pause < timing.unstored, "else a pause would look like a failure"
    assert timing.publish < timing.standstill, "else a partition that waits for its turn would look stalled"
    assert 2 * timing.publish < timing.behind, "else new counts look behind"
    assert (timing.stall, timing.commit) == (DEFAULT.stall, DEFAULT.commit)


class CrowdedBroker(Broker):
    """Counts the ledgers that are being opened, and then refuses them."""

    opening = most = refused = 0

    async def committed(self) -> int | None:
        self.opening += 1
        self.most = max(self.most, self.opening)
        await asyncio.sleep(0.002)
        self.opening -= 1
        self.refused += 1
        raise KafkaError("busy")


def test_only_some_ledgers_are_opened_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    served_from_memory(monkeypatch)
    broker = CrowdedBroker()
    monkeypatch.setattr("deniable.aggregator.partition.owner.LedgerStore", broker.store)
    deployment = Deployment(DEPLOYMENT.cluster, Topics("test-", PARTITIONS), LOG, COLLECTIONS, 1)

    async def run() -> None:
        owners = Assignment(deployment, WorkerMetrics(COLLECTIONS), QUICK)
        await owners.assign(range(PARTITIONS), broker)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while broker.refused < 2 * PARTITIONS:  # noqa: ASYNC110 (an owner has no event)
                await asyncio.sleep(0.001)
        await owners.release()

    asyncio.run(run())
    assert broker.most == OPENINGS


def test_owners_take_longer_pauses_if_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: set[float] = set()

    class Noted(PartitionOwner):
        def __init__(self, *of: Any, **how: Any) -> None:
            super().__init__(*of, **how)
            pauses.add(self.timing.publish)

    monkeypatch.setattr("deniable.aggregator.partition.assignment.PartitionOwner", Noted)
    served_from_memory(monkeypatch)
    deployment = Deployment(DEPLOYMENT.cluster, Topics("test-", PARTITIONS), LOG, COLLECTIONS, 1)

    async def run() -> None:
        owners = Assignment(deployment, WorkerMetrics(COLLECTIONS))
        await owners.assign(range(PARTITIONS), CrowdedBroker())
        await owners.release()

    asyncio.run(run())
    assert pauses == {DEFAULT.publish * PARTITIONS / FULL_SPEED_PARTITIONS}
