"""Running work in an event loop for a command, which a signal ends.

Apart from `signals`, which is loaded before SIGINT is handled: asyncio takes long to import.
"""

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import TypeVar

from deploy.cli.signals import end_in_good_order, handle

T = TypeVar("T")


def run_until_told(work: Coroutine[None, None, T]) -> T:
    """Run as `asyncio.run`, which SIGTERM and SIGHUP cancel as SIGINT does; then end with 128 and the signal.

    An exit raised amid asyncio's tasks would make it complain on stderr.
    """
    told: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    async def told_or_done() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def end(number: int, _: FrameType | None) -> None:
            told.append(number)
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)

        for number in before:
            handle(number, end)
        return await work

    try:
        return asyncio.run(told_or_done())
    except asyncio.CancelledError:
        if told:
            end_in_good_order(told[0])
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
