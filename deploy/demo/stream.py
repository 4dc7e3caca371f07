"""The demo's input: flights, each of another client, streamed as if all took off now, and a canary."""

import threading
import time

from deploy.demo.flights import Flights
from deploy.produce.canary import Canary
from estimators.collection import Collection
from producers.errors import DeliveryError
from producers.metrics.counters import Counters
from producers.producer import Producer
from producers.storage.store import StoreError

STEP_SECONDS = 0.1
CANARY_REPORTS = 100_000  # a window


class DemoStream:
    """Sends all flights within `seconds`, in a daemon thread.

    Parameters
    ----------
    producer : of all collections of the demo; closed at the end.
    flights : to send.
    canary : the canary's collection, sent meanwhile.
    seconds : how long to take, if the machine keeps up.
    """

    def __init__(self, producer: Producer, flights: Flights, canary: Collection, seconds: float) -> None:
        self.flights = flights
        self.seconds = seconds
        self.sent = 0
        self.stopped = threading.Event()
        self._producer = producer
        self._canary = Canary(producer, canary, CANARY_REPORTS)
        self._canary_name = canary.name
        self._counters: Counters | None = None
        self._error: Exception | None = None

    @property
    def finished(self) -> bool:
        """Whether all was sent and acknowledged."""
        return self._counters is not None

    def start(self) -> None:
        """Begin to send."""
        threading.Thread(target=self._run, daemon=True).start()

    def check(self) -> None:
        """Raise the thread's error, if there was one."""
        if self._error is not None:
            raise self._error

    def sent_to(self, collection: str) -> int:
        """Return the number of reports passed to the producer for one collection."""
        return self._canary.sent if collection == self._canary_name else self.sent

    def accepted(self) -> int:
        """Return the number of reports that the broker has acknowledged, once finished."""
        return sum(self._counters.acknowledged.values()) if self._counters else 0

    def reports_of(self, collection: str) -> int:
        """Return the same number for one collection."""
        return self._counters.acknowledged[collection] if self._counters else 0

    def _run(self) -> None:
        try:
            with self._producer:
                self._send()
            self._counters = self._producer.counters()
        except (DeliveryError, StoreError) as error:
            self._error = error

    def _send(self) -> None:
        flights, total, started = self.flights, len(self.flights.carriers), time.monotonic()
        while self.sent < total and not self.stopped.wait(STEP_SECONDS):
            due = min(total, int(total * (time.monotonic() - started) / self.seconds))
            if due > self.sent:
                self._producer.report("carrier", flights.carriers[self.sent : due], None)
                self._producer.report("destination", flights.destinations[self.sent : due], None)
                self.sent = due
            self._canary.send_due()
