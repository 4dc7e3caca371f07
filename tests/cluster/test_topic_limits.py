"""Limits of topic settings: the first value beyond a limit is reported, the last within it is not."""

from types import SimpleNamespace
from typing import cast

import pytest

from deniable.cluster.finding import Finding
from deniable.cluster.topics.limits import UPLOADS_SPARE_SECONDS, Kept, limit_findings
from deniable.cluster.topics.plan import DAY_MILLISECONDS, NEVER, RECORD_BYTES, UNCLEAN, plan
from deniable.estimators.collection import Collection
from deniable.protocol.topic_names import Topics

TOPICS = Topics("d-", 2, takes_uploads=True)
LONGEST = cast(Collection, SimpleNamespace(name="slow", window_seconds=3600, grace_seconds=300))
KEPT = {
    TOPICS.reports: Kept(LONGEST),
    TOPICS.uploads: Kept(LONGEST, UPLOADS_SPARE_SECONDS, DAY_MILLISECONDS),
}
GOOD = {
    "max.message.bytes": RECORD_BYTES,
    "min.compaction.lag.ms": 0,
    "max.compaction.lag.ms": NEVER,
    "delete.retention.ms": DAY_MILLISECONDS,
    "min.insync.replicas": 1,
    "retention.ms": 5_100_000,
    "retention.bytes": -1,
    "compression.type": "uncompressed",
    UNCLEAN: "false",
    "message.timestamp.before.max.ms": NEVER,
}


def found(name: str, replicas: int = 1, **changed: int | str) -> list[Finding]:
    settings = {key: str(changed.get(key.replace(".", "_"), value)) for key, value in GOOD.items()}
    (topic,) = [each for each in plan(TOPICS) if each.name == f"d-{name}"]
    return limit_findings([topic], {topic.name: settings}, {topic.name: replicas}, KEPT, "change")


def shown(name: str, replicas: int = 1, **changed: int | str) -> list[str]:
    return [str(each) for each in found(name, replicas, **changed)]


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
    [
        (1, 2, "must be at most 1, got 2", "Raise its replicas to 3 with kafka-reassign-partitions.sh"),
        (2, 4, "must be at most 2, got 4", "Raise its replicas to 4 with kafka-reassign-partitions.sh"),
        (3, 4, "must be at most 3, got 4", "--add-config min.insync.replicas=2"),
        (3, 1, "must be at least 2, got 1", "--add-config min.insync.replicas=2"),
    ],
)
def test_replicas_that_stop_writes_or_lose_records_are_reported(
    replicas: int, in_sync: int, expected: str, remedy: str
) -> None:
    """No remedy lowers them to one, which an outage of that one would turn into lost records."""
    (finding,) = shown("counts", replicas, min_insync_replicas=in_sync)
    assert f"min.insync.replicas {expected} (" in finding
    assert finding.endswith(remedy)


@pytest.mark.parametrize(
    ("name", "key", "wrong", "right"),
    [
        *((name, UNCLEAN, "true", "false") for name in ("reports", "state", "counts", "windows", "rejected")),
        *((name, "compression.type", "zstd", "uncompressed") for name in ("reports", "state", "windows")),
        *((name, "compression.type", "producer", "uncompressed") for name in ("reports", "uploads")),
        *((name, "retention.bytes", "1000000", "-1") for name in ("reports", "uploads")),
        ("rejected-uploads", "message.timestamp.before.max.ms", "1000", str(NEVER)),
    ],
)
def test_what_may_lose_or_hide_records_is_a_warning(name: str, key: str, wrong: str, right: str) -> None:
    """A deployment that works with it goes on; the check of topics says what to run."""
    (finding,) = found(name, **{key.replace(".", "_"): wrong})
    assert finding.is_warning
    assert finding.what.startswith(f"topic d-{name}: {key} must be {right}")
    assert f", got {wrong} (" in finding.what
    assert finding.remedy == f"change --topic d-{name} --add-config {key}={right}"


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("state", {"compression_type": "producer"}),
        ("estimates", {"retention_bytes": 1_000_000}),
        ("windows", {"retention_bytes": 1_000_000, "compression_type": "producer"}),
        ("reports", {"message_timestamp_before_max_ms": 1}),
        ("uploads", {"unclean_leader_election_enable": "true"}),
    ],
)
def test_what_the_operator_may_choose_or_programs_refuse_is_no_warning(
    name: str, changed: dict[str, int | str]
) -> None:
    assert found(name, **changed) == []


def test_settings_that_an_older_broker_lacks_are_not_reported() -> None:
    (topic,) = [each for each in plan(TOPICS) if each.name == TOPICS.rejected_uploads]
    settings = {key: str(value) for key, value in GOOD.items() if key != "message.timestamp.before.max.ms"}
    assert limit_findings([topic], {topic.name: settings}, {topic.name: 1}, KEPT, "change") == []
