"""A recreated log is distinguished from a broker that answers wrongly for a moment."""

from contextlib import suppress
from typing import cast

import pytest
from kafka import KafkaAdminClient
from kafka.errors import UnknownTopicOrPartitionError

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger.row_values import Genesis
from deniable.aggregator.partition.ledger_checks import LedgerRefusedError
from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.probe import UnreachableError
from deniable.cluster.finding import Finding
from deniable.cluster.topics.checks import TopicSetupError
from deniable.deploy.cluster.topics import log_identity
from deniable.deploy.cluster.topics import setup as topic_setup
from deniable.deploy.services.aggregate.log_watch import LogWatch
from deniable.protocol.topic_names import Topics

OURS = Genesis(bytes(range(16)), 4)
OTHER = Genesis(bytes(range(1, 17)), 4)
GROWN = OURS._replace(partitions=5)
TOPICS = Topics("test-", 4)


UNSET = Finding("topic test-state: cleanup.policy must be compact, got delete", "")

Answer = Genesis | tuple[Genesis, list[Finding]] | Exception


def found_after(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> LogWatch:
    """A watch that got these answers; it must not ask for more."""
    shown = list(answers)

    def present_log(*_: object) -> tuple[Genesis, list[Finding]]:
        if not shown:
            raise KeyboardInterrupt  # which ends the thread's work here, in the test's own thread
        answer = shown.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return (answer, []) if isinstance(answer, Genesis) else answer

    monkeypatch.setattr(topic_setup, "present_log", present_log)
    watch = LogWatch(Deployment(Cluster("127.0.0.1:9"), TOPICS, OURS, {}, 1), watch_seconds=0.0)
    with suppress(KeyboardInterrupt):
        watch.run()
    assert shown == []
    return watch


@pytest.mark.parametrize(
    "answers",
    [
        (OURS, OURS),
        (UnreachableError("no"), TopicSetupError("absent"), OSError("gone"), OURS),
        (OTHER, OURS, OTHER, OURS),  # of a broker that has just come back
        ((OURS, [UNSET]), OURS, (OURS, [UNSET]), UnreachableError("no"), OURS),
    ],
)
def test_worker_continues(monkeypatch: pytest.MonkeyPatch, answers: tuple[Answer, ...]) -> None:
    found_after(monkeypatch, *answers).check()


def test_another_log_found_twice_ends_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = found_after(monkeypatch, OURS, OTHER, TopicSetupError("absent"), OTHER)
    with pytest.raises(LedgerRefusedError, match=TOPICS.reports):
        watch.check()


def test_partitions_that_were_added_end_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = found_after(monkeypatch, GROWN, GROWN)
    with pytest.raises(LedgerRefusedError, match="5 partitions"):
        watch.check()


def test_wrong_settings_found_twice_end_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = found_after(monkeypatch, OURS, (OURS, [UNSET]), OSError("gone"), (OURS, [UNSET]))
    with pytest.raises(TopicSetupError, match=f"^{UNSET}$"):
        watch.check()


def test_answer_that_holds_an_error_names_no_log() -> None:
    """Its identity is all zeros."""

    class Admin:
        def describe_topics(self, _: list[Finding]) -> list[dict[str, object]]:
            return [{"error_code": 3, "topic_id": "0" * 32, "partitions": []}]

    with pytest.raises(UnknownTopicOrPartitionError):
        log_identity.log_of(cast(KafkaAdminClient, Admin()), TOPICS)
