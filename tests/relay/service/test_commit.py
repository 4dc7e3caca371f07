"""A position that Kafka does not take is logged once, in words; the next commit covers it."""

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest
from aiokafka.errors import IllegalStateError, KafkaTimeoutError
from structlog.testing import capture_logs

from deniable.cluster.cluster import Cluster
from deniable.relay.service.group import RelayGroup
from deniable.relay.service.partition import SealedBatch
from deniable.relay.service.service import RelayConfig, RelayService, Work
from tests.support.relay.logs import KEYS

CONFIG = RelayConfig(Cluster("127.0.0.1:9"), "uploads", "reports", "rejected", "relays", 1, None, 1.0, (), {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TimeoutError(), "no answer in time"),
        (KafkaTimeoutError(), "no answer in time"),
        (IllegalStateError(), "the group's partitions are being assigned anew"),
    ],
)
def test_what_is_not_committed_is_logged_once_in_words(error: Exception, why: str) -> None:
    async def commit(*_: object) -> None:
        raise error

    service = RelayService(CONFIG, KEYS)
    service._metrics.sent = lambda _: None  # type: ignore[method-assign, assignment]
    work = SimpleNamespace(relay=SimpleNamespace(fold=SimpleNamespace(partition=3)), is_committed=True)
    sealed = [cast(SealedBatch, SimpleNamespace(position=None))]
    group = cast(RelayGroup, SimpleNamespace(commit=commit))
    with capture_logs() as lines:
        for _ in range(2):
            asyncio.run(service._commit(group, cast(Work, work), sealed))
    (line,) = lines
    assert (line["partition"], line["why"]) == (3, why)
