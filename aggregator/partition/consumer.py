"""Faust's consumer with the ledgers' positions in place of committed offsets.

Faust 0.15.3 by itself loses and doubles records in rebalances, pauses and restarts; each override says which
of its habits it stands against. What the counts rest on is in `owner`; here records are only fetched, in an
unbroken chain for each partition, and fetched again from wherever an owner says.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiokafka.conn
import faust
from aiokafka.errors import KafkaError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from aggregator.partition.assignment import Assignment
from aggregator.partition.failures import RecordsLostError
from aggregator.partition.fair_fetching import FairFetching
from aggregator.partition.ledger_store import STORE_ERRORS
from aggregator.partition.offset_chain import BrokenChainError, OffsetChain
from aggregator.topics.names import Topics

IDLE_SECONDS = 0.1
FETCH_WAIT_MILLISECONDS = 50
READ_AHEAD_BYTES = 4 * 2**20  # of a broker's answer, which is read into memory whole anyway


class ExactApp(faust.App):
    """A Faust app that hands every delivered record to its partition's owner."""

    owners: Assignment
    topics_of_deployment: Topics

    async def on_first_start(self) -> None:
        """Make no folders for tables, as Faust would, and time no record for metrics that nobody reads."""
        self.sensors.remove(self.monitor)
        self.sensors.add(faust.Sensor())  # which does nothing: Faust warns where there is none


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """Waits for new records so briefly that it holds up those that are there.

    A broker is asked for one thing at a time: where one partition is at its end, what was asked of it stands
    in the way of the others, whose records are used up meanwhile, for as long as it may wait: 1.5 s in Faust.
    It listens on until an answer is there: aiokafka stops listening at each 128 KiB, and begins anew.
    """

    def _create_worker_consumer(self, transport: driver.Transport) -> Any:
        aiokafka.conn.READER_LIMIT = READ_AHEAD_BYTES
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MILLISECONDS
        return consumer


class Consumer(driver.Consumer):
    """Feeds owners: it is the `RecordSource` that they know."""

    app: ExactApp

    def on_init(self) -> None:
        """Begin without any chain: nothing is fetched before an owner asks for it."""
        super().on_init()
        self._chains: dict[int, OffsetChain] = {}
        self._turns: FairFetching[TP] = FairFetching()

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def chain(self, partition: int) -> OffsetChain | None:
        """What was fetched since the last rewind; None when another rewind is needed."""
        return self._chains.get(partition)

    async def rewind(self, partition: int, position: int) -> None:
        """Seek in the consumer's own thread, between two of its fetches, then begin a new chain.

        Raises RecordsLostError when the log begins beyond the position: retention deleted uncounted records.
        """
        self._chains.pop(partition, None)
        source = self._source(partition)
        start = await self._log_start(source)
        if start > position:
            raise RecordsLostError(partition, position, start)
        await self._thread.call_thread(self._seek_in_thread, source, position)
        self._chains[partition] = OffsetChain(position)

    async def end_offset(self, partition: int) -> int:
        """End of the log, uncommitted records included."""
        source = self._source(partition)
        return int((await self.highwaters(source))[source])

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Let all ledgers go before the group does anything else."""
        self._chains.clear()
        await self.app.owners.release()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Open the ledgers of what is assigned now."""
        self._chains.clear()
        await super().on_partitions_assigned(assigned, generation_id)
        topic = self.app.topics_of_deployment.reports
        await self.app.owners.assign(sorted(tp.partition for tp in assigned if tp.topic == topic), self)

    async def perform_seek(self) -> None:
        """Faust calls this where it drops what it had fetched: owners begin new chains."""
        self._chains.clear()

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Offsets leave in the ledgers' transactions only."""
        return True

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:  # noqa: ASYNC109 (Faust's)
        """Hand all over: Faust drops what lies below the highest offset it ever read, after a rewind too."""
        async for tp, message in super().getmany(timeout):
            self._read_offset[tp] = message.offset
            yield tp, message

    def on_buffer_full(self, tp: TP) -> None:
        """Fetch on: a full stream makes its feeder wait; Faust waits 1 s once all partitions are full."""

    def _to_message(self, tp: TP, record: Any) -> ConsumerMessage:
        """What a fetch brought of a partition, as the value of one message: each costs Faust 0.1 ms."""
        message = super()._to_message(tp, record[-1])
        message.value = record
        return message

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:  # noqa: ASYNC109
        """Fetch where the chain is known; drop what a rewind has overtaken while the fetch ran."""
        active = self.assignment() if active_partitions is None else active_partitions
        chains = {tp: self._chains[tp.partition] for tp in active if tp.partition in self._chains}
        if not chains:
            # An empty set would mean "all partitions" to the fetcher.
            await self.sleep(IDLE_SECONDS)
            return {}
        try:
            fetched = await self._turns.hand_over(set(chains), super()._getmany, timeout)
        except BaseException:
            # The fetch may go on in its thread, and what it brings would be lost without a trace.
            for tp in chains:
                self._chains.pop(tp.partition, None)
            raise
        return {
            tp: [batch] for tp, chain in chains.items() if (batch := await self._admit(tp, chain, fetched))
        }

    async def _admit(self, tp: TP, chain: OffsetChain, fetched: Mapping[TP, list[Any]]) -> list[Any]:
        """What continues the chain; if it does not, nothing, the chain ends here and its owner rewinds."""
        batch = fetched.get(tp, [])
        offsets, beyond = [record.offset for record in batch], self._fetcher_position(tp)
        # The fetcher goes on at the log's start by itself when retention has deleted where it stood.
        hole = chain.first_hole(offsets, beyond)
        eaten = hole is not None and await self._begins_beyond(tp, hole)
        if self._chains.get(tp.partition) is not chain:
            self._chains.pop(tp.partition, None)
            return []
        try:
            if eaten:
                raise BrokenChainError(f"the log may start beyond offset {hole}")
            chain.admit(offsets, beyond)
        except BrokenChainError as broken:
            self.log.warning("Rewinding %s: %s", tp, broken)
            del self._chains[tp.partition]
            return []
        return batch

    def _source(self, partition: int) -> TP:
        return self._new_topicpartition(self.app.topics_of_deployment.reports, partition)

    async def _log_start(self, source: TP) -> int:
        return int((await self.earliest_offsets(source))[source])

    async def _begins_beyond(self, source: TP, offset: int) -> bool:
        """Whether the log starts beyond an offset, or cannot be asked: a rewind then asks again."""
        try:
            return await self._log_start(source) > offset
        except STORE_ERRORS:
            return True

    async def _seek_in_thread(self, source: TP, position: int) -> None:
        try:
            self._thread.seek(source, position)
        except AssertionError as error:  # by which aiokafka says that a rebalance has taken the assignment
            raise KafkaError(f"partition {source.partition} cannot be sought: it is not assigned") from error

    def _fetcher_position(self, tp: TP) -> int:
        """Where the fetcher stands, beyond holes that have no record after them yet; 0 when not known."""
        assignment = self._thread._ensure_consumer()._subscription.subscription.assignment
        state = assignment.state_value(tp) if assignment else None
        return state.position if state is not None and state.has_valid_position else 0
