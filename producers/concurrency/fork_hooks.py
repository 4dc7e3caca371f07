"""What a process does before and after it forks, for objects that have threads and open files."""

import os
import threading
import time
from typing import Protocol
from weakref import WeakSet

# numpy imports this when `unique` is first called: a fork at that moment would leave the child a lock of the
# import system that nobody will ever open.
import numpy.ma  # noqa: F401

from producers.concurrency.synchronization import Latch

STILL_SECONDS = 1.0


class Pause:
    """Asked of a thread: to stand still, with nothing open that must not be copied.

    Attributes
    ----------
    reached : opened by the thread when it stands still.
    over : opened by who asked, when it may go on.
    """

    def __init__(self) -> None:
        self.reached = Latch()
        self.over = Latch()


class Forkable(Protocol):
    """Must not be copied at any moment."""

    def before_fork(self) -> Pause:
        """Ask its thread to stand still; waits for nobody."""

    def begin_anew(self) -> None:
        """Forget, in the child, what belongs to the parent."""


def watch(one: Forkable) -> None:
    """Tell it of forks as long as it lives."""
    _watched.add(one)


class _Forks(threading.local):
    """What stands still for each fork that this thread has begun: a signal handler may fork within a fork."""

    def __init__(self) -> None:
        self.begun: list[list[tuple[Forkable, Pause]]] = []


_watched: WeakSet[Forkable] = WeakSet()
_forks = _Forks()


def _before() -> None:
    still: list[tuple[Forkable, Pause]] = []
    _forks.begun.append(still)
    for one in list(_watched):
        still.append((one, one.before_fork()))
    # A disk that hangs does not hold up the fork: the child is refused the store that was open (see `Store`).
    deadline = time.monotonic() + STILL_SECONDS
    for _, pause in still:
        pause.reached.wait(deadline - time.monotonic())


def _after_in_parent() -> None:
    for _, pause in _forks.begun.pop():
        pause.over.open()


def _after_in_child() -> None:
    for one, _ in _forks.begun.pop():
        one.begin_anew()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
