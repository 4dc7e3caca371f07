"""Readiness of a partition, and the reasons given when it is not ready."""

from functools import partial

from aiokafka.errors import (
    KafkaConnectionError,
    NodeNotReadyError,
    ProducerFenced,
    UnknownTopicOrPartitionError,
)
from structlog.testing import capture_logs

from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition.readiness import Readiness
from deniable.aggregator.partition.timing import PartitionTiming
from deniable.cluster.connection.outage import Outage
from tests.support.aggregator.builders import COLLECTIONS, NOWHERE
from tests.support.messages import PinMessages


def test_an_outage_of_all_partitions_is_one_line_at_its_begin_and_one_at_its_end() -> None:
    """Whatever errors it raises; a ledger that opens but cannot be stored does not end it."""
    outage = Outage(NOWHERE, "counting waits")
    partitions = [Readiness(each, WorkerMetrics(COLLECTIONS), outage) for each in range(3)]
    failures = (TimeoutError(), KafkaConnectionError("10.0.0.1"), NodeNotReadyError(), OSError())
    with capture_logs() as logged:
        for failure in failures:
            for each in partitions:
                each.opened(7)
                each.lost(failure)
        for each in partitions:
            each.opened(7)
            assert each.reason_not_ready
            each.stored(7)
    assert [each["event"].partition(";")[0] for each in logged if each["event"] != "ledger open"] == [
        "Kafka cannot be used",
        "Kafka can be used again",
    ]
    assert [each.reason_not_ready for each in partitions] == [None] * 3
    assert len(logged) == 2 + 3  # each ledger's first opening


def test_another_owner_is_no_outage() -> None:
    readiness = Readiness(3, WorkerMetrics(COLLECTIONS), Outage(NOWHERE, "counting waits"))
    with capture_logs() as logged:
        for _ in range(2):
            readiness.lost(ProducerFenced("a newer producer"))
    assert [each["event"] for each in logged] == ["ledger lost"]


def test_reopened_ledger_is_ready_once_stored() -> None:
    readiness = Readiness(3, WorkerMetrics(COLLECTIONS), Outage(NOWHERE, "counting waits"))
    readiness.opened(7)
    assert readiness.reason_not_ready
    readiness.stored(9)
    assert readiness.reason_not_ready is None


def test_stall_is_reported_until_the_position_moves(pin_messages: PinMessages) -> None:
    readiness = Readiness(3, WorkerMetrics(COLLECTIONS), Outage(NOWHERE, "counting waits"))
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
        readiness = Readiness(3, WorkerMetrics(COLLECTIONS), Outage(NOWHERE, "counting waits"))
        readiness.lost(failure)
        return readiness.reason_not_ready

    failures = {
        "another owner": ProducerFenced("a newer producer"),
        "a missing topic": UnknownTopicOrPartitionError(),
    }
    opening = Readiness(3, WorkerMetrics(COLLECTIONS), Outage(NOWHERE, "counting waits")).reason_not_ready
    pin_messages(
        {"no ledger yet": lambda: opening}
        | {what: partial(lost, failure) for what, failure in failures.items()}
    )
