"""An owner on topics in memory: which records count, checkpoints, and when a partition is closed."""

import asyncio
import sys
import threading
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.partition import owner as owner_module
from deniable.aggregator.partition.fetching.offset_chain import OffsetChain
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.protocol.marker import MARKER
from tests.support.aggregator.builders import FRUIT, T0, TOPICS, run_of
from tests.support.aggregator.owner_runs import (
    DEADLINE_SECONDS,
    NOW_MS,
    QUICK,
    Broker,
    Running,
    last,
    packs,
    position,
    served_from_memory,
)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    return served_from_memory(monkeypatch)


def test_rows_read_on_opening_are_released(broker: Broker) -> None:
    """Otherwise ten million ids would take twice the memory as long as the partition is owned."""
    row = row_values.encode_published(row_values.Published(1, final=False))
    key = row_keys.encode_key(row_keys.PublishedKey(FRUIT.fingerprint, T0))
    broker.log.append(TOPICS.state, 0, row, key)
    before = sys.getrefcount(row)

    async def run() -> None:
        async with Running(broker) as running:
            await running.until(lambda: sys.getrefcount(row) == before)

    asyncio.run(run())


@pytest.mark.slow
def test_slow_checkpoint_does_not_lengthen_the_pause(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses, wait_for = [], asyncio.wait_for

    async def shown(event: Coroutine[Any, Any, bool], pause: float) -> bool:
        pauses.append(pause)
        return await wait_for(event, pause)

    monkeypatch.setattr(asyncio, "wait_for", shown)
    broker.while_committing = lambda: time.sleep(0.1)

    async def run() -> None:
        async with Running(broker, replace(QUICK, longest_pause=0.05)) as running:
            broker.fetch(0)
            running.offer(0)
            await running.stored()

    asyncio.run(run())
    assert max(pauses) == 0.05


def test_counts_during_last_checkpoint_are_stored(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1)
            broker.answers.clear()
            began = list[None]()
            broker.while_committing = lambda: began.append(None)
            running.offer(0)
            await running.until(lambda: bool(began))
            running.offer(1)
            asyncio.get_running_loop().call_later(0.05, broker.answers.set)

    asyncio.run(run())
    assert (packs(broker), position(broker)) == (2, 2)


def test_rows_are_encoded_in_a_thread(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, compose = set(), owner_module.compose

    def shown(*of: Any) -> list[Outgoing]:
        threads.add(threading.current_thread())
        return compose(*of)

    monkeypatch.setattr(owner_module, "compose", shown)

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0)
            running.offer(0)
            await running.stored()

    asyncio.run(run())
    assert threads
    assert threading.main_thread() not in threads


def test_only_the_record_at_the_position_counts(broker: Broker) -> None:
    """Twice, late, too soon: all ignored. Offsets 3 and 4 are a hole in the log itself."""

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1, 2, 5, 6)
            running.offer(1, 0, 0, 2, 1, 0, 5, 2, 6, 5, 5, 7)
            await running.stored()

    asyncio.run(run())
    assert (packs(broker), position(broker)) == (4, 6)


def test_without_a_chain_nothing_is_counted(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.current = None
            running.offer(0)
            assert running.owner._ledger is not None
            assert running.owner._ledger.position == 0
            await running.until(lambda: broker.rewinds == [0, 0])

    asyncio.run(run())


def test_stop_does_not_wait_for_the_next_checkpoint(broker: Broker) -> None:
    timing = replace(QUICK, checkpoint=1000, longest_pause=1000)

    async def run() -> None:
        async with asyncio.timeout(DEADLINE_SECONDS), Running(broker, timing) as running:
            broker.fetch(0)
            running.offer(0)

    asyncio.run(run())
    assert packs(broker) == 1


def test_stop_stores_what_was_counted(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1)
            running.offer(0, 1)

    asyncio.run(run())
    assert (packs(broker), position(broker)) == (2, 2)


def test_undelivered_records_are_fetched_again(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker, replace(QUICK, stuck=0.05)) as running:
            broker.fetch(0, 1, 2)
            running.offer(0)
            await running.until(lambda: broker.rewinds == [0, 1])

    asyncio.run(run())


def closed_until(broker: Broker) -> int:
    key = row_keys.with_source(b"P", 0)
    return max(
        row_values.decode_progress(record.value or b"").watermark_ms
        for record in broker.log.partition(TOPICS.counts, 0)
        if record.key == key
    )


@pytest.mark.parametrize("markers", [0, 1])
def test_idle_partition_is_closed_by_a_marker_alone(broker: Broker, markers: int) -> None:
    """Not by the end of the log, which is what one broker believes, nor by the time of a row of `state`."""
    broker.now_ms = NOW_MS + 60_000

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1)
            running.offer(0)
            if markers:
                running.owner.offer(run_of(1, NOW_MS + 30_000, MARKER))
            await running.stored()
            await running.stored()

    asyncio.run(run())
    assert closed_until(broker) == NOW_MS + 30_000 * markers
    assert (packs(broker), position(broker)) == (1, 1 + markers)
    assert not any(record.topic == TOPICS.rejected for each in broker.transactions for record in each)


def test_a_broker_that_knows_of_less_does_not_end_the_owner(broker: Broker) -> None:
    """As a leader that was replaced, or a replica that has just begun to lead."""

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0)
            running.offer(0)
            await running.stored()
            broker.current = OffsetChain(1)
            broker.current.cursor = 0
            await running.stored()
            assert running.owner.readiness.reason_not_ready is None
            assert not running.task.done()

    asyncio.run(run())
    assert (packs(broker), position(broker)) == (1, 1)


def test_expirations_are_published_with_progress_at_once(broker: Broker) -> None:
    """An estimator that lacks rows must learn from progress that their window has expired."""

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1, 2)
            running.offer(0)
            await running.stored()
            running.owner.timing = replace(QUICK, publish=1000, publish_behind=1000)
            running.offer(1)
            await running.until(lambda: running.owner._publish_at > time.monotonic() + 100)
            running.owner.offer(run_of(2, FRUIT.dies_at(T0) * 1000 + 1, b"no pack"))
            await running.until(
                lambda: any(r.topic == TOPICS.counts and r.value is None for r in last(broker))
            )

    asyncio.run(run())
    keys = [(record.key or b"")[:1] for record in last(broker) if record.topic == TOPICS.counts]
    assert keys == [b"R", b"P", b"P", b"C"]


@pytest.mark.parametrize("is_behind", [True, False])
def test_catching_up_publishes_less_often(broker: Broker, is_behind: bool) -> None:
    """While records are left that were appended long ago; with new ones, counts are published as ever."""

    async def run() -> None:
        timing = replace(QUICK, publish_behind=1000)
        async with Running(broker, timing) as running:
            broker.fetch(0, 1)
            await running.until(lambda: running.owner._end == 2)
            running.owner.offer(run_of(0, NOW_MS if is_behind else int(time.time() * 1000), b"no pack"))
            await running.until(lambda: position(broker) == 1)
            await running.until(lambda: (running.owner._publish_at > time.monotonic() + 100) == is_behind)

    asyncio.run(run())
