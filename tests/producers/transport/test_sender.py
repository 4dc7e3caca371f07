"""Delivery sends records, returns outcomes, and reconnects after every failure."""

import threading
import time
from types import SimpleNamespace

import pytest
from kafka.errors import IllegalStateError, KafkaTimeoutError, MessageSizeTooLargeError
from kafka.future import Future

from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.errors import DeliveryError, PartitionsError
from deniable.producers.transport.packs import Outcome, OutgoingPack
from deniable.producers.transport.sender import BYTES_IN_FLIGHT, Delivery
from tests.support.brokers.log_lines import messages
from tests.support.messages import PinMessages
from tests.support.producers.fake_kafka import FakeKafka

PACK = OutgoingPack(7, 3, 5, 60, 3, b"record")
TIMING = ProducerTiming(retry=(0.01, 0.02))


@pytest.fixture
def deliver():
    """Builds a delivery that uses the given connections in turn; an error simulates a failed one."""
    deliveries = []

    def make(*connections):
        left = list(connections)

        def connect():
            found = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(found, DeliveryError):
                raise found
            return found

        woken = threading.Event()
        delivery = Delivery(connect, "reports", woken.set, timing=TIMING)
        delivery.start()
        deliveries.append(delivery)
        return delivery, woken

    yield make
    for delivery in deliveries:
        delivery.close()


class Connections:
    """Raises the error until a connection is available."""

    def __init__(self, error, kafka, come):
        self.attempts = 0
        self._error, self._kafka, self._come = error, kafka, come

    def connect(self):
        self.attempts += 1
        if not self._come.is_set():
            raise self._error
        return self._kafka


def wait_until(happened, seconds=10):
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)


def outcome(delivery, woken):
    """The next outcome that is not empty."""
    found = Outcome({}, frozenset())
    while found == Outcome({}, frozenset()):
        assert woken.wait(120), "nothing happened"
        woken.clear()
        found = delivery.outcome()
    return found


def test_only_the_record_is_sent(deliver):
    kafka = FakeKafka()
    delivery, _ = deliver(kafka)
    delivery.send([PACK])
    wait_until(lambda: kafka.sent)
    (sent,) = kafka.sent
    assert sent == {
        "topic": "reports", "value": b"record", "partition": 3, "timestamp_ms": 60_000, "headers": [],
    }  # fmt: skip


def test_acknowledgement_is_reported_once_with_append_time(deliver):
    kafka = FakeKafka(acknowledges=True, append_ms=61_234)
    delivery, woken = deliver(kafka)
    wait_until(delivery.room)
    delivery.send([PACK])
    assert outcome(delivery, woken) == Outcome({7: 61_234}, frozenset())
    assert delivery.outcome() == Outcome({}, frozenset())
    assert delivery.room() == BYTES_IN_FLIGHT


def test_packs_in_flight_take_room(deliver):
    kafka = FakeKafka()
    delivery, _ = deliver(kafka)
    wait_until(delivery.room)
    delivery.send([PACK])
    assert delivery.room() == BYTES_IN_FLIGHT - len(b"record")


def test_failure_loses_packs_in_flight_and_reconnects(deliver):
    broken, sound = FakeKafka(), FakeKafka(acknowledges=True)
    delivery, woken = deliver(broken, sound)
    other = OutgoingPack(8, 0, 5, 60, 3, b"other")
    delivery.send([PACK, other])
    wait_until(lambda: len(broken.sent) == 2)
    broken.fail(KafkaTimeoutError("too late"))
    assert outcome(delivery, woken) == Outcome({}, frozenset({7, 8}))
    assert broken.closed == 1
    assert str(delivery.trouble) == "Kafka did not take a pack: no answer in time"
    wait_until(lambda: delivery.room() == BYTES_IN_FLIGHT)
    delivery.send([PACK])
    assert outcome(delivery, woken) == Outcome({7: 0}, frozenset())
    assert delivery.trouble is None


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (KafkaTimeoutError("no metadata"), "no answer in time"),
        (MessageSizeTooLargeError(), "it is too large"),
        (ValueError("Unrecognized partition"), "ValueError"),
    ],
)
def test_pack_refused_by_kafka_is_lost(deliver, error, cause):
    delivery, woken = deliver(FakeKafka(refuses=error), FakeKafka())
    delivery.send([PACK])
    assert outcome(delivery, woken).lost == {7}
    assert str(delivery.trouble) == f"Kafka did not take a pack: {cause}"


def test_an_outage_is_explained_once_and_not_by_what_closing_does(caplog):
    """Closing the stalled connection fails its packs with another error."""

    class Stalled(FakeKafka):
        def close(self, timeout):
            super().close(timeout)
            self.fail(IllegalStateError("Producer is closed forcefully."))

    left, said, why = [Stalled()], [], "no Kafka broker answers at nowhere: refused"

    def connect():
        if left:
            return left.pop()
        raise DeliveryError(why)

    def explained(what):
        said.append(what)
        return why

    timing = ProducerTiming(retry=(0.01,), stall=0.04)
    delivery = Delivery(connect, "reports", lambda: None, lambda: 1, timing, explained=explained)
    delivery.start()
    delivery.send([PACK])
    wait_until(lambda: delivery._failures > 2)
    delivery.close()
    assert said == ["acknowledged nothing for 0 s"]
    assert messages(caplog) == [f"packs wait in the outbox: {why}"]


def test_late_answer_is_reported(deliver):
    late, futures = FakeKafka(), [Future(), Future()]
    late.send = lambda topic, **record: futures.pop()
    first, second = futures[1], futures[0]
    delivery, woken = deliver(late, FakeKafka())
    delivery.send([PACK, OutgoingPack(8, 0, 5, 60, 3, b"other")])
    wait_until(lambda: not futures)
    second.failure(KafkaTimeoutError("too late"))
    assert outcome(delivery, woken).lost == {7, 8}
    first.success(SimpleNamespace(timestamp=5))
    assert outcome(delivery, woken) == Outcome({7: 5}, frozenset())


def test_no_room_until_a_broker_answers(deliver, caplog, pin_messages: PinMessages) -> None:
    absent = DeliveryError("no Kafka broker answers at nowhere: KafkaTimeoutError")
    come = threading.Event()
    kafka = FakeKafka(acknowledges=True)
    connections = Connections(absent, kafka, come)
    delivery = Delivery(connections.connect, "reports", lambda: None, lambda: 3, TIMING)
    delivery.start()
    wait_until(lambda: connections.attempts > 3)
    assert delivery.room() == 0
    assert str(delivery.trouble) == str(absent)
    come.set()
    wait_until(delivery.room)
    delivery.send([PACK])
    wait_until(lambda: delivery.trouble is None)
    delivery.close()
    pin_messages({"none answered, then one did": lambda: "\n".join(messages(caplog))})


def test_wrong_topic_is_reported(deliver):
    delivery, woken = deliver(PartitionsError("topic reports must have 4 partitions, got 3"))
    assert woken.wait(120)
    assert isinstance(delivery.trouble, PartitionsError)


def test_closing_closes_kafka(deliver):
    kafka = FakeKafka()
    delivery, _ = deliver(kafka)
    delivery.send([PACK])
    wait_until(lambda: kafka.sent)
    delivery.close()
    assert kafka.closed == 1
