"""Delays from events to the estimates that include them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from deniable.aggregator.records.estimate import EstimateRecord


class Window(NamedTuple):
    """One window of one collection."""

    collection: str
    start: int


class Visibility:
    """Events, one per window, so the first estimate of a window is the one that shows its event.

    Moments are unix seconds of one machine.
    """

    def __init__(self) -> None:
        self._events: dict[Window, float] = {}
        self._shown: dict[Window, float] = {}
        self._final: dict[Window, float] = {}

    def note(self, window: Window, moment: float) -> None:
        """Record an event; ValueError if its window already has one."""
        if window in self._events:
            raise ValueError(f"{window} has an event already")
        self._events[window] = moment

    def take(self, record: EstimateRecord, moment: float, grace_seconds: int) -> None:
        """Record an estimate's arrival; an event that it shows for the first time is timed."""
        window = Window(record.collection, record.window_start)
        if window not in self._events or record.reports < 1:
            return
        self._shown.setdefault(window, moment - self._events[window])
        if record.final:
            self._final.setdefault(window, moment - record.window_end - grace_seconds)

    def shown(self) -> list[float]:
        """Seconds from each event to the first estimate with it."""
        return list(self._shown.values())

    def final(self) -> list[float]:
        """Seconds from the end of each window's grace to its final estimate."""
        return list(self._final.values())

    def missing(self) -> int:
        """Events without a final estimate."""
        return len(self._events) - len(self._final)


def quantile(values: Sequence[float], share: float) -> float:
    """Smallest value such that at least this share of all values is at most it; the share is in (0, 1].

    Raises
    ------
    ValueError if there are no values.
    """
    if not values:
        raise ValueError("there are no values")
    return sorted(values)[math.ceil(share * len(values)) - 1]
