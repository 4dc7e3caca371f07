"""Run a command's coroutine until it is done or a signal cancels it.

Kept apart from `signals`, which is imported before SIGINT is handled: asyncio takes long to import.
"""

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import TypeVar

from deniable.deploy.cli.signals import end_in_good_order, handle

T = TypeVar("T")


def run_until_signalled(work: Coroutine[None, None, T]) -> T:
    """Run a coroutine like `asyncio.run`; SIGTERM and SIGHUP cancel it too, and then exit with 128 + signal.

    The handler cancels rather than exits, because asyncio logs errors when its tasks are interrupted by an
    exit.
    """
    received: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    async def run() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def end(number: int, _: FrameType | None) -> None:
            received.append(number)
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)

        for number in before:
            handle(number, end)
        return await work

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        if received:
            end_in_good_order(received[0])
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
