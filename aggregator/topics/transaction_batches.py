"""Sends many records of one transaction in batches, with a future for each batch instead of each record."""

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer

APPENDS_PER_STEP = 1000  # a few milliseconds between two turns of the event loop


class Outgoing(NamedTuple):
    """A record to send."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


class TransactionBatches:
    """The batches of one transaction; those of a partition are stored in the order of their records.

    Parameters
    ----------
    producer : with an open transaction.
    """

    def __init__(self, producer: "AIOKafkaProducer[bytes, bytes]") -> None:
        self._producer = producer
        self._filling: dict[tuple[str, int], Any] = {}
        self._sent: list[asyncio.Future[Any]] = []
        self._last: Any = None  # aiokafka's description of the last record within its batch

    async def send(self, records: Iterable[Outgoing]) -> None:
        """Send all records, without waiting for the broker's answers.

        Raises
        ------
        KafkaError, IllegalOperation, AssertionError.
        """
        place = None
        for number, (topic, partition, key, value) in enumerate(records):
            place = topic, partition
            batch = self._filling.get(place)
            self._last = batch and batch.append(timestamp=None, key=key, value=value)
            if self._last is None:
                if batch is not None:
                    await self._close(place)
                batch = self._filling[place] = self._producer.create_batch()
                self._last = batch.append(timestamp=None, key=key, value=value)  # the first one always fits
            if number % APPENDS_PER_STEP == 0:
                await asyncio.sleep(0)
        for other in [*self._filling]:
            if other != place:
                await self._close(other)
        if place is not None:
            await self._close(place)

    async def stored(self) -> tuple[int, int]:
        """Wait for the broker's answers; return the last record's offset and append time, unix milliseconds.

        Raises
        ------
        KafkaError.
        """
        for each in self._sent:
            written = await each
        append_ms = self._last.timestamp if written.timestamp == -1 else written.timestamp
        return written.offset + self._last.offset, append_ms

    def give_up(self) -> None:
        """Retrieve the errors of a failed transaction: asyncio would log them as never retrieved."""
        for each in self._sent:
            _retrieve(each) if each.done() else each.add_done_callback(_retrieve)

    async def _close(self, place: tuple[str, int]) -> None:
        topic, partition = place
        self._sent.append(
            await self._producer.send_batch(self._filling.pop(place), topic, partition=partition)
        )


def _retrieve(answer: "asyncio.Future[Any]") -> None:
    if not answer.cancelled():
        answer.exception()
