"""Points inside a checkpoint and an estimate where a worker can be killed, paused or made to fail.

Runs in the worker's process. The driver writes an order, `point action`, into a file in the worker's folder,
which the worker executes when it reaches the point.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from aggregator.estimation.estimator import Estimator
from aggregator.partition.ledger_store import LedgerStore

CHECKPOINT_POINTS = ("before-sends", "between-sends", "after-sends", "before-commit", "after-commit")
POINTS = (*CHECKPOINT_POINTS, "estimate")
UNRECALLED_SECONDS = 4.0


class Orders:
    """Orders of the driver, executed at their point."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "order"

    def given(self, point: str) -> bool:
        """Whether there is an order for this point."""
        try:
            return self.file.read_text().split(" ")[0] == point
        except FileNotFoundError:
            return False

    def obey(self, point: str) -> None:
        """Execute the order for this point, if there is one."""
        if not self.given(point):
            return
        action = self.file.read_text().split(" ")[1]
        self.file.unlink()
        print(f"fault point {point}: {action}", flush=True)  # noqa: T201 - for the log
        match action:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "pause":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "fail":
                raise KafkaError(f"fault point {point}")


Method = Callable[..., Coroutine[Any, Any, Any]]


def install(orders: Orders) -> None:
    """Patch the points into the ledger store, its producer and the estimator."""
    _wrap(LedgerStore, "commit", lambda method: _unrecalled(method, orders))
    _wrap(LedgerStore, "close", _after_unrecalled)
    _wrap(AIOKafkaProducer, "send_batch", lambda method: _between(method, orders))
    _wrap(AIOKafkaProducer, "send_offsets_to_transaction", lambda method: _after_sends(method, orders))
    _wrap(AIOKafkaProducer, "commit_transaction", lambda method: _around(method, orders))
    make = Estimator.estimate_window

    @wraps(make)
    def make_obediently(self: Estimator, *arguments: Any, **named: Any) -> Any:
        orders.obey("estimate")
        return make(self, *arguments, **named)

    Estimator.estimate_window = make_obediently


def _wrap(owner: type, name: str, wrapper: Callable[[Method], Method]) -> None:
    setattr(owner, name, wrapper(getattr(owner, name)))


def _unrecalled(method: Method, orders: Orders) -> Method:
    """Let a checkpoint continue after the fault as if its requests were in flight.

    A paused worker learns of its successor when it wakes up. Without this patch, timing of milliseconds would
    decide whether it still tries to write. Only fencing may stop it.
    """

    @wraps(method)
    async def wrapped(self: Any, *arguments: Any, **named: Any) -> Any:
        if not orders.given("before-sends"):
            return await method(self, *arguments, **named)
        orders.obey("before-sends")
        self.unrecalled = asyncio.create_task(method(self, *arguments, **named))
        self.unrecalled.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self.unrecalled)

    return wrapped


def _after_unrecalled(method: Method) -> Method:
    @wraps(method)
    async def wrapped(self: Any) -> Any:
        task = getattr(self, "unrecalled", None)
        if task is not None:
            await asyncio.wait([task], timeout=UNRECALLED_SECONDS)
            outcome = repr(task.exception()) if task.done() else "still on its way"
            print(f"not called back: {outcome}", flush=True)  # noqa: T201 - for the log
        return await method(self)

    return wrapped


def _after_sends(method: Method, orders: Orders) -> Method:
    @wraps(method)
    async def wrapped(self: Any, *arguments: Any, **named: Any) -> Any:
        if orders.given("after-sends"):
            await self.flush()
            orders.obey("after-sends")
        return await method(self, *arguments, **named)

    return wrapped


def _between(method: Method, orders: Orders) -> Method:
    """Execute orders after a transaction's first batch has reached the broker, before the next is sent."""

    @wraps(method)
    async def wrapped(self: Any, *arguments: Any, **named: Any) -> Any:
        sent = await method(self, *arguments, **named)
        if orders.given("between-sends"):
            await self.flush()
            orders.obey("between-sends")
        return sent

    return wrapped


def _around(method: Method, orders: Orders) -> Method:
    @wraps(method)
    async def wrapped(self: Any, *arguments: Any, **named: Any) -> Any:
        orders.obey("before-commit")
        result = await method(self, *arguments, **named)
        orders.obey("after-commit")
        return result

    return wrapped
