"""Planted values and client ids, reported or recorded, never appear in a producer's files, logs or output."""

import base64
import logging

import pytest
from kafka import KafkaConsumer
from prometheus_client import generate_latest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError
from deniable.producers.producer import Producer
from tests.support.producers.topics import make_topic, read

VALUE = "canary-value-Zürich-7391"
CLIENT = "canary-client-Ærø-5519"
LISTED = Collection("carrier", KRR.from_epsilon(3, 1.0), values=("AA", VALUE), other=True)
OTHER = Collection("listless", KRR.from_epsilon(3, 1.0), values=("AA", "B6"), other=True)
BLOOM = Collection("destination", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), memoize=True)
BUDGET = Budget(epsilon=40.0, delta=1e-6, period_seconds=86_400, values="unchanged")


def spellings(text):
    """Encodings of the text: UTF-8, UTF-16, hexadecimal, base64 at every offset."""
    for raw in (text.encode(), text.encode("utf-16-le"), text.encode("utf-16-be")):
        yield raw
        yield raw.hex().encode()
        yield raw.hex().upper().encode()
        for offset in range(3):
            # The first and last characters depend on the surrounding text.
            yield base64.b64encode(bytes(offset) + raw)[4:-4]


def traces(found):
    """Names of the places with planted text."""
    planted = [spelling for text in (VALUE, CLIENT) for spelling in spellings(text)]
    return [name for name, content in found.items() if any(each in content for each in planted)]


def test_traces_are_detected():
    for number, spelling in enumerate(spellings(CLIENT)):
        assert traces({"place": b"before" + spelling + b"after", "other": b"nothing"}) == ["place"], number


@pytest.mark.broker
def test_values_and_clients_appear_nowhere(broker, topic_prefix, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    found = {}
    allowances = tuple(Allowance(each, BUDGET) for each in (LISTED, OTHER, BLOOM))
    with make_topic(broker, f"{topic_prefix}reports", 2) as topic:
        config = ProducerConfig(
            allowances=allowances,
            bootstrap_servers=broker,
            topic=topic,
            partitions=2,
            data_dir=tmp_path,
            block_milliseconds=60_000,
        )
        with Producer(config) as producer:
            for allowance in allowances:
                name = allowance.collection.name
                stored = [producer.report(name, VALUE, CLIENT).stored for _ in range(3)]
                assert stored == [1, 0, 0]
                assert producer.report(name, [VALUE] * 50, [f"{CLIENT}{i}" for i in range(50)]).stored == 50
                for number in range(100):
                    producer.record(name, VALUE, CLIENT if number % 2 else f"{CLIENT}{number}")
                    producer.record(name, VALUE, None if number % 2 else "", -1 if number % 3 else None)
                for wrong in ({VALUE: 1}, VALUE.encode(), [VALUE]):
                    with pytest.raises(TypeError) as caught:
                        producer.record(name, wrong, CLIENT)
                    found[f"error of record {name} {type(wrong)}"] = str(caught.value).encode()
                for wrong in ([{VALUE}], {VALUE: 1}):
                    with pytest.raises(TypeError) as caught:
                        producer.report(name, wrong, CLIENT)
                    found[f"error {name} {type(wrong)}"] = str(caught.value).encode()
            found |= {f"before {path.name}": path.read_bytes() for path in tmp_path.iterdir()}
            with pytest.raises(DeliveryError, match="reports"):
                producer.flush()
            found["recorder"] = repr(vars(producer._recorder)).encode()
            found["metrics"] = generate_latest(producer.registry)
            found["repr"] = repr((producer, producer.counters())).encode()
        found |= {f"after {path.name}": path.read_bytes() for path in tmp_path.iterdir()}
        found["log"] = caplog.text.encode()
        consumer = KafkaConsumer(bootstrap_servers=broker)
        topics = {topic} | {each for each in consumer.topics() if each.startswith(topic_prefix)}
        consumer.close()
        for each in topics:
            for number, record in enumerate(read(broker, each)):
                found[f"{each} {number}"] = repr(record).encode() + record.value
    found["output"] = "".join(capfd.readouterr()).encode()
    assert {"before producer.sqlite", "before producer.sqlite-wal", "metrics"} <= found.keys()
    assert len(found) > 10
    assert traces(found) == []
    assert b"DNBL" not in found["log"] + found["output"]  # nor a pack
