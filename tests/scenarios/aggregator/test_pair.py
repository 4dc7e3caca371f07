"""A pair of fields from a file through a worker on a real broker to its joint table and margins."""

import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from deniable.aggregator.records.estimate import EstimateRecord, decode_estimate
from deniable.cluster.cluster import Cluster
from deniable.config.file import Configuration
from deniable.deploy.cluster.topics.setup import create
from deniable.producers.opening.from_file import producer_config
from deniable.producers.producer import Producer
from tests.chaos.processes.collection_setup import write
from tests.chaos.processes.workers import Workers
from tests.support.processes import wait_until
from tests.support.producers.topics import read

pytestmark = [pytest.mark.broker, pytest.mark.slow]

CARRIERS, ORIGINS = ["AA", "B6", "XX"], ["EWR", "JFK"]
TRUTH = np.array([[9000, 1000], [2000, 6000], [1000, 1000]])
COLLECTION = """\
revision: {revision}
kafka: {{bootstrap_servers: "{servers}", topic_prefix: "{prefix}"}}
collections:
  - {{name: route, mechanism: {{mechanism}}, epsilon: 4.0, window_seconds: 3600, grace_seconds: 3600,
     budget: none, fields: [{{name: carrier, values: [AA, B6]}},
       {{name: origin, values: [EWR, JFK], other: false}}]}}
"""


def newest(configuration: Configuration) -> EstimateRecord | None:
    """The estimate of the most reports."""
    records = read(configuration.kafka.bootstrap_servers, configuration.topics.estimates)
    found = [decode_estimate(record.value) for record in records if record.value]
    return max(found, key=lambda record: record.reports, default=None)


@pytest.mark.all
@pytest.mark.parametrize("mechanism", ["k-rr-pair", pytest.param("one-hot-pair", marks=pytest.mark.nightly)])
def test_pair_arrives_as_joint_table_margins_and_test(
    mechanism: str, broker: str, topic_prefix: str, tmp_path: Path
) -> None:
    """Standard errors at epsilon 4 and 20,000 reports are .0058 at most: 6 of them.

    A tenth more reports of the bits have an origin that is not listed; `other`, with an error of .0081, has
    them.
    """
    configuration = write(
        tmp_path / "deniable.yaml", broker, topic_prefix, 1, COLLECTION.replace("{{mechanism}}", mechanism)
    )
    create(Cluster(broker), configuration.topics, 1)
    pairs = [
        (carrier, origin)
        for carrier, row in zip(CARRIERS, TRUTH.tolist(), strict=True)
        for origin, clients in zip(ORIGINS, row, strict=True)
        for _ in range(clients)
    ]
    unlisted = [("AA", "LAX")] * 2000 if mechanism == "one-hot-pair" else []  # in none of its pairs
    pairs = unlisted + pairs
    workers = Workers(configuration, tmp_path)
    workers.start()
    try:
        with Producer(producer_config(configuration)) as producer:
            now = time.time()
            producer.report("route", pairs[:-2], None, at=now)
            producer.report("route", pairs[-2], None, at=now)
            producer.record("route", pairs[-1], None, now)
            producer.flush()

        def is_there() -> bool:
            found = newest(configuration)
            return found is not None and found.reports == len(pairs)

        assert wait_until(is_there, 90), workers.describe()
        record = newest(configuration)
    finally:
        workers.stop()
    assert record is not None
    assert (record.mechanism, record.values[-1]) == (mechanism, "(other) / JFK")
    shares = TRUTH / len(pairs)
    assert record.frequency == pytest.approx(shares.ravel().tolist(), abs=0.035)
    assert (record.other.frequency if record.other else 0) == pytest.approx(
        len(unlisted) / len(pairs), abs=0.05
    )
    assert record.pair is not None
    first, second = record.pair.margins
    assert first.frequency == pytest.approx(shares.sum(axis=1).tolist(), abs=0.035)
    assert second.frequency == pytest.approx(shares.sum(axis=0).tolist(), abs=0.035)
    assert record.pair.independence.rejected
    assert msgspec.json.decode(msgspec.json.encode(record), type=EstimateRecord) == record
