"""Valid and invalid settings of a producer."""

from pathlib import Path

import pytest

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from producers.budget.allowance import Allowance
from producers.config import ProducerConfig
from producers.transport.cluster import PlaintextError
from producers.transport.security import Security

LATENCY = Allowance(Collection("latency", KRR.from_epsilon(1000, 1.0)), None)
GIVEN = {
    "allowances": (LATENCY,),
    "bootstrap_servers": "127.0.0.1:9092",
    "topic": "reports",
    "partitions": 4,
    "data_dir": Path("data"),
}


def test_defaults_match_the_collection_file():
    config = ProducerConfig(**GIVEN)
    assert (config.pack_reports, config.pack_seconds) == (1000, 1.0)
    assert (config.outbox_bytes, config.block_milliseconds) == (268_435_456, 50.0)


def test_plaintext_to_other_machines_needs_permission():
    elsewhere = GIVEN | {"bootstrap_servers": "127.0.0.1:9092,kafka:9092"}
    with pytest.raises(PlaintextError, match=r"another machine \(kafka\)"):
        ProducerConfig(**elsewhere)
    assert ProducerConfig(**elsewhere, allow_plaintext=True).cluster.addresses()[1] == ("kafka", 9092)
    secured = ProducerConfig(**elsewhere, security=Security())
    assert secured.cluster.security == Security()


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
def test_out_of_range_parameters_are_refused(option, value, message):
    with pytest.raises(ValueError, match="must be") as caught:
        ProducerConfig(**GIVEN | {option: value})
    assert str(caught.value) == message
