"""Hooks before and after a fork, for objects that have threads and open files."""

import os
import threading
import time
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Protocol
from weakref import WeakSet

from deniable.producers.concurrency.synchronization import Latch

STILL_SECONDS = 1.0
FORK_SECONDS = 0.001
#: Looking up a host's address imports it; a forked child that had half of it would find an unknown encoding.
IDNA = "encodings.idna"


class Pause:
    """A request to a thread to pause, with nothing open that must not be copied.

    Attributes
    ----------
    reached : opened by the thread once it pauses.
    over : opened by the requester when the thread may continue.
    """

    def __init__(self) -> None:
        self.reached = Latch()
        self.over = Latch()


class Forkable(Protocol):
    """An object that a fork must not copy at an arbitrary moment."""

    def _before_fork(self) -> Sequence[Pause]:
        """Ask its threads to pause; never blocks."""

    def _begin_anew(self) -> None:
        """In the child, forget what belongs to the parent."""


def watch(one: Forkable) -> None:
    """Call an object's hooks at forks, as long as it lives."""
    _watched.add(one)


def import_in_thread(name: str) -> ModuleType:
    """Import a module in a thread, not while the process forks: the child would have half of it."""
    while True:
        done = Latch()
        _imports.append(done)
        try:
            # Listed first: a fork that begins now waits for it, and one that has begun is seen here.
            if not _under_way:
                return import_module(name)
        finally:
            _imports.remove(done)
            done.open()
        time.sleep(FORK_SECONDS)


class _Forks(threading.local):
    """The pauses of each fork that this thread has begun: a signal handler may fork within a fork."""

    def __init__(self) -> None:
        self.begun: list[list[tuple[Forkable, Sequence[Pause]]]] = []


_watched: WeakSet[Forkable] = WeakSet()
_forks = _Forks()
_under_way: list[object] = []
_imports: list[Latch] = []


def _before() -> None:
    still: list[tuple[Forkable, Sequence[Pause]]] = []
    _forks.begun.append(still)
    _under_way.append(still)
    for one in list(_watched):
        still.append((one, one._before_fork()))
    # A hanging disk does not delay the fork: the child may not use a store that was open (see `Store`).
    deadline = time.monotonic() + STILL_SECONDS
    for _, pauses in still:
        for pause in pauses:
            pause.reached.wait(deadline - time.monotonic())
    for done in list(_imports):
        done.wait(deadline - time.monotonic())


def _after_in_parent() -> None:
    _under_way.pop()
    for _, pauses in _forks.begun.pop():
        for pause in pauses:
            pause.over.open()


def _after_in_child() -> None:
    _under_way.clear()
    _imports.clear()
    for one, _ in _forks.begun.pop():
        one._begin_anew()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
