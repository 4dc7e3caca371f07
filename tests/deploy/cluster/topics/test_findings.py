"""Another number of partitions: what to do follows from which topics there are, and what `state` notes."""

from typing import cast

import pytest
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from aggregator.ledger.row_values import Genesis
from aggregator.topics.names import Topics
from deploy.cluster.topics import log_identity
from deploy.cluster.topics.findings import number_findings, numbers_of, reports_findings, setting_findings
from deploy.cluster.topics.plan import plan

LOG = bytes(range(16))
NAMES = ("reports", "state", "counts", "rejected", "estimates", "windows")
USE_6 = "use 6 (kafka.partitions), or another kafka.topic_prefix"
DELETE = (
    "if Kafka created it by itself (auto.create.topics.enable), delete it and run deniable topics create; if "
    "not, use another kafka.topic_prefix"
)
PREFIX = "use another kafka.topic_prefix"


class Admin:
    """Knows topics by their numbers of partitions, all set as planned; others are not there, or not seen."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.config = {"bootstrap_servers": "kafka:9092"}
        self.numbers = numbers

    def describe_topics(self, names: list[str]) -> list[dict[str, object]]:
        found = [(name, self.numbers.get(name.removeprefix("test-"), 0)) for name in names]
        return [
            {
                "name": name,
                "error_code": 0 if number else 3,
                "partitions": [{}] * number,
                "topic_id": LOG.hex(),
                "authorized_operations": ["DESCRIBE_CONFIGS"],
            }
            for name, number in found
        ]

    def describe_configs(self, resources: list[object], config_filter: str) -> dict[str, dict[str, object]]:
        settings: dict[str, object] = {
            each.name: {key: {"value": value} for key, value in each.settings.items()}
            for each in plan(Topics("test-", 1))
        }
        return {"topic": settings}


def admin(**numbers: int) -> KafkaAdminClient:
    return cast(KafkaAdminClient, Admin(numbers))


def all_with(number: int, **others: int) -> dict[str, int]:
    return {**dict.fromkeys(NAMES, number), **others}


def remedies(
    monkeypatch: pytest.MonkeyPatch, partitions: int, begun: Genesis | None, **numbers: int
) -> dict[str, str]:
    """By topic, or of the log."""
    noted = {} if begun is None else {0: begun}
    monkeypatch.setattr(log_identity, "notes", lambda *_: noted)
    topics, client = Topics("test-", partitions), admin(**numbers)
    shown = number_findings(client, "", topics, numbers_of(client, topics))
    return {
        each.what.split()[1].removeprefix("test-") if each.what.startswith("topic ") else "log": each.remedy
        for each in shown
    }


@pytest.mark.parametrize("partitions", [4, 6])
@pytest.mark.parametrize("numbers", [all_with(4, reports=6), all_with(4, reports=6, counts=6)])
def test_added_partitions_need_no_deletion(
    monkeypatch: pytest.MonkeyPatch, partitions: int, numbers: dict[str, int]
) -> None:
    shown = remedies(monkeypatch, partitions, Genesis(LOG, 4), **numbers)
    assert shown.keys() == {"log"}
    assert "Set another kafka.topic_prefix for producers and workers" in shown["log"]
    assert "delete" not in shown["log"]


def test_another_log_is_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka has made it by itself: after it was deleted there is nothing to go on with."""
    monkeypatch.setattr(log_identity, "notes", lambda *_: {0: Genesis(bytes(16), 4)})
    topics, client = Topics("test-", 4), admin(**all_with(4, reports=1))
    (finding,) = number_findings(client, "", topics, numbers_of(client, topics))
    assert finding.what.startswith("test-reports was deleted and recreated: test-state counts")


@pytest.mark.parametrize(
    ("numbers", "begun", "expected"),
    [
        (all_with(6), Genesis(LOG, 6), dict.fromkeys(NAMES, USE_6)),
        (all_with(6), None, dict.fromkeys(NAMES, USE_6)),
        ({"reports": 6}, None, {"reports": USE_6}),
        (all_with(4, estimates=1), Genesis(LOG, 4), {"estimates": DELETE}),
        (all_with(4, counts=1), Genesis(LOG, 4), {"counts": DELETE}),
        (all_with(4, state=1), None, {"state": DELETE}),  # made by Kafka after it was deleted: it is empty
        (all_with(4, state=6), Genesis(LOG, 4), {"state": PREFIX}),
        ({"reports": 6, "counts": 4}, None, {"reports": PREFIX}),
        (all_with(4), Genesis(LOG, 4), {}),
    ],
)
def test_remedies_delete_no_ledger(
    monkeypatch: pytest.MonkeyPatch,
    numbers: dict[str, int],
    begun: Genesis | None,
    expected: dict[str, str],
) -> None:
    assert remedies(monkeypatch, 4, begun, **numbers) == expected


def test_producer_does_not_send_where_partitions_were_added() -> None:
    for file in (4, 6):
        for others in (all_with(4), {"counts": 4}):
            (finding,) = reports_findings(admin(**{**others, "reports": 6}), Topics("test-", file))
            assert finding.what.startswith("topic test-reports has 6 partitions, and no other topic of this")
            assert "many, so workers do not count all of it; deniable topics check says why" in finding.what
            assert "use 6" not in finding


@pytest.mark.parametrize(
    "numbers", [all_with(4), {"reports": 4}, all_with(4, estimates=1), all_with(4, state=1)]
)
def test_a_producer_needs_to_see_no_other_topic(numbers: dict[str, int]) -> None:
    assert reports_findings(admin(**numbers), Topics("test-", 4)) == []


def test_other_partition_number_is_explained_to_producers() -> None:
    topics, but = (
        Topics("test-", 4),
        "topic test-reports has 6 partitions, not 4, and the number must never change",
    )
    assert list(map(str, reports_findings(admin(**all_with(6)), topics))) == [f"{but}: {USE_6}"]
    assert list(map(str, reports_findings(admin(reports=6), topics))) == [
        f"{but}: use the kafka.partitions of the workers, or another kafka.topic_prefix"
    ]
    assert list(map(str, reports_findings(admin(state=4), topics))) == [
        "topic test-reports is absent: run deniable topics create"
    ]


def test_unavailable_settings_raise_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the answer to somebody who may not see them, or about a topic that has just gone."""
    monkeypatch.setattr(Admin, "describe_configs", lambda *_, **__: {"topic": {"test-reports": {}}})
    with pytest.raises(KafkaError, match=r"it does not let us see the settings of topic test-reports$"):
        setting_findings(admin(reports=4), plan(Topics("test-", 4))[:1])
