"""Store what was recorded when the process ends: at the interpreter's exit, and on SIGTERM.

A child that `multiprocessing` forked leaves by `os._exit`, without the interpreter's exit: there, its own
finalizers are what runs last.

SIGTERM ends a process at once unless it has a handler, so opening a producer in the main thread sets one if
the process has none: it stores what was recorded and lets SIGTERM end the process as before. An application
that sets its own handler replaces it.
"""

import atexit
import logging
import os
import signal
import sys
import threading
from types import FrameType
from typing import Protocol

SAVE_SECONDS = 5.0
#: Finalizers with a higher priority run earlier, and may record.
LAST = -100

_log = logging.getLogger(__name__)


class Saved(Protocol):
    """What has events in memory."""

    def save(self, seconds: float) -> bool:
        """Store them; False if that takes longer."""


def watch(one: Saved) -> None:
    """Save an object's events at the end of the process, unless it is forgotten before.

    It is kept alive: an application may have no reference to it while its events wait.
    """
    _watched.add(one)
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _on_sigterm)
    else:
        _log.warning(
            "a producer was opened outside of the main thread, where no handler can be set: SIGTERM ends "
            "this process without storing what `record` took last; open it in the main thread, or set a "
            "handler that lets the interpreter exit"
        )


def watch_child() -> None:
    """Save also at the end of a child of `multiprocessing`; called before it records."""
    # Whoever is such a child has imported it; others need not, which takes 50 ms.
    if util := sys.modules.get("multiprocessing.util"):
        util.Finalize(None, _save_all, exitpriority=LAST)


def forget(one: Saved) -> None:
    """Keep the object no longer: it is closed."""
    _watched.discard(one)


_watched: set[Saved] = set()


def _save_all() -> None:
    for one in list(_watched):
        one.save(SAVE_SECONDS)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    _save_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


atexit.register(_save_all)
