"""Broker addresses, and which may be used without encryption."""

import re
from functools import partial

import pytest

from deniable.cluster.cluster import Cluster, PlaintextError
from deniable.cluster.security import Security
from tests.support.messages import PinMessages


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
    with pytest.raises(PlaintextError, match=re.escape(host.strip("[]"))):
        Cluster(f"localhost:1,{host}:9092")


def test_messages(pin_messages: PinMessages) -> None:
    addresses = {
        "no address": "",
        "no port": "localhost",
        "no host": ":9092",
        "an empty port": "localhost:",
        "port 0": "localhost:0",
        "port 65536": "localhost:65536",
        "a port below 0": "localhost:-1",
        "a port in other digits": "localhost:١",
        "a port that is no number": "localhost:abc",
        "IPv6 without brackets": "::1:9092",
        "a URL": "http://localhost:9092",
        "a URL of Kafka": "kafka://localhost:9092",
        "a leading space": " localhost:9092",
        "a space in the host": "local host:9092",
        "two addresses without a comma": "localhost:9092 b:9092",
        "an empty label": "a..b:9092",
        "a label of 64 characters": f"{'a' * 64}:9092",
    }
    pin_messages(
        {
            what: partial(Cluster, f"localhost:1,{address}", allow_plaintext=True)
            for what, address in addresses.items()
        }
        | {
            "a password": lambda: Cluster("user:hunter2@kafka:9092"),
            "another machine": lambda: Cluster("localhost:1,kafka:9092"),
            "another machine by IPv6": lambda: Cluster("localhost:1,[2001:db8::1]:9092"),
        }
    )


def test_brokers_are_reported_by_host_and_port() -> None:
    named = Cluster("a.b-c_d:1,10.0.0.7:65535,[::1]:9092", allow_plaintext=True)
    assert named.addresses() == [("a.b-c_d", 1), ("10.0.0.7", 65535), ("::1", 9092)]


def test_plaintext_clients_get_only_the_address() -> None:
    assert Cluster("localhost:1").client_settings() == {"bootstrap_servers": "localhost:1"}
