"""Broker addresses, and which may be used without encryption."""

import pytest

from producers.transport.cluster import Cluster, PlaintextError
from producers.transport.security import Security


@pytest.mark.parametrize(
    "servers", ["127.0.0.1:9092", "localhost:1", "127.8.8.8:65535", "[::1]:9092", "127.0.0.1:1,[::1]:2"]
)
def test_loopback_needs_no_permission(servers: str) -> None:
    Cluster(servers)


@pytest.mark.parametrize(
    "host", ["kafka", "10.0.0.1", "[2001:db8::1]", "localhost.example", "127.1", "LOCALHOST"]
)
def test_other_machine_needs_permission_or_tls(host: str) -> None:
    Cluster(f"{host}:9092", allow_plaintext=True)
    Cluster(f"{host}:9092", Security())
    with pytest.raises(PlaintextError) as caught:
        Cluster(f"localhost:1,{host}:9092")
    assert str(caught.value) == (
        f"bootstrap_servers is another machine ({host.strip('[]')}) and the connection is not encrypted: "
        "give security (TLS), or allow_plaintext: true if the network between is trusted"
    )


@pytest.mark.parametrize(
    "address",
    [
        *("", "localhost", ":9092", "localhost:", "localhost:0", "localhost:65536", "localhost:-1"),
        *("localhost:١", "::1:9092", "http://localhost:9092", " localhost:9092", "local host:9092"),
        *(
            "a..b:9092",
            f"{'a' * 64}:9092",
            "localhost:abc",
            "kafka://localhost:9092",
            "localhost:9092 b:9092",
        ),
    ],
)
def test_invalid_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="must be HOST:PORT") as caught:
        Cluster(f"localhost:1,{address}", allow_plaintext=True)
    assert str(caught.value) == (
        f"bootstrap_servers must be HOST:PORT with a port in [1, 65535], got '{address}'"
    )


def test_text_before_the_host_is_not_shown() -> None:
    with pytest.raises(ValueError, match=r"got '…@kafka:9092'") as caught:
        Cluster("user:hunter2@kafka:9092")
    assert "hunter2" not in str(caught.value)


def test_brokers_are_reported_by_host_and_port() -> None:
    named = Cluster("a.b-c_d:1,10.0.0.7:65535,[::1]:9092", allow_plaintext=True)
    assert named.addresses() == [("a.b-c_d", 1), ("10.0.0.7", 65535), ("::1", 9092)]


def test_plaintext_clients_get_only_the_address() -> None:
    assert Cluster("localhost:1").client_settings() == {"bootstrap_servers": "localhost:1"}
