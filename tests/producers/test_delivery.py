"""Delivery: what goes to Kafka, how much at once, and that every pack is accounted for."""

import threading
import time

import pytest
from fake_kafka import FakeKafka
from kafka.errors import KafkaTimeoutError

from producers.connection import DeliveryError
from producers.delivery import Counters, Delivery
from producers.wire import Pack, encode, partition_of

NOW = 0.0


def pack(number, reports=10):
    return Pack(1, 0, 77, 1767225600, reports, 100, number.to_bytes(16, "little"), bytes(reports))


def delivery_of(kafka, bytes_in_flight=1_000_000):
    return Delivery(kafka, "reports", 4, bytes_in_flight, {77: "latency"})


def send(delivery, *packs, wait=0.0):
    delivery.expect(packs)
    for each in packs:
        delivery.send(each, time.monotonic() + wait)


def test_nothing_but_the_wire_format_leaves():
    kafka = FakeKafka()
    send(delivery_of(kafka), pack(5))
    (sent,) = kafka.sent
    assert sent == {
        "topic": "reports",
        "value": encode(pack(5)),
        "partition": partition_of(pack(5).pack_id, 4),
        "timestamp_ms": 1767225600_000,
    }


def test_acknowledged_packs_are_counted():
    kafka = FakeKafka()
    delivery = delivery_of(kafka)
    send(delivery, pack(1), pack(2, reports=3))
    assert delivery.counters() == Counters()
    kafka.acknowledge()
    delivery.wait(0)
    sizes = len(encode(pack(1))) + len(encode(pack(2, reports=3)))
    assert delivery.counters() == Counters({"latency": 13}, packs=2, bytes=sizes)


def test_what_does_not_fit_is_dropped_and_counted():
    size = len(encode(pack(1)))
    kafka = FakeKafka()
    delivery = delivery_of(kafka, bytes_in_flight=2 * size)
    send(delivery, pack(1), pack(2), pack(3))
    assert len(kafka.sent) == 2
    assert delivery.counters().dropped == 10
    kafka.acknowledge()
    with pytest.raises(
        DeliveryError, match=r"delivered: 10 dropped for want of room, 0 failed, 0 not acknowledged"
    ):
        delivery.wait(0)
    delivery.wait(0)
    send(delivery, pack(4))
    assert len(kafka.sent) == 3


def test_a_pack_waits_for_room_until_its_deadline():
    size = len(encode(pack(1)))
    kafka = FakeKafka()
    delivery = delivery_of(kafka, bytes_in_flight=size)
    send(delivery, pack(1))
    timer = threading.Timer(0.05, kafka.acknowledge)
    timer.start()
    send(delivery, pack(2), wait=10.0)
    timer.join()
    assert len(kafka.sent) == 2
    started = time.monotonic()
    send(delivery, pack(3), wait=0.1)
    assert 0.1 <= time.monotonic() - started < 5
    assert delivery.counters().dropped == 10


def test_a_failed_pack_is_counted_and_makes_room():
    size = len(encode(pack(1)))
    kafka = FakeKafka()
    delivery = delivery_of(kafka, bytes_in_flight=size)
    send(delivery, pack(1))
    kafka.fail(KafkaTimeoutError("too late"))
    with pytest.raises(
        DeliveryError, match=r"0 dropped for want of room, 10 failed, 0 not acknowledged within 0 s"
    ):
        delivery.wait(0)
    send(delivery, pack(2))
    kafka.acknowledge()
    delivery.wait(0)
    assert delivery.counters() == Counters({"latency": 10}, packs=1, bytes=size, failed=10)


@pytest.mark.parametrize("error", [KafkaTimeoutError("no metadata"), ValueError("Unrecognized partition")])
def test_a_pack_that_kafka_does_not_take_has_failed(error):
    kafka = FakeKafka(refuses=error)
    delivery = delivery_of(kafka)
    send(delivery, pack(1))
    assert delivery.counters() == Counters(failed=10)
    with pytest.raises(DeliveryError, match="10 failed"):
        delivery.wait(0)


def test_waiting_names_what_is_missing():
    kafka = FakeKafka()
    delivery = delivery_of(kafka)
    send(delivery, pack(1))
    with pytest.raises(DeliveryError, match=r"0 failed, 10 not acknowledged within 0.01 s$"):
        delivery.wait(0.01)


def test_a_pack_is_waited_for_before_it_is_sent():
    """The ticking thread may hold packs that no buffer has any more and Kafka has not yet."""
    kafka = FakeKafka()
    delivery = delivery_of(kafka)
    delivery.expect([pack(1)])
    with pytest.raises(DeliveryError, match="10 not acknowledged"):
        delivery.wait(0)


def test_losses_are_logged_once(capsys):
    kafka = FakeKafka()
    delivery = delivery_of(kafka)
    send(delivery, pack(1))
    kafka.fail(KafkaTimeoutError("too late"))
    delivery.warn()
    delivery.warn()
    log = capsys.readouterr().out
    assert log.count("reports lost") == 1
    assert "KafkaTimeoutError" in log


def test_closing_closes_kafka():
    kafka = FakeKafka()
    delivery_of(kafka).close(0.0)
    assert kafka.is_closed
