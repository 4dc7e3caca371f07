"""Rejected packs without a valid window are logged by reason, at a limited rate."""

from collections import Counter

from structlog.testing import capture_logs

from aggregator.metrics.rejected_packs import UnattributedRejections
from aggregator.topics.foreign_records import QUIET_SECONDS


def test_flood_logs_one_line_a_minute() -> None:
    unattributed = UnattributedRejections()
    with capture_logs() as lines:
        unattributed.log_new(99.0)
        for second in range(100, 100 + 3 * round(QUIET_SECONDS)):
            unattributed.add(Counter(unknown_collection=2, malformed=1))
            unattributed.log_new(second)
        unattributed.log_new(100 + 3 * QUIET_SECONDS)
        unattributed.log_new(100 + 9 * QUIET_SECONDS)
    shown = [(line["malformed"], line["unknown_collection"]) for line in lines]
    assert shown == [(1, 2), (60, 120), (60, 120), (59, 118)]
    assert {(line["log_level"], line["event"]) for line in lines} == {
        ("warning", "rejected packs without a valid window")
    }
    assert unattributed.packs == {"malformed": 180, "unknown_collection": 360}
