"""Records are sent until Kafka has them; what it never takes ends the relay. Kafka is a fake."""

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka.errors import (
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    TopicAuthorizationFailedError,
)
from structlog.testing import capture_logs

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage
from deniable.relay.fold import Start
from deniable.relay.service import delivery as deliveries
from deniable.relay.service.delivery import PackDelivery
from deniable.relay.service.partition import PartitionRelay, Sendable
from tests.relay.service.test_outcomes import Stored
from tests.support.messages import PinMessages
from tests.support.relay.logs import KEYS, PARTITION

RECORDS = [Sendable("reports", bytes((each,)), each) for each in range(3)]


class FakeProducer:
    """Fails as told, then takes all."""

    def __init__(self, *failures):
        self.failures, self.taken, self.times = list(failures), [], set()

    async def send(self, topic, value, key=None, partition=None, timestamp_ms=None):
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure
        self.taken.append((topic, value, partition))
        self.times.add(timestamp_ms)
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(SimpleNamespace(offset=len(self.taken)))
        return answer


def delivered(producer, is_wanted=lambda: True, records=RECORDS):
    """Send records; return whether all are taken, and what the relay knows of Kafka."""
    away = Outage(Cluster("127.0.0.1:9"), "uploads wait")

    async def send():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deliveries, "AIOKafkaProducer", lambda **_: producer)
            return await PackDelivery(Cluster("127.0.0.1:9092"), away).send(records, is_wanted)

    return asyncio.run(send()), away


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(deliveries, "RETRY_SECONDS", 0.0)


def test_only_what_failed_is_sent_again():
    producer = FakeProducer(None, KafkaTimeoutError(), None, KafkaTimeoutError())
    assert delivered(producer)[0]
    taken = [partition for _, _, partition in producer.taken]
    assert sorted(taken) == [0, 1, 2]
    assert taken[-1] == 1


def test_a_time_that_a_record_states_is_sent():
    producer = FakeProducer()
    assert delivered(producer, records=[Sendable("rejected", b"", None, b"0-1", 3_600_000)])[0]
    assert producer.times == {3_600_000}


def test_an_error_is_known_until_an_answer_comes():
    all_taken, away = delivered(FakeProducer(*[KafkaTimeoutError()] * 5))
    assert (all_taken, away.cause) == (True, "")
    all_taken, away = delivered(FakeProducer(*[KafkaTimeoutError()] * 99), lambda: False)
    assert not all_taken
    assert away.cause


def test_a_partition_that_takes_nothing_is_one_outage_though_others_and_reads_work():
    """Too few of its replicas are in sync, say; all other questions are answered."""

    async def send():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deliveries, "AIOKafkaProducer", lambda **_: producer)
            delivery = PackDelivery(Cluster("127.0.0.1:9"), away)
            for _ in range(5):
                away.answered("reads")
                assert await delivery.append("uploads", 0, b"") is None
                assert away.cause
                assert await delivery.append("uploads", 1, b"") is not None
            assert await delivery.append("uploads", 0, b"") is not None

    away = Outage(Cluster("127.0.0.1:9"), "this test waits")
    producer = FakeProducer(*[NotEnoughReplicasError(), None] * 5)
    with capture_logs() as lines:
        asyncio.run(send())
    # The outage of an earlier test may still be explained.
    own = [each for each in lines if "uploads wait" not in each["event"]]
    assert [each["log_level"] for each in own] == ["warning", "info"]


def test_messages(pin_messages: PinMessages) -> None:
    """What Kafka never takes ends the relay."""
    relay = PartitionRelay(PARTITION, KEYS, Start(0), -1, ("reports", "rejected"), 2)
    record = Stored(0, 1, b"")
    record.timestamp_type = 0
    pin_messages(
        {
            "a pack is too large": lambda: delivered(FakeProducer(None, MessageSizeTooLargeError())),
            "the relay may not write": lambda: delivered(
                FakeProducer(None, TopicAuthorizationFailedError("reports"))
            ),
            "records have no append time": lambda: relay.take([record]),
        }
    )
