"""Readiness of a partition, and the reasons given when it is not ready."""

from functools import partial

from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    ProducerFenced,
    UnknownTopicOrPartitionError,
)
from structlog.testing import capture_logs

from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition.readiness import Readiness
from deniable.aggregator.partition.timing import PartitionTiming
from tests.support.aggregator.builders import COLLECTIONS
from tests.support.messages import PinMessages


def test_long_outage_is_logged_once() -> None:
    readiness = Readiness(3, WorkerMetrics(COLLECTIONS))
    with capture_logs() as logged:
        for failure in (TimeoutError(), KafkaConnectionError("10.0.0.1"), OSError(), TimeoutError()):
            readiness.lost(failure)
    first, other, again = (each["reason"] for each in logged)
    assert first == again != other


def test_reopened_ledger_is_ready_once_stored() -> None:
    readiness = Readiness(3, WorkerMetrics(COLLECTIONS))
    readiness.opened(7)
    assert readiness.reason_not_ready
    readiness.stored(9)
    assert readiness.reason_not_ready is None


def test_stall_is_reported_until_the_position_moves(pin_messages: PinMessages) -> None:
    readiness = Readiness(3, WorkerMetrics(COLLECTIONS))
    readiness.opened(7)
    readiness.watch(9)
    readiness.timing = PartitionTiming(standstill=0.0)
    readiness.lost(TimeoutError())
    readiness.opened(7)
    readiness.watch(12)
    readiness.stored(7)
    reason = readiness.reason_not_ready
    pin_messages({"counting that stands still": lambda: reason})
    readiness.stored(8)
    readiness.watch(12)
    readiness.timing = PartitionTiming(standstill=10.0)
    readiness.watch(12)
    readiness.stored(8)
    assert readiness.reason_not_ready is None


def test_messages(pin_messages: PinMessages) -> None:
    def lost(failure: Exception) -> str | None:
        readiness = Readiness(3, WorkerMetrics(COLLECTIONS))
        readiness.lost(failure)
        return readiness.reason_not_ready

    failures = {
        "no answer in time": TimeoutError(),
        "no connection": KafkaConnectionError("10.0.0.1"),
        "no answer of Kafka in time": KafkaTimeoutError("Failed to get offsets by times in 10000 ms"),
        "another owner": ProducerFenced("a newer producer"),
        "an error of the system": OSError(),
        "a missing topic": UnknownTopicOrPartitionError(),
    }
    opening = Readiness(3, WorkerMetrics(COLLECTIONS)).reason_not_ready
    pin_messages(
        {"no ledger yet": lambda: opening}
        | {what: partial(lost, failure) for what, failure in failures.items()}
    )
