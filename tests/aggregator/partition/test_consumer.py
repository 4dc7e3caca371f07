"""How our consumer differs from Faust's: wait times, batches, and fairness."""

import asyncio
import socket
from contextlib import contextmanager
from dataclasses import replace

import pytest
from aiokafka.conn import AIOKafkaConnection
from faust.types import TP

from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.partition import faust_app
from deniable.aggregator.partition.consumer import FETCH_WAIT_MILLISECONDS, READ_AHEAD_BYTES
from deniable.aggregator.partition.faust_app import COUNTING_SECONDS, _count, build_app
from deniable.aggregator.partition.fetching.last_record import LastRecord
from deniable.aggregator.partition.fetching.offset_chain import BrokenChainError, OffsetChain
from tests.support.aggregator.builders import DEPLOYMENT, LogRecord
from tests.support.messages import PinMessages

SOURCE = TP("deniable-reports", 3)


async def _ignore(message):
    pass


@contextmanager
def new_consumer():
    """A consumer as created by Faust's app."""
    app = build_app(DEPLOYMENT, None)
    consumer = app.transport.create_consumer(
        _ignore, on_partitions_revoked=_ignore, on_partitions_assigned=_ignore
    )
    try:
        yield consumer
    finally:
        consumer._thread.thread_loop.close()


def run_until(end, first=0):
    """A run of the offsets first..end-1."""
    return Run.of(LogRecord(offset, 1000 * offset, b"pack") for offset in range(first, end))


class Offers:
    """Stand-in for owners: records what was offered; each offer takes some seconds of a fake clock."""

    def __init__(self, seconds):
        self.seconds, self.now, self.taken = seconds, 0.0, []

    def monotonic(self):
        return self.now

    def offer(self, partition, run):
        self.now += self.seconds
        self.taken.append((partition, run.offsets.tolist()))


def test_new_leader_breaks_the_chain_once():
    """It may have lost what was counted, and more behind that; the next chain begins with the last record."""
    first, second = (replace(run_until(end, end - 5), epoch=epoch) for end, epoch in ((5, 0), (10, 1)))
    with new_consumer() as consumer:
        old = OffsetChain(0)
        assert consumer._of_this_leader(SOURCE, old, [first]) == [first]
        with pytest.raises(BrokenChainError):
            consumer._of_this_leader(SOURCE, old, [second])
        chain = OffsetChain(5, LastRecord.of(first, -1))
        assert [len(run) for run in consumer._of_this_leader(SOURCE, chain, [first.part(4, 5), second])] == [
            5
        ]
        assert chain.is_proven
        assert consumer._of_this_leader(SOURCE, chain, [second]) == [second]


@pytest.mark.slow
def test_faust_client_uses_our_fetch_wait():
    """Faust's own would wait 1.5 s, and delay records of other partitions."""

    async def fetch_wait():
        with new_consumer() as consumer:
            client = consumer._thread._create_worker_consumer(consumer.app.transport)
            await client.stop()
            return client._fetch_max_wait_ms

    assert asyncio.run(fetch_wait()) == FETCH_WAIT_MILLISECONDS < 1500


def test_client_listens_until_an_answer_arrives():
    """With asyncio's default limit, pausing and resuming the socket cost a tenth of the worker's speed."""

    async def limit_of_a_reader():
        with new_consumer() as consumer:
            await consumer._thread._create_worker_consumer(consumer.app.transport).stop()
        with socket.create_server(("127.0.0.1", 0)) as broker:
            connection = AIOKafkaConnection(*broker.getsockname())
            connecting = asyncio.create_task(connection.connect())  # waits for a broker's first bytes
            while connection._reader is None:
                await asyncio.wait([connecting], timeout=0.01)
            limit = connection._reader._limit
            connecting.cancel()
            await asyncio.wait([connecting])
            connection.close()
        return limit

    assert asyncio.run(limit_of_a_reader()) == READ_AHEAD_BYTES > 2**16


def test_runs_of_one_fetch_and_partition_are_one_message():
    """A message costs Faust more than its pack costs us. Its codec "raw" must pass a list through."""

    async def event_of(records):
        with new_consumer() as consumer:
            message = consumer._to_message(SOURCE, records)
            return await consumer.app.agents["count"].channel.decode(message, propagate=True)

    runs = [run_until(9, first=7), run_until(10, first=9)]
    event = asyncio.run(event_of(runs))
    message = event.message
    assert (message.tp, message.partition, message.offset, message.timestamp) == (SOURCE, 3, 9, 9.0)
    assert event.value == runs


def test_full_stream_does_not_stop_fetching():
    """Faust stops fetching it, and waits a second if no other stream remains."""

    async def active_when_full():
        with new_consumer() as consumer:
            consumer._active_partitions = {SOURCE}
            consumer.on_buffer_full(SOURCE)
            return consumer._active_partitions

    assert asyncio.run(active_when_full()) == {SOURCE}


@pytest.mark.parametrize(("seconds", "turns"), [(0, 0), (COUNTING_SECONDS, 10)])
def test_other_tasks_run_while_a_fetch_is_counted(seconds, turns, monkeypatch):
    offers = Offers(seconds)
    monkeypatch.setattr(faust_app, "time", offers)
    monkeypatch.setattr(faust_app, "COUNTED_RECORDS", 5)

    async def counted():
        had = 0

        async def other():
            nonlocal had
            while len(offers.taken) < 10:
                await asyncio.sleep(0)
                had += len(offers.taken) < 10

        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        await _count(offers, 3, [run_until(30), run_until(50, first=30)])
        await task
        return had

    had = asyncio.run(counted())
    assert offers.taken == [(3, list(range(first, min(first + 5, 50)))) for first in range(0, 50, 5)]
    assert had == max(turns - 1, 0)


def test_seek_without_assignment_is_kafka_error(pin_messages: PinMessages) -> None:
    """A rebalance may revoke the assignment between the owner's call and the consumer's thread."""

    def refuse(source, position):
        raise AssertionError

    async def seek():
        with new_consumer() as consumer:
            consumer._thread.seek = refuse
            await consumer._seek_in_thread(SOURCE, 7)

    pin_messages({"a partition that is not assigned": lambda: asyncio.run(seek())})
