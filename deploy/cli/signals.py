"""How the command takes SIGINT, SIGTERM and SIGHUP."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

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
