"""The Kafka producer that packs leave through."""

import logging

from kafka import KafkaProducer
from kafka.errors import KafkaError

METADATA_MILLISECONDS = 10_000
BATCH_BYTES = 131_072


class DeliveryError(RuntimeError):
    """The broker cannot be used, or did not take every report."""


def connect(bootstrap_servers: str, topic: str, partitions: int, connect_seconds: float) -> KafkaProducer:
    """Connect to Kafka: acks=all, idempotent, uncompressed.

    Parameters
    ----------
    bootstrap_servers : "host:port", or several with commas.
    topic : that packs will go to.
    partitions : how many it must have. A pack's partition is computed from it, so a wrong one is refused.
    connect_seconds : how long to wait for a broker.

    Raises
    ------
    DeliveryError if no broker answers in time, or the topic is absent or has another number of partitions.
    """
    # At level DEBUG this logger writes the payload of every record.
    logging.getLogger("kafka.producer.kafka").setLevel(logging.INFO)
    try:
        kafka = KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            bootstrap_timeout_ms=round(connect_seconds * 1000),
            client_id="deniable-producer",
            acks="all",
            enable_idempotence=True,
            compression_type=None,
            batch_size=BATCH_BYTES,
            max_block_ms=METADATA_MILLISECONDS,
            allow_auto_create_topics=False,
        )
    except KafkaError as error:
        raise DeliveryError(
            f"no Kafka broker answers at {bootstrap_servers}: {type(error).__name__}"
        ) from None
    try:
        _check_topic(kafka, topic, partitions)
    except DeliveryError:
        kafka.close(timeout=0)
        raise
    return kafka


def _check_topic(kafka: KafkaProducer, topic: str, partitions: int) -> None:
    try:
        found = len(kafka.partitions_for(topic))
    except KafkaError as error:
        raise DeliveryError(f"topic {topic} cannot be found: {type(error).__name__}") from None
    if found != partitions:
        raise DeliveryError(f"topic {topic} must have {partitions} partitions, got {found}")
