"""Valid and invalid settings of a producer."""

import math
from functools import partial
from pathlib import Path

import pytest

from deniable.cluster.cluster import PlaintextError
from deniable.cluster.security import Security
from deniable.config.settings.allowance import Allowance
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.config import ProducerConfig
from tests.support.messages import PinMessages

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
    with pytest.raises(PlaintextError, match="kafka"):
        ProducerConfig(**elsewhere)
    assert ProducerConfig(**elsewhere, allow_plaintext=True).cluster.addresses()[1] == ("kafka", 9092)
    secured = ProducerConfig(**elsewhere, security=Security())
    assert secured.cluster.security == Security()


def test_messages(pin_messages: PinMessages) -> None:
    options = [
        ("partitions", 0),
        ("partitions", 1001),
        ("pack_reports", 0),
        ("pack_reports", 1_000_001),
        ("pack_seconds", 0),
        ("pack_seconds", 3601),
        ("pack_seconds", math.nan),
        ("outbox_bytes", 999_999),
        ("block_milliseconds", -0.1),
        ("block_milliseconds", 3_600_001),
        ("connect_seconds", 0),
    ]
    pin_messages(
        {f"{name} is {value}": partial(ProducerConfig, **GIVEN | {name: value}) for name, value in options}
        | {"a name twice": lambda: ProducerConfig(**GIVEN | {"allowances": (LATENCY, LATENCY)})}
    )
