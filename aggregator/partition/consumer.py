"""Faust's consumer, positioned by the ledgers instead of committed offsets.

Faust 0.15.3 loses and duplicates records in rebalances, pauses and restarts; each override says which of its
habits it prevents. `owner` guarantees exact counts. This file only fetches records, in an unbroken chain per
partition, and fetches again from wherever an owner asks.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiokafka.conn
import faust
import numpy as np
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.partition.assignment import Assignment
from deniable.aggregator.partition.failures import RecordsLostError
from deniable.aggregator.partition.fetching.fair_fetching import FairFetching
from deniable.aggregator.partition.fetching.last_record import LastRecord
from deniable.aggregator.partition.fetching.offset_chain import BrokenChainError, OffsetChain
from deniable.aggregator.partition.fetching.run_fetching import ask_for_runs
from deniable.aggregator.partition.ledger_store import STORE_ERRORS
from deniable.protocol.topic_names import Topics

IDLE_SECONDS = 0.1
FETCH_WAIT_MILLISECONDS = 50
READ_AHEAD_BYTES = 4 * 2**20  # of a broker's answer, which is read into memory whole anyway


class ExactApp(faust.App):
    """A Faust app that hands every delivered run to its partition's owner."""

    owners: Assignment
    topics_of_deployment: Topics

    async def on_first_start(self) -> None:
        """Skip Faust's folders for tables, and its timing of records for metrics that nobody reads."""
        self.sensors.remove(self.monitor)
        self.sensors.add(faust.Sensor())  # a no-op: Faust warns without a sensor


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """Waits only briefly for new records, so that a partition at its end does not delay the others.

    A connection serves one fetch at a time. A fetch from a partition at its end blocks fetches from the
    others for as long as it may wait: 1.5 s in Faust. The larger read limit lets an answer arrive in one go:
    aiokafka pauses reading at each 128 KiB.
    """

    def _create_worker_consumer(self, transport: driver.Transport) -> Any:
        aiokafka.conn.READER_LIMIT = READ_AHEAD_BYTES
        consumer = super()._create_worker_consumer(transport)
        ask_for_runs(consumer)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MILLISECONDS
        return consumer


class Consumer(driver.Consumer):
    """Feeds owners, as their `RecordSource`."""

    app: ExactApp

    def on_init(self) -> None:
        """Start without chains: nothing is fetched before an owner rewinds."""
        super().on_init()
        self._chains: dict[int, OffsetChain] = {}
        self._epochs: dict[int, int] = {}  # the newest that a partition's leader has shown
        self._fair_fetching: FairFetching[TP] = FairFetching()

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def chain(self, partition: int) -> OffsetChain | None:
        """Offsets fetched since the last rewind; None if another rewind is needed."""
        return self._chains.get(partition)

    async def rewind(self, partition: int, position: int, last: LastRecord | None = None) -> None:
        """Seek in the consumer's own thread, between two fetches, then begin a new chain.

        It begins at the last counted record, unless retention has deleted that.

        Raises RecordsLostError if the log starts after the position: retention deleted uncounted records.
        """
        self._chains.pop(partition, None)
        source = self._source(partition)
        start = await self._log_start(source)
        if start > position:
            raise RecordsLostError(partition, position, start)
        chain = OffsetChain(position, last if last and last.offset >= start else None)
        await self._thread.call_thread(self._seek_in_thread, source, chain.cursor)
        self._chains[partition] = chain

    async def end_offset(self, partition: int) -> int:
        """End of the log, including uncommitted records."""
        source = self._source(partition)
        return int((await self.highwaters(source))[source])

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Suspend all ledgers before the rebalance continues: most partitions return."""
        self._chains.clear()
        self.app.owners.suspend()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Open the ledgers of newly assigned partitions, and go on with those of the others."""
        self._chains.clear()
        await super().on_partitions_assigned(assigned, generation_id)
        topic = self.app.topics_of_deployment.reports
        await self.app.owners.assign(sorted(tp.partition for tp in assigned if tp.topic == topic), self)

    async def perform_seek(self) -> None:
        """Drop all chains: Faust calls this when it drops fetched records."""
        self._chains.clear()

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit nothing: only the ledgers' transactions commit offsets."""
        return True

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, Any]]:  # noqa: ASYNC109 (Faust's)
        """Deliver all: Faust drops records below the highest offset it ever read, even after a rewind."""
        async for tp, message in super().getmany(timeout):
            self._read_offset[tp] = message.offset
            yield tp, message

    def on_buffer_full(self, tp: TP) -> None:
        """Keep fetching: a full stream blocks its feeder anyway; Faust sleeps 1 s if all are full."""

    def _to_message(self, tp: TP, record: Any) -> ConsumerMessage:
        """Wrap all runs fetched from a partition in one message: each message costs Faust 0.1 ms."""
        offset, append_ms = int(record[-1].offsets[-1]), int(record[-1].append_ms[-1])
        last = ConsumerRecord(tp.topic, tp.partition, offset, append_ms, 1, None, b"", None, -1, 0, ())
        message = super()._to_message(tp, last)
        message.value = record
        return message

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:  # noqa: ASYNC109
        """Fetch partitions that have a chain; drop records of chains that a rewind replaced meanwhile."""
        active = self.assignment() if active_partitions is None else active_partitions
        chains = {tp: self._chains[tp.partition] for tp in active if tp.partition in self._chains}
        if not chains:
            # An empty set would mean "all partitions" to the fetcher.
            await self.sleep(IDLE_SECONDS)
            return {}
        try:
            fetched = await self._fair_fetching.hand_over(set(chains), super()._getmany, timeout)
        except BaseException:
            # The fetch may continue in its thread; its records would be lost unnoticed.
            for tp in chains:
                self._chains.pop(tp.partition, None)
            raise
        return {
            tp: [batch] for tp, chain in chains.items() if (batch := await self._admit(tp, chain, fetched))
        }

    async def _admit(self, tp: TP, chain: OffsetChain, fetched: Mapping[TP, list[Run]]) -> list[Run]:
        """Runs that continue the chain; otherwise drop them and the chain, so that its owner rewinds."""
        batch = fetched.get(tp, [])
        offsets = np.concatenate([run.offsets for run in batch]) if batch else ()
        beyond = self._fetcher_position(tp)
        # After retention deletes its position, the fetcher silently continues at the log's start.
        hole = chain.first_hole(offsets, beyond)
        was_deleted = hole is not None and await self._begins_beyond(tp, hole)
        if self._chains.get(tp.partition) is not chain:
            self._chains.pop(tp.partition, None)
            return []
        try:
            if was_deleted:
                raise BrokenChainError(f"the log may start beyond offset {hole}")
            batch = self._of_this_leader(tp, chain, batch)
            offsets = np.concatenate([run.offsets for run in batch]) if batch else ()
            chain.admit(offsets, beyond)
        except BrokenChainError as broken:
            self.log.info("Rewinding %s: %s", tp, broken)
            del self._chains[tp.partition]
            return []
        return batch

    def _of_this_leader(self, tp: TP, chain: OffsetChain, batch: list[Run]) -> list[Run]:
        """Runs that continue what was counted; BrokenChainError if a later leader may have lost some of that.

        What it lost may have grown again: the next chain begins with the last counted record.
        """
        if not batch:
            return batch
        newest, known = batch[-1].epoch, self._epochs.get(tp.partition)
        self._epochs[tp.partition] = max(newest, known or newest)
        if chain.was_fed and known is not None and newest > known:
            raise BrokenChainError(f"leader epoch {newest} follows {known}")
        chain.was_fed = True
        return chain.prove(batch)

    def _source(self, partition: int) -> TP:
        source: TP = TopicPartition(self.app.topics_of_deployment.reports, partition)
        return source

    async def _log_start(self, source: TP) -> int:
        return int((await self.earliest_offsets(source))[source])

    async def _begins_beyond(self, source: TP, offset: int) -> bool:
        """Whether the log starts beyond an offset; True if unknown, since a rewind then checks again."""
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
        """The fetcher's position, beyond holes at the end of the log; 0 if unknown."""
        assignment = self._thread._ensure_consumer()._subscription.subscription.assignment
        state = assignment.state_value(tp) if assignment else None
        return state.position if state is not None and state.has_valid_position else 0
