"""Readiness on a real broker that stops and returns."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from deniable.deploy.broker.broker import Broker
from tests.chaos.processes.collection_setup import configure
from tests.chaos.processes.workers import Workers
from tests.support.processes import wait_until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("kafka_jars")]

PARTITIONS = 4
READY_SECONDS = 60
GIVEN_UP_SECONDS = 40  # PartitionTiming.stall, plus a margin for a busy machine


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Broker]:
    """A broker for this module alone."""
    with Broker() as broker:
        yield broker


@pytest.fixture
def workers(own_broker: Broker, topic_prefix: str, tmp_path: Path) -> Iterator[Workers]:
    """A single worker."""
    found = Workers(configure(tmp_path, own_broker.bootstrap_servers, topic_prefix), tmp_path)
    try:
        found.start()
        yield found
    finally:
        found.stop()


def get(workers: Workers, path: str) -> tuple[int, dict[str, object]]:
    """Status and answer of the worker's web server; 0 before it listens."""
    output = workers.alive[-1].log.read_text()
    address = next((line for line in output.splitlines() if line.startswith("page: ")), None)
    if address is None:
        return 0, {}
    with closing(HTTPConnection(address.split("/")[2], timeout=60)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.load(answer)


def becomes(workers: Workers, status: int, seconds: float) -> bool:
    return wait_until(lambda: get(workers, "/readyz")[0] == status, seconds)


@pytest.mark.all
@pytest.mark.parametrize(
    ("away", "back"),
    [
        pytest.param(Broker.kill, Broker.start, marks=pytest.mark.nightly),
        (Broker.pause, Broker.resume),
    ],
)
def test_worker_is_unready_while_the_broker_is_away(
    own_broker: Broker,
    workers: Workers,
    away: Callable[[Broker], None],
    back: Callable[[Broker], object],
) -> None:
    """Killed, or paused with open connections: a paused broker would block a client forever."""
    assert becomes(workers, 200, READY_SECONDS), workers.describe()
    away(own_broker)
    try:
        assert becomes(workers, 503, GIVEN_UP_SECONDS), workers.describe()
        assert wait_until(lambda: len(shown(workers)) == PARTITIONS, GIVEN_UP_SECONDS), shown(workers)
        for partition, reason in enumerate(shown(workers)):
            assert reason.startswith(f"partition {partition}: ")
        assert wait_until(lambda: all(map(is_lost, shown(workers))), GIVEN_UP_SECONDS), shown(workers)
        assert get(workers, "/api/status")[1]["ready"] is False
        assert get(workers, "/healthz") == (200, {"healthy": True})
    finally:
        back(own_broker)
    assert becomes(workers, 200, READY_SECONDS), workers.describe()


def is_lost(reason: str) -> bool:
    """Earlier reasons only say that nothing can be stored."""
    return reason.endswith("; opening the ledger again")


def shown(workers: Workers) -> list[str]:
    reasons = get(workers, "/readyz")[1]["reasons"]
    assert isinstance(reasons, list)
    return reasons
