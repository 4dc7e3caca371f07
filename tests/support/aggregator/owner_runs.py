"""A fake of a partition owner's Kafka with topics in memory, and an owner that runs during a test."""

import asyncio
from collections.abc import Callable, Iterable

import pytest
from aiokafka.errors import KafkaError

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition import owner as owner_module
from deniable.aggregator.partition.fetching.last_record import LastRecord
from deniable.aggregator.partition.fetching.offset_chain import OffsetChain
from deniable.aggregator.partition.owner import PartitionOwner
from deniable.aggregator.partition.timing import PartitionTiming
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.cluster.connection.outage import Outage
from deniable.cluster.reading.partition_reader import fold
from tests.support.aggregator.builders import (
    COLLECTIONS,
    DEPLOYMENT,
    FRUIT,
    GENESIS,
    NOWHERE,
    T0,
    TOPICS,
    MemoryLog,
    record_of,
    run_of,
)

NOW_MS = T0 * 1000
DEADLINE_SECONDS = 60
QUICK = PartitionTiming(
    checkpoint=0.005,
    longest_pause=0.01,
    tick=0.005,
    look=0.005,
    publish=0.005,
    publish_behind=0.005,
    retry=0.005,
    cut=0.02,
)


class Broker:
    """A fake Kafka for one owner: its store and its source of records."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.log.append(TOPICS.state, 0, GENESIS[1], GENESIS[0])
        self.group_offset: int | None = None
        self.last: LastRecord | None = None
        self.now_ms = NOW_MS
        self.failures: list[Exception] = []
        self.while_committing: Callable[[], None] = lambda: None
        self.refused_topic: str | None = None
        self.transactions: list[list[Outgoing]] = []
        self.rewinds: list[int] = []
        self.keeps_end: int | None = None  # that it says, whatever was fetched
        self.current: OffsetChain | None = None
        self.while_opening: Callable[[], None] = lambda: None
        self.while_asked_for_the_end: Callable[[], None] = lambda: None
        self.answers = asyncio.Event()  # cleared: no commit returns
        self.answers.set()

    def store(self, *_: object) -> "Broker":
        """Replacement for the class LedgerStore."""
        return self

    async def open(self) -> dict[bytes, bytes]:
        found = self._rows()
        self.while_opening()
        return found

    def _rows(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for record in self.log.partition(TOPICS.state, 0):
            fold(found, record)
        return found

    async def commit(
        self, records: Iterable[Outgoing], position: int | None = None, last: LastRecord | None = None
    ) -> int:
        self.while_committing()
        await self.answers.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.transactions.append(list(records))
        if any(record.topic == self.refused_topic for record in self.transactions[-1]):
            raise KafkaError("fenced")
        self.log.extend(self.transactions[-1])
        self.last = last
        return self.now_ms

    async def committed(self) -> int | None:
        return self.group_offset

    async def close(self) -> None:
        pass

    async def rewind(self, partition: int, position: int, last: LastRecord | None = None) -> None:
        self.rewinds.append(position)
        self.current = OffsetChain(position)

    async def end_offset(self, partition: int) -> int:
        records = self.log.partition(TOPICS.reports, 0)
        fetched = self.current.cursor if self.current else 0
        end = max(fetched, records[-1].offset + 1 if records else 0)
        self.while_asked_for_the_end()
        return end if self.keeps_end is None else self.keeps_end

    def chain(self, partition: int) -> OffsetChain | None:
        return self.current

    def fetch(self, *offsets: int) -> None:
        assert self.current is not None
        self.current.admit(offsets, 0)

    def stored(self) -> dict[row_keys.Key, bytes]:
        return {row_keys.decode_key(key): value for key, value in self._rows().items()}


def served_from_memory(monkeypatch: pytest.MonkeyPatch) -> Broker:
    """The fake Kafka that owners use during the test."""
    broker = Broker()
    monkeypatch.setattr(owner_module, "LedgerStore", broker.store)
    monkeypatch.setattr(owner_module, "RowReader", broker.log.reader)
    return broker


class Running:
    """Run an owner of partition 0 within the block."""

    def __init__(self, broker: Broker, timing: PartitionTiming = QUICK) -> None:
        self.broker = broker
        self.metrics = WorkerMetrics(COLLECTIONS)
        self.owner = PartitionOwner(
            0, DEPLOYMENT, broker, self.metrics, timing, outage=Outage(NOWHERE, "counting waits")
        )
        self._stopping = asyncio.Event()

    async def __aenter__(self) -> "Running":
        self.task = asyncio.create_task(self.owner.run(self._stopping))
        await self.until(lambda: self.owner.readiness.reason_not_ready is None)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping.set()
        await self.task

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():  # noqa: ASYNC110 (an owner has no event to wait for)
                await asyncio.sleep(0.001)

    def offer(self, *offsets: int) -> None:
        for offset in offsets:
            self.owner.offer(run_of(offset, NOW_MS, record_of(number=offset)))

    async def stored(self) -> None:
        """Wait for a checkpoint that begins from now on."""
        for _ in range(2):
            before = self.owner.readiness._stored_at
            await self.until(lambda before=before: self.owner.readiness._stored_at != before)


def packs(broker: Broker) -> int:
    """Return the number of packs in the stored ledger."""
    row = broker.stored().get(row_keys.CountKey(FRUIT.fingerprint, T0, 0, 0))
    return row_values.decode_counters(row).packs if row else 0


def position(broker: Broker) -> int:
    return row_values.decode_progress(broker.stored()[row_keys.SingleKey.PROGRESS]).position


def last(broker: Broker) -> list[Outgoing]:
    return broker.transactions[-1]
