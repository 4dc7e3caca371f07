"""Points inside a checkpoint and an estimate of a worker; runs in its process."""

import asyncio
from functools import wraps
from typing import Any

from aiokafka import AIOKafkaProducer

from deniable.aggregator.estimation.estimator import Estimator
from deniable.aggregator.partition.ledger_store import LedgerStore
from tests.support.processes import FaultPoints

CHECKPOINT_POINTS = ("before-sends", "between-sends", "after-sends", "before-commit", "after-commit")
POINTS = (*CHECKPOINT_POINTS, "estimate")
UNRECALLED_SECONDS = 4.0


def install(points: FaultPoints) -> None:
    """Patch the points into the ledger store, its producer and the estimator."""
    _unrecalled(points)
    _after_unrecalled()
    # What was sent before has reached the broker when a fault strikes.
    _around(points, "send_batch", after="between-sends", flushes=True)
    _around(points, "send_offsets_to_transaction", before="after-sends", flushes=True)
    _around(points, "commit_transaction", before="before-commit", after="after-commit")
    make = Estimator.estimate_window

    def make_obediently(self: Estimator, *arguments: Any, **named: Any) -> Any:
        points.at("estimate")
        return make(self, *arguments, **named)

    Estimator.estimate_window = make_obediently


def _around(points: FaultPoints, name: str, before: str = "", after: str = "", flushes: bool = False) -> None:
    method = getattr(AIOKafkaProducer, name)

    async def at(self: AIOKafkaProducer, point: str) -> None:
        if points.is_ordered(point):
            if flushes:
                await self.flush()
            points.at(point)

    @wraps(method)
    async def wrapped(self: AIOKafkaProducer, *arguments: Any, **named: Any) -> Any:
        if before:
            await at(self, before)
        result = await method(self, *arguments, **named)
        if after:
            await at(self, after)
        return result

    setattr(AIOKafkaProducer, name, wrapped)


def _unrecalled(points: FaultPoints) -> None:
    """Let a checkpoint continue after the fault as if its requests were in flight.

    A paused worker learns of its successor when it wakes up. Without this patch, timing of milliseconds would
    decide whether it still tries to write. Only fencing may stop it.
    """
    commit = LedgerStore.commit

    async def commit_unrecalled(self: LedgerStore, *arguments: Any, **named: Any) -> Any:
        if not points.is_ordered("before-sends"):
            return await commit(self, *arguments, **named)
        points.at("before-sends")
        self.unrecalled = asyncio.create_task(commit(self, *arguments, **named))
        self.unrecalled.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self.unrecalled)

    LedgerStore.commit = commit_unrecalled


def _after_unrecalled() -> None:
    """Keep the connection open until such a checkpoint has ended."""
    close = LedgerStore.close

    async def close_later(self: LedgerStore) -> Any:
        task = getattr(self, "unrecalled", None)
        if task is not None:
            await asyncio.wait([task], timeout=UNRECALLED_SECONDS)
            outcome = repr(task.exception()) if task.done() else "still on its way"
            print(f"not called back: {outcome}", flush=True)  # noqa: T201 - for the log
        return await close(self)

    LedgerStore.close = close_later
