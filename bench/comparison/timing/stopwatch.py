"""A profiler of stages: functions that are patched where they are called."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from unittest.mock import patch


class Stage(NamedTuple):
    """A function to time, as an attribute of a module or class.

    Parameters
    ----------
    name : of the stage; several functions may share it.
    owner, attribute : where its callers look it up.
    """

    name: str
    owner: object
    attribute: str


class Stopwatch:
    """Time by stage, nanoseconds, excluding nested stages, so that stages add up to the total.

    Each switch costs a fraction of a microsecond, which is charged too, so stages must be longer than that.
    """

    def __init__(self) -> None:
        self.nanoseconds: Counter[str] = Counter()
        self._running: list[str] = []
        self._since = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Charge the time in this block to a stage, except for nested stages."""
        self._enter(name)
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def watching(self, stages: Sequence[Stage]) -> Iterator[None]:
        """Time calls of these functions as stages."""
        with ExitStack() as stack:
            for each in stages:
                timed = self._timed(each.name, getattr(each.owner, each.attribute))
                stack.enter_context(patch.object(each.owner, each.attribute, timed))
            yield

    def _timed(self, name: str, function: Callable[..., object]) -> Callable[..., object]:
        def timed(*arguments: object, **named: object) -> object:
            self._enter(name)
            try:
                return function(*arguments, **named)
            finally:
                self._leave()

        return timed

    def _enter(self, name: str) -> None:
        self._charge()
        self._running.append(name)

    def _leave(self) -> None:
        self._charge()
        self._running.pop()

    def _charge(self) -> None:
        now = time.perf_counter_ns()
        if self._running:
            self.nanoseconds[self._running[-1]] += now - self._since
        self._since = now
