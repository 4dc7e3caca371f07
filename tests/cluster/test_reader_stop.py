"""A finished reader stops at once, also over TLS: a replay has dozens of them."""

import asyncio
import time

import pytest
from kafka import KafkaAdminClient

from deniable.cluster.cluster import Cluster
from deniable.cluster.reading import partition_reader
from deniable.cluster.reading.partition_reader import RowReader
from deniable.cluster.security import Security
from tests.support.brokers.secured.broker import ADMIN, SecuredBroker


@pytest.mark.broker
def test_reader_over_tls_stops_at_once(
    secured_broker: SecuredBroker, topic_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks the broker to wait briefly for more records. One that follows would wait for a minute here."""
    topic = f"{topic_prefix}state"
    with KafkaAdminClient(**secured_broker.admin_settings()) as client:
        client.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
    issued = secured_broker.client_certificate(ADMIN)
    security = Security(
        ca_file=secured_broker.authority.certificate_file,
        certificate_file=issued.certificate_file,
        key_file=issued.key_file,
    )

    monkeypatch.setattr(partition_reader, "POLL_MILLISECONDS", 60_000)
    monkeypatch.setattr(partition_reader, "REQUEST_MILLISECONDS", 120_000)

    async def stop_seconds() -> float:
        async with RowReader(Cluster(secured_broker.ssl_servers, security), topic, 0) as reader:
            assert await reader.poll(100) == []
            began = time.monotonic()
        return time.monotonic() - began

    assert asyncio.run(stop_seconds()) < 30
