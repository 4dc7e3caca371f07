"""What a process does before and after it forks, for objects that have threads and open files."""

import os
from typing import Protocol
from weakref import WeakSet

# numpy imports this when `unique` is first called: a fork at that moment would leave the child a lock of the
# import system that nobody will ever open.
import numpy.ma  # noqa: F401


class Forkable(Protocol):
    """Must not be copied at any moment."""

    def before_fork(self) -> None:
        """Keep still, with nothing open that must not be copied, until one of the two below."""

    def after_fork_in_parent(self) -> None:
        """Go on."""

    def begin_anew(self) -> None:
        """Forget, in the child, what belongs to the parent."""


def watch(one: Forkable) -> None:
    """Tell it of forks as long as it lives."""
    _watched.add(one)


_watched: WeakSet[Forkable] = WeakSet()
_still: list[Forkable] = []


def _before() -> None:
    for one in list(_watched):
        one.before_fork()
        _still.append(one)


def _after_in_parent() -> None:
    while _still:
        _still.pop().after_fork_in_parent()


def _after_in_child() -> None:
    while _still:
        _still.pop().begin_anew()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
