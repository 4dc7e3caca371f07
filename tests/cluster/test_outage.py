"""An outage is one line at its begin, with its cause, and one at its end, whatever parts fail and recover."""

import asyncio
import errno
import resource
import socket
from collections.abc import Iterator

import pytest
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NotEnoughReplicasError,
    ProducerFenced,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from structlog.testing import capture_logs
from structlog.typing import EventDict

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage, described, is_outage, why_unavailable
from tests.support.messages import PinMessages
from tests.support.processes import wait_until

NOWHERE = Cluster("127.0.0.1:9")
ERRORS = (TimeoutError(), KafkaConnectionError("10.0.0.1"), KafkaTimeoutError(), NotEnoughReplicasError())


@pytest.fixture
def lines() -> Iterator[list[EventDict]]:
    with capture_logs() as logged:
        yield logged


def test_alternating_errors_of_parts_are_one_outage(lines: list[EventDict]) -> None:
    outage = Outage(NOWHERE, "counting waits")
    for error in ERRORS * 20:
        outage.failed("write", error)
        outage.answered("read")
    assert wait_until(lambda: len(lines) == 1)
    outage.answered("write")
    assert not outage.cause
    assert [each["log_level"] for each in lines] == ["warning", "info"]
    assert "127.0.0.1:9" in lines[0]["cause"]


def test_an_outage_shorter_than_the_question_for_its_cause_has_both_lines(lines: list[EventDict]) -> None:
    outage = Outage(NOWHERE, "counting waits")
    outage.failed(1, KafkaTimeoutError())
    outage.answered(1)
    outage.failed(1, KafkaTimeoutError())
    assert wait_until(lambda: len(lines) == 3)
    assert [each["log_level"] for each in lines] == ["warning", "info", "warning"]


def test_a_part_that_is_no_longer_ours_neither_ends_nor_prolongs_an_outage(lines: list[EventDict]) -> None:
    outage = Outage(NOWHERE, "counting waits")
    outage.failed(1, KafkaTimeoutError())
    outage.forget(1)
    assert outage.cause
    outage.answered(2)
    assert not outage.cause


def test_missing_topics_and_rights_and_other_owners_are_no_outage() -> None:
    assert all(map(is_outage, (*ERRORS, OSError(), LeaderNotAvailableError())))
    others = (UnknownTopicOrPartitionError(), TopicAuthorizationFailedError(), ProducerFenced())
    assert not any(map(is_outage, (*others, ValueError())))


@pytest.mark.broker
def test_brokers_that_are_away_are_named_beside_one_that_answers(broker: str) -> None:
    """The bootstrap servers are asked, and what one of them names."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = f"127.0.0.1:{closed.getsockname()[1]}"
    cause = asyncio.run(why_unavailable(Cluster(f"{broker},{away}"), [], KafkaTimeoutError()))
    assert cause == f"1 of 2 brokers cannot be used ({away}: Connection refused)"
    assert asyncio.run(why_unavailable(Cluster(broker), [], KafkaTimeoutError())) == "no answer in time"


def test_messages(pin_messages: PinMessages, lines: list[EventDict], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))

    def both() -> str:
        outage = Outage(NOWHERE, "counting waits")
        outage.failed(1, KafkaTimeoutError())
        assert wait_until(lambda: len(lines) == 1)
        said = str(outage)
        outage.answered(1)
        return "\n".join([said, *(f"{each['event']}: {each.get('cause', '')}" for each in lines)])

    files = OSError(errno.EMFILE, "Too many open files")
    pin_messages(
        {"an outage": both, "too many open files": lambda: described(files)}
        | {f"an outage by {type(error).__name__}": (lambda e=error: described(e)) for error in ERRORS}  # type: ignore[misc]
    )
