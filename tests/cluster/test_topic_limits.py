"""Limits of topic settings: the first value beyond a limit is reported, the last within it is not."""

from types import SimpleNamespace
from typing import cast

import pytest

from deniable.cluster.topics.limits import UPLOADS_SPARE_SECONDS, Kept, limit_findings
from deniable.cluster.topics.plan import DAY_MILLISECONDS, RECORD_BYTES, plan
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics

TOPICS = Topics("d-", 2, takes_uploads=True)
LONGEST = cast(Collection, SimpleNamespace(name="slow", window_seconds=3600, grace_seconds=300))
KEPT = {
    TOPICS.reports: Kept(LONGEST),
    TOPICS.uploads: Kept(LONGEST, UPLOADS_SPARE_SECONDS, DAY_MILLISECONDS),
}
NEVER = 2**63 - 1
GOOD = {
    "max.message.bytes": RECORD_BYTES,
    "min.compaction.lag.ms": 0,
    "max.compaction.lag.ms": NEVER,
    "delete.retention.ms": DAY_MILLISECONDS,
    "min.insync.replicas": 1,
    "retention.ms": 5_100_000,
}


def shown(name: str, replicas: int = 1, **changed: int) -> list[str]:
    settings = {key: str(changed.get(key.replace(".", "_"), value)) for key, value in GOOD.items()}
    (topic,) = [each for each in plan(TOPICS) if each.name == f"d-{name}"]
    found = limit_findings([topic], {topic.name: settings}, {topic.name: replicas}, KEPT, "change")
    return [str(each) for each in found]


@pytest.mark.parametrize(
    "name", ["reports", "state", "counts", "rejected", "estimates", "windows", "uploads"]
)
def test_settings_within_limits_give_no_finding(name: str) -> None:
    assert shown(name) == []


@pytest.mark.parametrize(
    ("key", "beyond", "within"),
    [
        ("max.message.bytes", RECORD_BYTES - 1, RECORD_BYTES),
        ("min.compaction.lag.ms", DAY_MILLISECONDS + 1, DAY_MILLISECONDS),
        ("max.compaction.lag.ms", 59_999, 60_000),
        ("delete.retention.ms", DAY_MILLISECONDS - 1, DAY_MILLISECONDS),
    ],
)
def test_a_ledger_s_topic_has_limits(key: str, beyond: int, within: int) -> None:
    (finding,) = shown("state", **{key.replace(".", "_"): beyond})
    assert finding.startswith(f"topic d-state: {key} must be at ")
    assert f"{within}, got {beyond} (" in finding
    assert finding.endswith(f"): change --topic d-state --add-config {key}={within}")
    assert shown("state", **{key.replace(".", "_"): within}) == []


def test_reports_are_kept_until_their_window_is_over() -> None:
    (finding,) = shown("reports", retention_ms=3_899_999)
    assert "retention.ms must be at least 3900000, got 3899999 (window_seconds and grace_seconds of slow" in (
        finding
    )
    assert shown("reports", retention_ms=-1) == shown("estimates", retention_ms=1) == []


def test_uploads_are_kept_for_relays_that_begin_again() -> None:
    """From 300 s before the window on, and with settings that relays restate every 300 s."""
    (finding,) = shown("uploads", retention_ms=5_099_999)
    assert (
        "retention.ms must be at least 5100000, got 5099999 (window_seconds and grace_seconds of slow and "
        in (finding)
    )
    assert finding.endswith(
        "slow and 1200 s; records deleted earlier may be uncounted): change --topic d-uploads "
        "--add-config retention.ms=86400000"
    )
    assert shown("uploads", retention_ms=-1) == []


@pytest.mark.parametrize(("replicas", "in_sync"), [(1, 1), (2, 1), (2, 2), (3, 2), (5, 3)])
def test_replicas_that_bear_a_failure_are_not_reported(replicas: int, in_sync: int) -> None:
    assert shown("counts", replicas, min_insync_replicas=in_sync) == []


@pytest.mark.parametrize(
    ("replicas", "in_sync", "expected", "remedy"),
    [(1, 2, "must be at most 1, got 2", 1), (3, 1, "must be at least 2, got 1", 2)],
)
def test_replicas_that_stop_writes_or_lose_records_are_reported(
    replicas: int, in_sync: int, expected: str, remedy: int
) -> None:
    (finding,) = shown("counts", replicas, min_insync_replicas=in_sync)
    assert f"min.insync.replicas {expected} (" in finding
    assert finding.endswith(f" min.insync.replicas={remedy}")
