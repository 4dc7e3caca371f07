"""Delays from events to the estimates that include them, and a thread that sees when each arrives."""

import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kafka import KafkaConsumer

from bench.comparison.streaming.workers import MeasurementError
from deniable.aggregator.records.estimate import EstimateRecord, decode_estimate
from deniable.config.file import Configuration


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


class Watcher(threading.Thread):
    """Follow the estimates topic with read_committed, and record when each estimate arrives."""

    def __init__(
        self, configuration: Configuration, events: Mapping[str, Visibility], grace_seconds: int
    ) -> None:
        super().__init__(daemon=True)
        self._events = events
        self._grace_seconds = grace_seconds
        self._ended = threading.Event()
        self._failed: Exception | None = None
        self._consumer = KafkaConsumer(
            configuration.topics.estimates,
            bootstrap_servers=configuration.kafka.bootstrap_servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            group_id=None,
        )

    def run(self) -> None:
        """Read until `end` is called."""
        try:
            self._read()
        except Exception as error:  # noqa: BLE001 - `end` raises it in the waiting thread
            self._failed = error
        finally:
            self._consumer.close()

    def _read(self) -> None:
        while not self._ended.is_set():
            for records in self._consumer.poll(timeout_ms=100).values():
                moment = time.time()
                for record in records:
                    found = decode_estimate(record.value)
                    if found.collection[0] in self._events:
                        self._events[found.collection[0]].take(found, moment, self._grace_seconds)

    def end(self) -> None:
        """Stop reading; MeasurementError if reading failed at any time."""
        self._ended.set()
        self.join()
        if self._failed is not None:
            raise MeasurementError(f"the estimates could not be read: {self._failed}") from self._failed
