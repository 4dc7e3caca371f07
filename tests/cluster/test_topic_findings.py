"""Another number of partitions: what to do follows from which topics there are, and what `state` notes."""

from collections.abc import Sequence
from typing import cast

import pytest
from kafka import KafkaAdminClient

from deniable.aggregator.ledger.row_values import Genesis
from deniable.cluster.topics.findings import numbers_of, reports_findings, setting_findings
from deniable.cluster.topics.plan import plan
from deniable.deploy.cluster.topics import log_identity
from deniable.deploy.cluster.topics.number_findings import number_findings
from deniable.protocol.topic_names import Topics
from tests.support.messages import PinMessages

LOG = bytes(range(16))
NAMES = ("reports", "state", "counts", "rejected", "estimates", "windows")


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
    assert "kafka.topic_prefix" in shown["log"]
    assert "delete" not in shown["log"]


@pytest.mark.parametrize(
    ("numbers", "begun", "topics", "deletes"),
    [
        (all_with(6), Genesis(LOG, 6), NAMES, False),
        (all_with(6), None, NAMES, False),
        ({"reports": 6}, None, ["reports"], False),
        (all_with(4, estimates=1), Genesis(LOG, 4), ["estimates"], True),
        (all_with(4, counts=1), Genesis(LOG, 4), ["counts"], True),
        (all_with(4, state=1), None, ["state"], True),  # made by Kafka after it was deleted: it is empty
        (all_with(4, state=6), Genesis(LOG, 4), ["state"], False),
        ({"reports": 6, "counts": 4}, None, ["reports"], False),
        (all_with(4), Genesis(LOG, 4), [], False),
    ],
)
def test_remedies_delete_no_ledger(
    monkeypatch: pytest.MonkeyPatch,
    numbers: dict[str, int],
    begun: Genesis | None,
    topics: Sequence[str],
    deletes: bool,
) -> None:
    shown = remedies(monkeypatch, 4, begun, **numbers)
    assert set(shown) == set(topics)
    assert any("delete it" in remedy for remedy in shown.values()) == deletes


def test_messages_to_workers(monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages) -> None:
    def findings(begun: Genesis | None, **numbers: int) -> str:
        monkeypatch.setattr(log_identity, "notes", lambda *_: {} if begun is None else {0: begun})
        topics, client = Topics("test-", 4), admin(**numbers)
        return "\n".join(map(str, number_findings(client, "", topics, numbers_of(client, topics))))

    pin_messages(
        {
            "partitions were added": lambda: findings(Genesis(LOG, 4), **all_with(4, reports=6)),
            "all topics have another number": lambda: findings(None, reports=6),
            "Kafka created a topic by itself": lambda: findings(Genesis(LOG, 4), **all_with(4, counts=1)),
            "Kafka created the log by itself": lambda: findings(
                Genesis(bytes(16), 4), **all_with(4, reports=1)
            ),
            "state has another number": lambda: findings(Genesis(LOG, 4), **all_with(4, state=6)),
        }
    )


def test_producer_does_not_send_where_partitions_were_added() -> None:
    for file in (4, 6):
        for others in (all_with(4), {"counts": 4}):
            (finding,) = reports_findings(admin(**{**others, "reports": 6}), Topics("test-", file))
            assert finding.what.startswith("topic test-reports has 6 partitions, ")
            assert "use 6" not in str(finding)


@pytest.mark.parametrize(
    "numbers", [all_with(4), {"reports": 4}, all_with(4, estimates=1), all_with(4, state=1)]
)
def test_a_producer_needs_to_see_no_other_topic(numbers: dict[str, int]) -> None:
    assert reports_findings(admin(**numbers), Topics("test-", 4)) == []


def test_messages_to_producers(pin_messages: PinMessages) -> None:
    def findings(**numbers: int) -> str:
        return "\n".join(map(str, reports_findings(admin(**numbers), Topics("test-", 4))))

    pin_messages(
        {
            "partitions were added": lambda: findings(**all_with(4, reports=6)),
            "all topics have another number": lambda: findings(**all_with(6)),
            "no other topic is there, or seen": lambda: findings(reports=6),
            "the topic is absent": lambda: findings(state=4),
        }
    )


def test_messages_of_settings(monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages) -> None:
    """Kafka does not answer with those that one may not see, or of a topic that has just gone."""

    def findings(settings: dict[str, object]) -> str:
        monkeypatch.setattr(Admin, "describe_configs", lambda *_, **__: {"topic": {"test-reports": settings}})
        return "\n".join(map(str, setting_findings(admin(reports=4), [reports])))

    (reports, *_) = plan(Topics("test-", 4))
    planned = {key: {"value": value} for key, value in reports.settings.items()}
    pin_messages(
        {
            "no settings are in the answer": lambda: findings({}),
            "a setting differs": lambda: findings(
                planned | {"message.timestamp.type": {"value": "CreateTime"}}
            ),
        }
    )
