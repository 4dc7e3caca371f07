"""A broker with a lowered record limit: packs that are too large wait and delay no others."""

import re
from dataclasses import replace

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ACLOperation, ResourcePattern, ResourceType

from deniable.cluster.security import Security
from deniable.config.settings.allowance import Allowance
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError
from deniable.producers.producer import Producer
from deniable.protocol.wire import decode
from tests.support.producers.questions import CARRIER
from tests.support.producers.topics import change, make_topic, read

LARGE, SMALL = 2000, 5


def limit(broker, topic, size):
    """Set it. A broker shows a change before its log applies it, but a second one only after that."""
    with KafkaAdminClient(**broker) as admin:
        for delay in ("60001", "60002"):
            change(admin, topic, {"max.message.bytes": str(size), "file.delete.delay.ms": delay})


@pytest.mark.broker
def test_too_large_pack_waits_for_a_greater_limit(secured_broker, topic_prefix, tmp_path, caplog):
    """On a broker with TLS and SCRAM, as a user who may only write to the topic.

    The first two packs form one batch, because the topic has one partition.
    """
    broker, user = secured_broker.admin_settings(), f"{topic_prefix}producer"
    password = secured_broker.add_user(user)
    with make_topic(broker, f"{topic_prefix}reports", 1) as topic:
        secured_broker.allow(user, ResourcePattern(ResourceType.TOPIC, topic), ACLOperation.WRITE)
        config = ProducerConfig(
            allowances=(Allowance(replace(CARRIER, grace_seconds=10**10), None),),
            bootstrap_servers=secured_broker.sasl_servers,
            security=Security(
                ca_file=secured_broker.authority.certificate_file, username=user, password=password
            ),
            topic=topic,
            partitions=1,
            data_dir=tmp_path,
            pack_reports=LARGE,
            block_milliseconds=60_000,
        )
        limit(broker, topic, 1000)
        producer = Producer(config)
        why = (
            r"^pack 1 cannot be sent: the broker accepts no record of 2052 bytes; set max\.message\.bytes of "
        )
        producer.report("carrier", ["AA"] * LARGE, None)
        for count in (1, 2, 3):
            producer.report("carrier", ["AA"] * SMALL, None)
            with pytest.raises(DeliveryError, match=why):
                producer.flush(20)
            assert producer.counters().acknowledged == {"carrier": count * SMALL}
            assert (producer.counters().unsendable, producer.counters().backlog.packs) == (1, 1)
        with pytest.raises(DeliveryError, match=why):
            producer.close()
        assert len([each for each in caplog.messages if re.match(why, each)]) == 1
        limit(broker, topic, 1_048_588)
        Producer(config).close()
        packs = [decode(record.value) for record in read(broker, topic)]
        assert sorted(pack.reports for pack in packs) == [SMALL, SMALL, SMALL, LARGE]
