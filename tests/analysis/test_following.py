"""A run that follows a topic outlasts an outage of Kafka."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaTimeoutError
from structlog.testing import capture_logs

from deniable.analysis.sources import following
from deniable.cluster.cluster import Cluster

OUTAGES = 3


class Consumer:
    """Kafka is away at the second to fourth question for the end, for longer than silence may last."""

    def __init__(self) -> None:
        self.asked = 0
        self.now = 0.0

    def pause(self, *_: TopicPartition) -> None:
        pass

    resume = seek = pause

    async def offsets_for_times(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, None]:
        return dict.fromkeys(times)

    async def end_offsets(self, sources: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked += 1
        if 1 < self.asked <= 1 + OUTAGES:
            self.now += following.SILENCE_SECONDS + 1
            raise KafkaTimeoutError
        return dict.fromkeys(sources, 0)

    async def getmany(self, **_: int) -> dict[TopicPartition, list[Any]]:
        return {}

    async def position(self, _: TopicPartition) -> int:
        return 0


def test_following_goes_on_when_kafka_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Consumer()

    @asynccontextmanager
    async def connected(*_: object) -> AsyncIterator[Consumer]:
        yield consumer

    async def first_five() -> list[bool]:
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: consumer.now)
        fetching = following.fetched_since(Cluster("127.0.0.1:9"), "estimates", 2, 0, follows=True)
        found: list[bool] = []
        async with aclosing(fetching) as fetched:
            async for each in fetched:
                found.append(each.is_at_end)
                if len(found) == OUTAGES + 2:
                    break
        return found

    monkeypatch.setattr(following, "assigned_consumer", connected)
    with capture_logs() as lines:
        assert asyncio.run(first_five()) == [True, *[False] * OUTAGES, True]
    assert [each["log_level"] for each in lines] == ["warning", "info"]
