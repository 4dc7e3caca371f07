"""What an owner reports, and when: readiness, stalls, counts, estimates."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from aiokafka.errors import KafkaError

from deniable.protocol.topic_names import Topics
from tests.support.aggregator.builders import TOPICS, record_of, run_of
from tests.support.aggregator.owner_runs import (
    DEADLINE_SECONDS,
    NOW_MS,
    QUICK,
    Broker,
    Running,
    served_from_memory,
)
from tests.support.messages import PinMessages

COUNTED = {"collection": "fruit", "result": "counted"}


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    return served_from_memory(monkeypatch)


def test_stalled_counting_is_not_ready(broker: Broker) -> None:
    """The log grows but nothing is fetched: the worker looks alive but does nothing, so it is rewound."""

    async def run() -> None:
        async with Running(broker, replace(QUICK, standstill=0.05)) as running:
            broker.log.append(TOPICS.reports, 0, b"no pack")
            await running.until(lambda: running.owner.readiness.reason_not_ready is not None)
            assert stalled(running) == 1
            await running.until(lambda: broker.rewinds == [0, 0])
            broker.fetch(0)
            running.owner.offer(run_of(0, NOW_MS, b"no pack"))
            await running.until(lambda: running.owner.readiness.reason_not_ready is None)
            assert stalled(running) == 0

    asyncio.run(run())


def test_unstorable_record_stalls_the_partition(broker: Broker) -> None:
    """The first transaction of each opening, before that record, is stored; the next one is not."""
    broker.refused_topic = TOPICS.rejected
    broker.log.append(TOPICS.reports, 0, b"no pack")

    async def run() -> None:
        running, stopping = Running(broker, replace(QUICK, standstill=0.1)), asyncio.Event()
        task = asyncio.create_task(running.owner.run(stopping))

        async def deliver_until(condition: Callable[[], bool]) -> set[bool]:
            """Readiness values seen meanwhile."""
            ready = set()
            while not condition():
                if broker.current is not None and broker.current.cursor == 0:
                    broker.fetch(0)
                running.owner.offer(run_of(0, NOW_MS, b"no pack"))
                ready.add(running.owner.readiness.reason_not_ready is None)
                await asyncio.sleep(0.001)
            return ready

        async with asyncio.timeout(2 * DEADLINE_SECONDS):
            await deliver_until(lambda: stalled(running) == 1)
            openings = len(broker.rewinds)
            assert await deliver_until(lambda: len(broker.rewinds) >= openings + 3) == {False}
            broker.refused_topic = None
            await deliver_until(lambda: running.owner.readiness.reason_not_ready is None)
        stopping.set()
        await task

    asyncio.run(run())


def test_ledger_that_cannot_be_stored_is_never_ready(broker: Broker, pin_messages: PinMessages) -> None:
    """It keeps reopening, and looks healthy each time until its first transaction."""
    broker.refused_topic = TOPICS.counts

    async def run() -> None:
        running = Running(broker, replace(QUICK, unstored=0.1))
        task = asyncio.create_task(running.owner.run(asyncio.Event()))
        seen = set()
        async with asyncio.timeout(DEADLINE_SECONDS):
            while len(broker.rewinds) < 10 or not stalled(running):
                seen.add(running.owner.readiness.reason_not_ready)
                await asyncio.sleep(0.001)
        task.cancel()
        assert None not in seen
        refused, opening = sorted(seen)
        pin_messages({"a refused transaction": lambda: refused, "a ledger that opens": lambda: opening})

    asyncio.run(run())


@pytest.mark.slow
def test_hanging_checkpoint_is_not_ready(broker: Broker, pin_messages: PinMessages) -> None:
    async def run() -> None:
        async with Running(broker, replace(QUICK, unstored=0.5)) as running:
            broker.answers.clear()
            broker.fetch(0)
            running.offer(0)
            await running.until(lambda: running.owner.readiness.reason_not_ready is not None)
            reason = running.owner.readiness.reason_not_ready
            pin_messages({"nothing is stored": lambda: reason})
            assert stalled(running)
            broker.answers.set()
            await running.until(lambda: running.owner.readiness.reason_not_ready is None)
            assert not stalled(running)

    asyncio.run(run())


def stalled(running: Running) -> float | None:
    running.owner.readiness.show_standstill()
    return running.metrics.registry.get_sample_value("deniable_stalled", {"partition": "0"})


def test_pack_is_counted_once_when_committed(broker: Broker) -> None:
    """Each is counted twice: the transaction of one fails while the other is counted."""

    async def run() -> list[float | None]:
        async with Running(broker) as running:
            value = running.metrics.registry.get_sample_value
            shown = []
            broker.fetch(0, 1)
            broker.failures.append(KafkaError("fenced"))
            broker.while_committing = lambda: running.owner.offer(run_of(1, NOW_MS, b"no pack"))
            running.owner.offer(run_of(0, NOW_MS, record_of()))
            await running.until(lambda: len(broker.rewinds) == 2)
            shown.append(value("deniable_reports_total", COUNTED))
            broker.fetch(0, 1)
            running.owner.offer(run_of(0, NOW_MS, record_of()))
            running.owner.offer(run_of(1, NOW_MS, b"no pack"))
            await running.stored()
            shown.append(value("deniable_reports_total", COUNTED))
            shown.append(value("deniable_packs_rejected_total", {"reason": "malformed"}))
        return shown

    assert asyncio.run(run()) == [0, 3, 1]


def test_estimate_is_published_once_committed(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates of a fenced owner must not reach the topic, on which the page and metrics are based."""
    monkeypatch.setattr(Topics, "counts_partition", lambda *_: 0)
    broker.refused_topic = TOPICS.estimates

    def published() -> int:
        return sum(len(broker.log.partition(TOPICS.estimates, each)) for each in range(TOPICS.partitions))

    async def run() -> None:
        async with Running(broker, QUICK) as running:
            broker.fetch(0)
            running.owner.offer(run_of(0, NOW_MS, record_of(reports=[0] * 9)))
            await running.until(lambda: len(broker.rewinds) == 2)
            assert published() == 0
            broker.refused_topic = None
            await running.until(lambda: published() > 0)

    asyncio.run(run())
    assert published() == 1


def test_lost_ledger_is_not_ready_until_reopened(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker, replace(QUICK, retry=0.05)) as running:
            broker.failures.append(KafkaError("fenced"))
            broker.fetch(0)
            running.offer(0)
            await running.until(lambda: running.owner.readiness.reason_not_ready is not None)
            assert "fenced" in (running.owner.readiness.reason_not_ready or "")
            await running.until(lambda: running.owner.readiness.reason_not_ready is None)

    asyncio.run(run())
