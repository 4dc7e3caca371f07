"""An outage is one line at its begin, with its cause, and one at its end, whatever parts fail and recover."""

import asyncio
import errno
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.errors import (
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
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
from deniable.cluster.connection import outage as module
from deniable.cluster.connection import start_log
from deniable.cluster.connection.outage import Outage, described, is_outage, noted, why_unavailable
from deniable.cluster.connection.start_log import StartLog
from deniable.cluster.security import Security
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


def test_a_reader_that_waits_notes_an_outage_by_asking_beside_it(
    lines: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.01)
    outage, has_read, asked = Outage(NOWHERE, "nothing new is shown"), asyncio.Event(), 0

    async def ask() -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise KafkaTimeoutError
        if asked == 3:
            await asyncio.sleep(60)
        if asked == 5:
            has_read.set()

    async def read(noting: Outage | None) -> None:
        async with noted(noting, ask):
            await has_read.wait()

    asyncio.run(read(outage))
    before = asked
    asyncio.run(read(None))
    assert asked == before
    assert [each["log_level"] for each in lines] == ["warning", "info"]


def test_missing_topics_and_rights_and_other_owners_are_no_outage() -> None:
    assert all(map(is_outage, (*ERRORS, OSError(), LeaderNotAvailableError())))
    others = (UnknownTopicOrPartitionError(), TopicAuthorizationFailedError(), ProducerFenced())
    assert not any(map(is_outage, (*others, ValueError())))


@pytest.mark.parametrize("cause", [LeaderNotAvailableError(), TopicAuthorizationFailedError()])
def test_an_error_that_says_nothing_is_judged_by_its_cause(cause: Exception) -> None:
    """The sender of aiokafka raises a bare KafkaError, from whatever ended it."""
    bare = KafkaError("Unexpected error during batch delivery")
    bare.__cause__ = cause
    assert (is_outage(bare), described(bare)) == (is_outage(cause), described(cause))
    assert not is_outage(KafkaError("without a cause"))


@pytest.mark.broker
def test_brokers_that_are_away_are_named_beside_one_that_answers(broker: str) -> None:
    """The bootstrap servers are asked, and what one of them names."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = f"127.0.0.1:{closed.getsockname()[1]}"
    cause = asyncio.run(why_unavailable(Cluster(f"{broker},{away}"), [], KafkaTimeoutError()))
    assert cause == f"1 of 2 brokers cannot be used ({away}: Connection refused)"
    assert asyncio.run(why_unavailable(Cluster(broker), [], KafkaTimeoutError())) == "no answer in time"


def test_an_unusable_file_is_the_cause_that_is_logged(tmp_path: Path, lines: list[EventDict]) -> None:
    cluster = Cluster("127.0.0.1:9", Security(ca_file=tmp_path / "absent"))
    Outage(cluster, "counting waits").failed(1, KafkaTimeoutError())
    assert wait_until(lambda: len(lines) == 1)
    assert str(tmp_path / "absent") in lines[0]["cause"]


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
        | {
            f"an outage by {type(error).__name__}": (lambda e=error: described(e))
            for error in (*ERRORS, IllegalStateError())
        }  # type: ignore[misc]
    )


def test_a_start_says_now_and_then_what_it_waits_for_until_it_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with capture_logs() as said:
        StartLog().has_time("partitions")
    assert said == []  # before it lasts
    monkeypatch.setattr(start_log, "SAY_SECONDS", 0.0)
    start = StartLog(seconds=60)
    with capture_logs() as said:
        assert start.has_time("partition 2", partitions="1 of 3")
        start.has_time("")
        start.has_time("partition 2: lost")
    (line,) = said
    assert line == line | {"waits_for": "partition 2", "partitions": "1 of 3", "seconds": "0 of at most 60"}
    assert not StartLog(seconds=0.0).has_time("Kafka")
