"""Opening a ledger may take any time while rows arrive, and fails when they stop."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    IllegalOperation,
)
from aiokafka.structs import OffsetAndMetadata

from deniable.aggregator.ledger import row_values
from deniable.aggregator.partition import ledger_store as store_module
from deniable.aggregator.partition.ledger_store import STORE_ERRORS, LedgerStore
from deniable.aggregator.partition.timing import DEFAULT, PartitionTiming
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.cluster.reading.partition_reader import KafkaRecord
from tests.support.aggregator.builders import (
    NOWHERE,
    TOPICS,
    MemoryLog,
    MemoryReader,
    MemoryRecord,
    progress_row,
)
from tests.support.messages import PinMessages

ROWS = 8
RECORDS_PER_BATCH = 100
OPEN_SECONDS = 2.0  # of which each row of a slow log takes a quarter, and a busy machine may take the rest


class Producer:
    """The part of Kafka's producer that a store uses; it writes to a log in memory."""

    def __init__(self, log: MemoryLog) -> None:
        self.log = log

    def __call__(self, **_: object) -> "Producer":
        """Stands in for the class AIOKafkaProducer."""
        return self

    async def start(self) -> None:
        pass

    async def begin_transaction(self) -> None:
        pass

    async def commit_transaction(self) -> None:
        pass

    def create_batch(self) -> "Batch":
        return Batch()

    async def send_batch(self, batch: "Batch", topic: str, partition: int) -> "asyncio.Future[Any]":
        offsets = [self.log.append(topic, partition, value, key) for key, value in batch.records]
        sent: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        sent.set_result(self.log.partition(topic, partition)[offsets[0]])
        return sent


class Batch:
    """The part of aiokafka's batches that a store uses."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes | None, bytes | None]] = []

    def append(self, *, timestamp: None, key: bytes | None, value: bytes | None) -> MemoryRecord | None:
        if len(self.records) == RECORDS_PER_BATCH:
            return None
        self.records.append((key, value))
        return MemoryRecord(len(self.records) - 1, 0, key, value)


class SlowReader(MemoryReader):
    """Returns one row at a time, with a pause between rows, and none from some point on."""

    silent_after = ROWS

    async def poll(self, milliseconds: int = 0) -> list[KafkaRecord]:
        await asyncio.sleep(OPEN_SECONDS / 4)
        batch = [record for record in self._records if record.offset >= self._next][:1]
        if self._next >= self.silent_after:
            return []
        self._next += len(batch)
        return batch


def open_slowly(monkeypatch: pytest.MonkeyPatch, silent_after: int) -> dict[bytes, bytes]:
    log = MemoryLog()
    for number in range(ROWS):
        log.append(TOPICS.state, 0, progress_row(number), b"P")
    monkeypatch.setattr(store_module, "AIOKafkaProducer", Producer(log))
    monkeypatch.setattr(store_module, "RowReader", lambda *_: SlowReader(log.partition(TOPICS.state, 0)))
    monkeypatch.setattr(SlowReader, "silent_after", silent_after)
    return asyncio.run(LedgerStore(NOWHERE, TOPICS, 0, PartitionTiming(open=OPEN_SECONDS)).open())


@pytest.mark.slow
def test_large_ledger_may_open_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the tolerated silence in this test."""
    stored = open_slowly(monkeypatch, ROWS + 1)
    assert row_values.decode_progress(stored[b"P"]).position == ROWS - 1


def test_ledger_overtaken_while_reading_reports_it(
    pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compaction has removed its own nonce, so it would wait for it forever."""
    log = MemoryLog()

    class Overtaken(Producer):
        async def commit_transaction(self) -> None:
            log.append(TOPICS.state, 0, b"nonce of a successor", b"O")
            del log.partition(TOPICS.state, 0)[0]

    monkeypatch.setattr(store_module, "AIOKafkaProducer", Overtaken(log))
    monkeypatch.setattr(store_module, "RowReader", log.reader)
    pin_messages({"a successor": lambda: asyncio.run(LedgerStore(NOWHERE, TOPICS, 0).open())})


@pytest.mark.slow
def test_opening_fails_when_rows_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TimeoutError):
        open_slowly(monkeypatch, ROWS // 2)


def test_transaction_failing_between_sends_is_a_store_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next send finds no transaction and raises an error that is no KafkaError."""

    class Refused(Producer):
        async def send_batch(self, batch: Batch, topic: str, partition: int) -> "asyncio.Future[Any]":
            raise IllegalOperation("Can't send messages while not in transaction")

    monkeypatch.setattr(store_module, "AIOKafkaProducer", Refused(MemoryLog()))
    with pytest.raises(STORE_ERRORS, match="transaction"):
        asyncio.run(LedgerStore(NOWHERE, TOPICS, 0).open())


@pytest.mark.parametrize("call", ["start", "send_batch"])
def test_assertion_error_of_aiokafka_is_kafka_error(
    pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Did we not perform bootstrap?")

    producer = Producer(MemoryLog())
    monkeypatch.setattr(producer, call, refuse)
    monkeypatch.setattr(store_module, "AIOKafkaProducer", producer)
    pin_messages({"an assertion": lambda: asyncio.run(LedgerStore(NOWHERE, TOPICS, 0).open())})


def test_assertion_error_while_producer_stops_is_not_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []

    class Client:
        async def close(self) -> None:
            closed.append(True)

    class Stopped(Producer):
        client = Client()
        _message_accumulator = SimpleNamespace(_batches={}, _pending_batches=())
        _sender = SimpleNamespace(sender_task=None)

        async def stop(self) -> None:
            raise AssertionError("Did we not perform bootstrap?")

    async def run() -> None:
        store = LedgerStore(NOWHERE, TOPICS, 0)
        await store.open()
        await store.close()

    log = MemoryLog()
    monkeypatch.setattr(store_module, "AIOKafkaProducer", Stopped(log))
    monkeypatch.setattr(store_module, "RowReader", log.reader)
    asyncio.run(run())
    assert closed == [True]


class SlowProducer(Producer):
    """Takes some time per record."""

    async def send_batch(self, batch: Batch, topic: str, partition: int) -> "asyncio.Future[Any]":
        await asyncio.sleep(0.02 * len(batch.records))
        return await super().send_batch(batch, topic, partition)


def commit(
    monkeypatch: pytest.MonkeyPatch, log: MemoryLog, records: int, timing: PartitionTiming = DEFAULT
) -> None:
    """Commit from a store with an empty ledger."""

    async def run() -> None:
        store = LedgerStore(NOWHERE, TOPICS, 0, timing)
        await store.open()
        await store.commit([Outgoing(TOPICS.state, 0, b"P", progress_row(1))] * records)

    monkeypatch.setattr(store_module, "AIOKafkaProducer", SlowProducer(log))
    monkeypatch.setattr(store_module, "RowReader", log.reader)
    asyncio.run(run())


@pytest.mark.all
def test_large_transaction_has_a_longer_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """150 records take at least 3 s: more than `commit`, and far less than `commit` with 150 / 5 s."""
    commit(monkeypatch, MemoryLog(), 150, PartitionTiming(commit=2, commit_rate=5))
    with pytest.raises(TimeoutError):
        commit(monkeypatch, MemoryLog(), 150, PartitionTiming(commit=2, commit_rate=10_000))


def test_falling_offsets_reveal_recreated_topic(
    pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forgetful(MemoryLog):
        def append(
            self,
            topic: str,
            partition: int,
            value: bytes | None,
            key: bytes | None = None,
            append_ms: int = 0,
        ) -> int:
            if key == b"P":
                self.partition(topic, partition).clear()
            return super().append(topic, partition, value, key, append_ms)

    log = Forgetful()
    for _ in range(3):
        log.append(TOPICS.state, 0, b"", b"V")
    pin_messages({"a topic that was recreated": lambda: commit(monkeypatch, log, 1)})


class Admin:
    """The part of Kafka's admin client that a store uses: returns one answer after the other."""

    def __init__(self, *answers: dict[TopicPartition, OffsetAndMetadata] | Exception) -> None:
        self.answers = list(answers)

    def __call__(self, **_: object) -> "Admin":
        """Stands in for the class AIOKafkaAdminClient."""
        return self

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def list_consumer_group_offsets(
        self, *_: object, **__: object
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(("offset", "committed"), [(7, 7), (-1, None)])
def test_group_offset_is_requested_until_known(
    monkeypatch: pytest.MonkeyPatch, offset: int, committed: int | None
) -> None:
    """The client reports a coordinator that is loading its log as an empty answer."""
    known = {TopicPartition(TOPICS.reports, 0): OffsetAndMetadata(offset, "")}
    admin = Admin({}, GroupCoordinatorNotAvailableError(), {}, known)
    monkeypatch.setattr(store_module, "AIOKafkaAdminClient", admin)
    store = LedgerStore(NOWHERE, TOPICS, 0, PartitionTiming(coordinator=0.0))
    assert asyncio.run(store.committed()) == committed
    assert admin.answers == []
