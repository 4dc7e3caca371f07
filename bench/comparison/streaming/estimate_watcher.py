"""A consumer thread that records when each estimate becomes visible."""

import threading
import time
from collections.abc import Mapping

from kafka import KafkaConsumer

from bench.comparison.streaming.visibility import Visibility
from bench.comparison.streaming.workers import MeasurementError
from deniable.aggregator.records.estimate import decode_estimate
from deniable.config.file import Configuration


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
