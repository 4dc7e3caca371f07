"""Stop a producer of aiokafka for good, also while brokers do not answer."""

import asyncio
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerClosed

ERRORS = (Exception, asyncio.CancelledError)


async def stop_producer(producer: "AIOKafkaProducer[Any, Any]", seconds: float) -> None:
    """Send what waits, for so long at most, and disconnect; leave no task behind.

    A producer whose `stop` is cancelled leaves tasks that wait for brokers. Once collected, asyncio logs
    each: "Task was destroyed but it is pending".
    """
    stopping = asyncio.ensure_future(producer.stop())
    stopping.add_done_callback(_heard)  # it may end after its time, with an error
    try:
        await asyncio.wait((stopping,), timeout=seconds)
    finally:
        if not stopping.done() or stopping.cancelled() or stopping.exception() is not None:
            await _abandon(producer, stopping)


def _heard(ended: "asyncio.Future[None]") -> None:
    """Take a future's error, which asyncio would log otherwise."""
    if not ended.cancelled():
        ended.exception()


async def _abandon(producer: "AIOKafkaProducer[Any, Any]", stopping: "asyncio.Future[None]") -> None:
    """End in this order: what waits to be sent, the requests on their way, and what would send again."""
    waiting = producer._message_accumulator
    for batches in (*waiting._batches.values(), waiting._pending_batches):
        for batch in batches:
            batch.failure(ProducerClosed())
            batch._drain_waiter.exception()  # or asyncio would log that nobody asked for it
    with suppress(*ERRORS):
        await producer.client.close()
    sending = producer._sender.sender_task
    if sending is not None:
        sending.cancel()
    await asyncio.wait([each for each in (stopping, sending) if each is not None], timeout=1.0)
