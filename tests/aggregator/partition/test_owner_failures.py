"""An owner that loses its ledger reads it again and repairs nothing; permanent failures end the worker."""

import asyncio
import gc
import re
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from aiokafka.errors import KafkaError, ProducerFenced
from structlog.testing import capture_logs

from deniable.aggregator.ledger.counting.tally import Tally
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition import owner as owner_module
from deniable.aggregator.partition.assignment import Assignment
from deniable.aggregator.partition.failures import RecordsLostError
from deniable.aggregator.partition.ledger_checks import RowsMissingError
from deniable.aggregator.partition.ledger_store import LedgerStore
from deniable.aggregator.partition.timing import PartitionTiming
from tests.support.aggregator.builders import (
    COLLECTIONS,
    DEPLOYMENT,
    NOWHERE,
    TOPICS,
    progress_row,
    record_of,
    run_of,
)
from tests.support.aggregator.owner_runs import (
    DEADLINE_SECONDS,
    NOW_MS,
    QUICK,
    Broker,
    Running,
    packs,
    position,
    served_from_memory,
)
from tests.support.messages import PinMessages


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    return served_from_memory(monkeypatch)


def test_revocation_is_not_lost_in_a_failure(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It arrives while the owner still unwinds: reopening the ledger would fence the rightful owner."""
    unwinding = asyncio.Event()

    class SlowReader:
        def __init__(self, *of: object, **how: object) -> None:
            self.reader = broker.log.reader(*of, **how)

        async def __aenter__(self) -> object:
            return await self.reader.__aenter__()

        async def __aexit__(self, *failure: object) -> None:
            unwinding.set()
            await asyncio.sleep(0.05)
            await self.reader.__aexit__(*failure)

        def __getattr__(self, name: str) -> object:
            return getattr(self.reader, name)

    monkeypatch.setattr(owner_module, "RowReader", SlowReader)

    async def run() -> None:
        owners = Assignment(DEPLOYMENT, WorkerMetrics(COLLECTIONS), QUICK)
        await owners.assign([0], broker)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while owners.reasons_not_ready():  # noqa: ASYNC110 (an owner has no event)
                await asyncio.sleep(0.001)
            broker.failures.append(KafkaError("gone"))
            broker.now_ms += 1
            owners.offer(0, run_of(0, NOW_MS, b"no pack"))
            await unwinding.wait()
            opened = len(broker.rewinds)
            await owners.release()
            await asyncio.sleep(0.05)
        assert len(broker.rewinds) == opened

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("kind", [MemoryError, ValueError], ids=["memory", "defect"])
def test_record_that_fails_half_counted_is_counted_again(
    kind: type[Exception], broker: Broker, pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of it may be counted, so that ledger is discarded."""
    add = Tally.add_counts

    def fail_once(self: Tally, *counted: object) -> None:
        monkeypatch.setattr(Tally, "add_counts", add)
        raise kind("payload")

    async def run() -> None:
        async with Running(broker) as running:
            monkeypatch.setattr(Tally, "add_counts", fail_once)
            broker.fetch(0)
            assert running.owner._ledger is not None
            lost = weakref.ref(running.owner._ledger)
            running.offer(0)
            await running.until(lambda: broker.rewinds == [0, 0])
            gc.collect()
            assert lost() is None, "two ledgers take twice the memory"
            broker.fetch(0)
            running.offer(0)
            await running.stored()

    with capture_logs() as logs:
        asyncio.run(run())
    assert (packs(broker), position(broker)) == (1, 1)
    (shown,) = [entry["reason"] for entry in logs if entry["event"] == "ledger lost"]
    pin_messages({"a record that fails": lambda: re.sub(r"py:\d+", "py:LINE", shown)})


@pytest.mark.parametrize("failure", [KafkaError("fenced"), TimeoutError(), OSError("gone")], ids=repr)
def test_failed_checkpoint_reopens_the_ledger(broker: Broker, failure: Exception) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1, 2)
            running.offer(0)
            await running.stored()
            broker.failures.append(failure)
            running.offer(1)
            await running.until(lambda: len(broker.rewinds) == 2)
            assert broker.rewinds == [0, 1]
            broker.fetch(1, 2)
            running.offer(0, 1, 2)
            await running.stored()
            assert running.metrics.registry.get_sample_value("deniable_resyncs_total") == 1

    asyncio.run(run())
    assert (packs(broker), position(broker)) == (3, 3)


def test_our_assertion_error_ends_the_worker(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.failures.append(AssertionError("a defect"))
            broker.fetch(0)
            running.offer(0)
            await running.until(running.task.done)
            assert broker.rewinds == [0]

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(run())
    assert [repr(each) for each in caught.value.exceptions] == ["AssertionError('a defect')"]


def test_commits_of_a_successor_during_reading_are_no_loss(broker: Broker) -> None:
    """The successor fences this owner, which notices at its first transaction and must not end the worker."""

    def overtake() -> None:
        broker.group_offset = 5000

    broker.while_opening = overtake

    async def run() -> None:
        async with Running(broker) as running:
            assert running.owner.readiness.reason_not_ready is None

    asyncio.run(run())


def test_log_that_stays_shorter_than_the_position_is_not_counted_until_it_is_whole(broker: Broker) -> None:
    """A broker that still has the records may lead again: the worker waits, for that or for the operator."""

    async def run() -> None:
        async with Running(broker, replace(QUICK, cut=0.02)) as running:
            broker.fetch(0, 1)
            running.offer(0, 1)
            await running.stored()
            before = len(broker.transactions)
            broker.keeps_end = 1
            await running.until(lambda: "--accept-loss" in str(running.owner.readiness.reason_not_ready))
            for _ in range(100):
                await asyncio.sleep(0.001)
                assert running.owner.readiness.reason_not_ready is not None
            assert len(broker.transactions) == before
            broker.keeps_end = None
            await running.until(lambda: running.owner.readiness.reason_not_ready is None)

    asyncio.run(run())


def test_ledger_that_seems_to_miss_rows_is_read_again_for_a_while(broker: Broker) -> None:
    """A broker that was replaced may say so; the worker ends only if it lasts."""

    async def run(cut: float) -> None:
        broker.group_offset = 2
        running = Running(broker, replace(QUICK, cut=cut))
        task = asyncio.create_task(running.owner.run(asyncio.Event()))
        readiness = running.owner.readiness
        await running.until(lambda: task.done() or "--rebuild" in str(readiness.reason_not_ready))
        broker.group_offset = 0
        await running.until(lambda: task.done() or readiness.reason_not_ready is None)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(run(60))
    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(run(-1))
    (refusal,) = caught.value.exceptions
    assert isinstance(refusal, RowsMissingError)


def test_records_counted_during_end_request_may_exceed_end(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0)
            running.offer(0)
            await running.stored()

            def count() -> None:
                if broker.current is not None and broker.current.cursor == 1:
                    broker.fetch(1)
                    running.offer(1)

            broker.while_asked_for_the_end = count
            await running.until(lambda: position(broker) == 2)

    asyncio.run(run())


def test_rebalance_keeps_the_ledger_of_a_partition_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is stored or opened during it: the partition may be another worker's by then."""
    broker = served_from_memory(monkeypatch)
    openings: list[bool] = []
    broker.while_opening = lambda: openings.append(True)

    async def run() -> None:
        owners = Assignment(DEPLOYMENT, WorkerMetrics(COLLECTIONS), QUICK)

        async def until(condition: Callable[[], bool]) -> None:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while not condition():  # noqa: ASYNC110 (an owner has no event)
                    await asyncio.sleep(0.001)

        await owners.assign([0], broker)
        await until(lambda: not owners.reasons_not_ready())
        owners.suspend()
        broker.current = None
        stored, rewinds = len(broker.transactions), len(broker.rewinds)
        await asyncio.sleep(0.05)
        assert (len(broker.transactions), len(broker.rewinds), len(openings)) == (stored, rewinds, 1)
        await owners.assign([0], broker)
        await until(lambda: len(broker.rewinds) > rewinds)
        assert len(openings) == 1
        broker.failures.append(ProducerFenced())
        broker.fetch(0)
        owners.offer(0, run_of(0, NOW_MS, record_of(number=0)))
        await until(lambda: not broker.failures)
        owners.suspend()
        await asyncio.sleep(0.05)
        assert len(openings) == 1
        await owners.assign([], broker)
        await asyncio.sleep(0.05)
        assert len(openings) == 1

    asyncio.run(run())


def test_task_surviving_cancellation_is_cancelled_again() -> None:
    """Otherwise its partition could never move to another worker."""

    async def stubborn() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(DEADLINE_SECONDS)
        await asyncio.sleep(DEADLINE_SECONDS)

    async def run() -> None:
        owners = Assignment(DEPLOYMENT, WorkerMetrics(COLLECTIONS), PartitionTiming(cancel=0.01))
        task = owners._tasks[0] = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        await owners.release()
        assert task.cancelled()

    asyncio.run(run())


def test_owner_continues_from_stored_position(broker: Broker) -> None:
    broker.log.append(TOPICS.state, 0, progress_row(7, NOW_MS), b"P")

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(7)
            running.offer(0, 6, 7)

    asyncio.run(run())
    assert broker.rewinds == [7]
    assert (packs(broker), position(broker)) == (1, 8)


def test_messages(pin_messages: PinMessages) -> None:
    store = LedgerStore(NOWHERE, TOPICS, 0)
    pin_messages(
        {
            "a closed store": lambda: asyncio.run(store.commit([])),
            "lost records": lambda: str(RecordsLostError(3, 5, 9)),
        }
    )
