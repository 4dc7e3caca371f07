"""Rejected packs without a valid window are logged by reason, at a limited rate."""

from collections import Counter

from structlog.testing import capture_logs

from deniable.aggregator.metrics.rejected_packs import (
    OTHER_QUIET_SECONDS,
    OtherParameters,
    UnattributedRejections,
)
from deniable.aggregator.topics.foreign_records import QUIET_SECONDS


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


def test_other_parameters_are_logged_by_collection_at_a_limited_rate() -> None:
    rejected = OtherParameters()
    with capture_logs() as lines:
        rejected.add(["plan", "plan"])
        rejected.log_new(5.0)
        rejected.add(["plan", "carrier"])
        rejected.log_new(6.0)
        rejected.log_new(5.0 + OTHER_QUIET_SECONDS)
        rejected.log_new(9.0 + 9 * OTHER_QUIET_SECONDS)
    assert [(line["collection"], line["packs"]) for line in lines] == [
        ("plan", 2),
        ("carrier", 1),
        ("plan", 1),
    ]
    assert all("doctor --as producer" in line["remedy"] for line in lines)
