"""Readiness of a partition, and the reasons given when it is not ready."""

import pytest
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    ProducerFenced,
    UnknownTopicOrPartitionError,
)
from structlog.testing import capture_logs

from aggregator.metrics.worker_metrics import WorkerMetrics
from aggregator.partition.readiness import Readiness
from aggregator.partition.timing import PartitionTiming
from tests.support.aggregator.builders import COLLECTIONS

AWAY = "Kafka does not answer or refuses access, or a topic is missing; deniable doctor says which"


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (TimeoutError(), AWAY),
        (KafkaConnectionError("10.0.0.1"), AWAY),
        (KafkaTimeoutError("Failed to get offsets by times in 10000 ms"), AWAY),
        (ProducerFenced("a newer producer"), "another worker or command has opened it"),
        (OSError(), "OSError"),
        (
            UnknownTopicOrPartitionError(),
            "a topic of this deployment is missing; deniable topics check says which",
        ),
    ],
)
def test_lost_ledger_gives_reason(failure: Exception, reason: str) -> None:
    readiness = Readiness(3, WorkerMetrics(COLLECTIONS))
    assert readiness.reason_not_ready == "partition 3: opening the ledger"
    readiness.lost(failure)
    assert readiness.reason_not_ready == f"partition 3: {reason}; opening the ledger again"


def test_long_outage_is_logged_once() -> None:
    readiness = Readiness(3, WorkerMetrics(COLLECTIONS))
    with capture_logs() as logged:
        for failure in (TimeoutError(), KafkaConnectionError("10.0.0.1"), OSError(), TimeoutError()):
            readiness.lost(failure)
    assert [each["reason"] for each in logged] == [
        AWAY,
        "OSError",
        AWAY,
    ]


def test_reopened_ledger_is_ready_once_stored() -> None:
    readiness = Readiness(3, WorkerMetrics(COLLECTIONS))
    readiness.opened(7)
    assert readiness.reason_not_ready == "partition 3: opening the ledger"
    readiness.stored(9)
    assert readiness.reason_not_ready is None


def test_stall_is_reported_until_the_position_moves() -> None:
    readiness = Readiness(3, WorkerMetrics(COLLECTIONS))
    readiness.opened(7)
    readiness.watch(9)
    readiness.timing = PartitionTiming(standstill=0.0)
    readiness.lost(TimeoutError())
    readiness.opened(7)
    readiness.watch(12)
    readiness.stored(7)
    assert readiness.reason_not_ready == "partition 3: counting stands still at offset 7, the log ends at 12"
    readiness.stored(8)
    readiness.watch(12)
    readiness.timing = PartitionTiming(standstill=10.0)
    readiness.watch(12)
    readiness.stored(8)
    assert readiness.reason_not_ready is None
