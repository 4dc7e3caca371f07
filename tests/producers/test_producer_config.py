"""What a producer may be told."""

from pathlib import Path

import pytest

from estimators.collection import Collection
from estimators.krr import KRR
from producers.budget import Allowance
from producers.producer_config import ProducerConfig

LATENCY = Allowance(Collection("latency", KRR.from_epsilon(1000, 1.0)), None)
GIVEN = {
    "allowances": (LATENCY,),
    "bootstrap_servers": "127.0.0.1:9092",
    "topic": "reports",
    "partitions": 4,
    "data_dir": Path("data"),
}


def test_the_defaults_are_those_of_the_collection_file():
    config = ProducerConfig(**GIVEN)
    assert (config.pack_reports, config.pack_seconds) == (1000, 1.0)
    assert (config.outbox_bytes, config.block_milliseconds) == (268_435_456, 50.0)


@pytest.mark.parametrize(
    "servers",
    ["localhost:9092", "a.b-c_d:1,10.0.0.7:65535", "[::1]:9092,broker:19092", "broker-0.kafka.svc:9092"],
)
def test_brokers_are_given_by_host_and_port(servers):
    assert ProducerConfig(**GIVEN | {"bootstrap_servers": servers}).bootstrap_servers == servers


@pytest.mark.parametrize(
    "servers",
    [
        "",
        "localhost",
        "localhost:",
        ":9092",
        "localhost:abc",
        "localhost:0",
        "localhost:65536",
        "localhost:-1",
        "::1:9092",
        "localhost:9092,",
        "a:9092, b:9092",
        "localhost:9092 b:9092",
        "kafka://localhost:9092",
    ],
)
def test_what_is_no_list_of_brokers_is_refused(servers):
    with pytest.raises(ValueError, match=r"^bootstrap_servers must be") as caught:
        ProducerConfig(**GIVEN | {"bootstrap_servers": servers})
    assert str(caught.value) == (
        "bootstrap_servers must be host:port, or several with commas, each port in [1, 65535], "
        f"got '{servers}'"
    )


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("partitions", 0, "partitions must be in [1, 1000], got 0"),
        ("partitions", 1001, "partitions must be in [1, 1000], got 1001"),
        ("pack_reports", 0, "pack_reports must be in [1, 1000000], got 0"),
        ("pack_reports", 1_000_001, "pack_reports must be in [1, 1000000], got 1000001"),
        ("pack_seconds", 0, "pack_seconds must be in (0, 3600], got 0"),
        ("pack_seconds", 3601, "pack_seconds must be in (0, 3600], got 3601"),
        ("pack_seconds", float("nan"), "pack_seconds must be in (0, 3600], got nan"),
        ("outbox_bytes", 999_999, "outbox_bytes must be in [1000000, inf), got 999999"),
        ("block_milliseconds", -0.1, "block_milliseconds must be in [0, 3600000], got -0.1"),
        ("block_milliseconds", 3_600_001, "block_milliseconds must be in [0, 3600000], got 3600001"),
        ("connect_seconds", 0, "connect_seconds must be in (0, 3600], got 0"),
        (
            "allowances",
            (LATENCY, LATENCY),
            "names of collections must be distinct, got latency twice",
        ),
    ],
)
def test_what_is_out_of_range_is_refused(option, value, message):
    with pytest.raises(ValueError, match="must be") as caught:
        ProducerConfig(**GIVEN | {option: value})
    assert str(caught.value) == message
