"""The demo's input: flights, each of another client, streamed as if all took off now, and a canary.

Every fourth flight takes the way from devices: through an edge and a relay.
"""

import threading
import time
from collections.abc import Sequence
from typing import cast

from deniable.deploy.demo.flights import FlightAnswer, Flights
from deniable.deploy.produce.canary import Canary
from deniable.estimators.collection import Collection
from deniable.producers.errors import DeliveryError
from deniable.producers.metrics.counters import Counters
from deniable.producers.producer import Producer
from deniable.producers.responders.validation import Values
from deniable.producers.storage.store import StoreError

STEP_SECONDS = 0.1
CANARY_REPORTS = 100_000  # a window
DEVICES_TAKE = 4  # one flight in so many


class DemoStream:
    """Sends all flights within `seconds`, in a daemon thread.

    Parameters
    ----------
    producer : of all collections of the demo, beside Kafka; closed at the end.
    devices : the same, which delivers to an edge.
    flights : to send.
    canary : the canary's collection, sent meanwhile.
    seconds : how long to take, if the machine keeps up.
    """

    def __init__(
        self, producer: Producer, devices: Producer, flights: Flights, canary: Collection, seconds: float
    ) -> None:
        self.flights = flights
        self.seconds = seconds
        self.sent = 0
        self.stopped = threading.Event()
        self._producer = producer
        self._devices = devices
        self._canary = Canary(producer, canary, CANARY_REPORTS)
        self._canary_name = canary.name
        self._counters: tuple[Counters, ...] = ()
        self._error: Exception | None = None
        self._answers = flights.answers()

    @property
    def finished(self) -> bool:
        """Whether all was sent and acknowledged."""
        return bool(self._counters)

    def start(self) -> None:
        """Begin to send."""
        threading.Thread(target=self._run, daemon=True).start()

    def check(self) -> None:
        """Raise the thread's error, if there was one."""
        if self._error is not None:
            raise self._error

    def sent_to(self, collection: str) -> int:
        """Return the number of reports passed to the producer for one collection."""
        if collection == self._canary_name:
            return self._canary.sent
        return sum(answer is not None for answer in self._answers[collection][: self.sent])

    def accepted(self) -> int:
        """Return the number of reports that broker and edge have acknowledged, once finished."""
        return sum(sum(each.acknowledged.values()) for each in self._counters)

    def reports_of(self, collection: str) -> int:
        """Return the same number for one collection."""
        return sum(each.acknowledged.get(collection, 0) for each in self._counters)

    def by_devices(self) -> int:
        """Return the number of reports that the edge has acknowledged, once finished."""
        return sum(self._counters[1].acknowledged.values()) if self._counters else 0

    def _run(self) -> None:
        try:
            with self._producer, self._devices:
                self._send()
            self._counters = (self._producer.counters(), self._devices.counters())
        except (DeliveryError, StoreError) as error:
            self._error = error

    def _send(self) -> None:
        total, started = len(self.flights.carriers), time.monotonic()
        while self.sent < total and not self.stopped.wait(STEP_SECONDS):
            due = min(total, int(total * (time.monotonic() - started) / self.seconds))
            if due > self.sent:
                for collection, answers in self._answers.items():
                    self._report(collection, answers, due)
                self.sent = due
            self._canary.send_due()

    def _report(self, collection: str, answers: Sequence[FlightAnswer | None], due: int) -> None:
        """Report the flights that are due, those with a number divisible by DEVICES_TAKE as devices."""
        numbers = [number for number in range(self.sent, due) if answers[number] is not None]
        direct = [answers[number] for number in numbers if number % DEVICES_TAKE]
        uploaded = [answers[number] for number in numbers if number % DEVICES_TAKE == 0]
        for producer, values in ((self._producer, direct), (self._devices, uploaded)):
            if values:
                producer.report(collection, cast(Values, values), None)  # one type a collection
