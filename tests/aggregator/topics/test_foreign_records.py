"""Foreign records are logged by partition, at a limited rate."""

from aiokafka import TopicPartition
from structlog.testing import capture_logs

from deniable.aggregator.topics.foreign_records import QUIET_SECONDS, ForeignRecords


def test_flood_logs_one_line_a_minute_per_partition() -> None:
    foreign = ForeignRecords()
    with capture_logs() as lines:
        for second in range(3 * round(QUIET_SECONDS)):
            foreign.add(TopicPartition("t", 0), 2 * second)
            foreign.add(TopicPartition("t", 0), 2 * second + 1)
            if second == 30:
                foreign.add(TopicPartition("t", 1), 7)
            foreign.log_new(second)
        foreign.log_new(3 * QUIET_SECONDS)
        foreign.log_new(9 * QUIET_SECONDS)
    shown = [(line["partition"], line["first_offset"], line["records"]) for line in lines]
    assert shown == [(0, 0, 2), (1, 7, 1), (0, 2, 120), (0, 122, 120), (0, 242, 118)]
