"""The demo's input: every flight a client of its own, streamed as if all took off now."""

import threading
import time

from deploy.collection_file import Configuration
from deploy.flights import Flights
from deploy.producer_setup import producer_config
from producers.connection import DeliveryError
from producers.counters import Counters
from producers.producer import Producer
from producers.secret import SecretError
from producers.store import StoreError

STEP_SECONDS = 0.1
BLOCK_MILLISECONDS = 30_000.0  # it need not go on with anything else meanwhile


class Stream:
    """Sends all flights within some seconds, in a thread that does not outlive the process.

    Parameters
    ----------
    flights : what to send.
    seconds : how long to take, as far as the machine keeps up.
    """

    def __init__(self, flights: Flights, seconds: float) -> None:
        self.flights = flights
        self.seconds = seconds
        self.sent = 0
        self.stopped = threading.Event()
        self._counters: Counters | None = None
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    @property
    def finished(self) -> bool:
        """Whether all was sent and acknowledged."""
        return self._counters is not None

    def start(self, configuration: Configuration) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._run, args=(configuration,), daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what went wrong in the thread, if anything did."""
        if self._error is not None:
            raise self._error

    def accepted(self) -> int:
        """Reports that the broker has acknowledged, once finished."""
        return sum(self._counters.acknowledged.values()) if self._counters else 0

    def reports_of(self, collection: str) -> int:
        """Reports of one collection that the broker has acknowledged, once finished."""
        return self._counters.acknowledged[collection] if self._counters else 0

    def _run(self, configuration: Configuration) -> None:
        try:
            config = producer_config(configuration, block_milliseconds=BLOCK_MILLISECONDS)
            with Producer(config) as producer:
                self._send(producer)
            self._counters = producer.counters()
        except (DeliveryError, SecretError, StoreError) as error:
            self._error = error

    def _send(self, producer: Producer) -> None:
        flights, total, started = self.flights, len(self.flights.carriers), time.monotonic()
        while self.sent < total and not self.stopped.wait(STEP_SECONDS):
            due = min(total, int(total * (time.monotonic() - started) / self.seconds))
            if due > self.sent:
                producer.report("carrier", flights.carriers[self.sent : due], None)
                producer.report("destination", flights.destinations[self.sent : due], None)
                self.sent = due
