"""Brokers' addresses that take no connection are named, with the reason."""

import socket
from collections.abc import Iterator

import pytest

from deniable.cluster.cluster import Cluster
from deniable.producers.transport import reachability
from deniable.producers.transport.reachability import explained


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> Iterator[str]:
    """An address where nothing listens, kept from others."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_what_kafka_did_is_said_unless_no_broker_takes_a_connection(
    listening: str, closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(servers: str) -> str:
        return explained(Cluster(servers), "did nothing")

    refused = "Connection refused"
    assert said(listening) == f"Kafka at {listening} did nothing"
    both = f"{closed},{listening}"
    assert said(both) == f"Kafka at {both} did nothing ({closed}: {refused})"
    assert said(closed) == f"no Kafka broker answers at {closed}: {refused}"
    assert said(f"{closed},[::1]:9") == f"no Kafka broker answers at {closed},[::1]:9: {refused}"
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        servers = f"{closed},127.0.0.1:{full.getsockname()[1]}"
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        monkeypatch.setattr(reachability, "ASK_SECONDS", 0.1)
        mute = servers.split(",")[1]
        answer = f"no Kafka broker answers at {servers}: {closed}: {refused}; {mute}: no answer in time"
        assert said(servers) == answer
        for each in waiting:
            each.close()
