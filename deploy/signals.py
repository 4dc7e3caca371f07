"""How the command takes SIGINT, SIGTERM and SIGHUP."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
Handler = Callable[[int, FrameType | None], object]


def handle(number: signal.Signals, handler: Handler) -> None:
    """Take a signal in this way, unless whoever started us wants it ignored, as nohup does."""
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, handler)


def leave_at_once(number: int, _: FrameType | None = None) -> None:
    """End without a word and without tidying up, where there is nothing to tidy up or it takes too long."""
    os._exit(128 + number)


def end_in_good_order(number: int, _: FrameType | None = None) -> None:
    """End with what `finally` and `with` do on the way out, children stopped included."""
    sys.exit(128 + number)


def run_until_told(work: Coroutine[None, None, T]) -> T:
    """Run as `asyncio.run`, which SIGTERM and SIGHUP cancel as SIGINT does; then end with 128 and the signal.

    An exit raised amid asyncio's tasks would make it complain on stderr.
    """
    told: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    async def told_or_done() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def end(number: int) -> None:
            told.append(number)
            if task is not None:
                task.cancel()

        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                loop.add_signal_handler(number, end, number)
        return await work

    try:
        return asyncio.run(told_or_done())
    except asyncio.CancelledError:
        if not told:
            raise
        sys.exit(128 + told[0])
    finally:  # asyncio leaves the system's own way, which ends without `finally`
        for number, handler in before.items():
            signal.signal(number, handler)
