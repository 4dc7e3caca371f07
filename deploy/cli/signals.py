"""Handle SIGINT, SIGTERM and SIGHUP."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

Handler = Callable[[int, FrameType | None], object]


def handle(number: signal.Signals, handler: Handler) -> None:
    """Install a handler, unless the parent process set the signal to be ignored, as nohup does."""
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, handler)


def leave_at_once(number: int, _: FrameType | None = None) -> None:
    """Exit silently and without cleaning up: there is nothing to clean up, or it takes too long."""
    os._exit(128 + number)


def end_in_good_order(number: int, _: FrameType | None = None) -> None:
    """Exit through `finally` and `with`, which stop child processes, too."""
    sys.exit(128 + number)


def stop_deadline(seconds: float, who: str) -> threading.Timer:
    """Return a timer that ends the process with status 1, and says so. Start it when stopping begins."""

    def leave() -> None:
        why = f"{who} did not stop within {seconds:g} s; the next one goes on from what was stored\n"
        os.write(sys.stderr.fileno(), why.encode())
        os._exit(1)

    timer = threading.Timer(seconds, leave)
    timer.daemon = True
    return timer
