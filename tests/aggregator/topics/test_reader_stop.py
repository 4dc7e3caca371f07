"""A finished reader stops at once, also over TLS: a replay has dozens of them."""

import asyncio
import time

import pytest
from kafka import KafkaAdminClient

from aggregator.topics.partition_reader import RowReader
from producers.transport.cluster import Cluster
from producers.transport.security import Security
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker

TRIALS = 5


@pytest.mark.broker
def test_reader_over_tls_stops_at_once(secured_broker: SecuredBroker, topic_prefix: str) -> None:
    """The fastest of several trials; a slow stop takes half a second, the broker's wait for more records."""
    topic = f"{topic_prefix}state"
    with KafkaAdminClient(**secured_broker.admin_settings()) as client:
        client.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    issued = secured_broker.client_certificate(ADMIN)
    security = Security(
        ca_file=secured_broker.authority.certificate_file,
        certificate_file=issued.certificate_file,
        key_file=issued.key_file,
    )

    async def stop_seconds() -> float:
        async with RowReader(Cluster(secured_broker.ssl_servers, security), topic, 0) as reader:
            assert await reader.poll(100) == []
            began = time.monotonic()
        return time.monotonic() - began

    assert min(asyncio.run(stop_seconds()) for _ in range(TRIALS)) < 0.25
