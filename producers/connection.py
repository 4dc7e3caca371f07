"""The Kafka producer that packs leave through."""

import logging
import os
import selectors
from contextlib import suppress

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

METADATA_MILLISECONDS = 10_000
BATCH_BYTES = 131_072


class DeliveryError(RuntimeError):
    """The broker cannot be used, or did not take every report."""


class HopelessError(DeliveryError):
    """Waiting will not help."""


class TopicError(HopelessError):
    """The topic has another number of partitions."""


class Connection(KafkaProducer):  # type: ignore[misc] # kafka-python has no types
    """A KafkaProducer that can be dropped while no broker answers, and that a forked child leaves alone."""

    def __init__(self, **configs: object) -> None:
        self._process = os.getpid()
        super().__init__(**configs)

    def flush(self, timeout: float | None = None) -> None:
        """Wait for what was sent; no error when it takes longer, since `close` would not close then."""
        with suppress(KafkaTimeoutError):
            super().flush(timeout)

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """Close it, unless it is the copy that a forked child has, whose sockets are the parent's."""
        if os.getpid() == self._process:
            super().close(timeout, null_logger)


def connect(bootstrap_servers: str, topic: str, partitions: int, connect_seconds: float) -> Connection:
    """Connect to Kafka: acks=all, idempotent, uncompressed.

    Parameters
    ----------
    bootstrap_servers : "host:port", or several with commas.
    topic : that packs will go to.
    partitions : how many it must have. A pack's partition is computed from it, so a wrong one is refused.
    connect_seconds : how long to wait for a broker.

    Raises
    ------
    DeliveryError if no broker answers or the topic cannot be found in time; TopicError if it has another
    number of partitions.
    """
    # At level DEBUG these loggers write the payload of every record.
    for name in ("kafka.producer", "kafka.net", "kafka.protocol"):
        logging.getLogger(name).setLevel(logging.INFO)
    try:
        kafka = Connection(
            bootstrap_servers=bootstrap_servers,
            bootstrap_timeout_ms=round(connect_seconds * 1000),
            client_id="deniable-producer",
            acks="all",
            enable_idempotence=True,
            compression_type=None,
            batch_size=BATCH_BYTES,
            max_block_ms=METADATA_MILLISECONDS,
            # An epoll object is shared with a forked child, where cleaning up takes our sockets out of it.
            selector=selectors.PollSelector,
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


def _check_topic(kafka: Connection, topic: str, partitions: int) -> None:
    try:
        found = len(kafka.partitions_for(topic))
    except KafkaError as error:
        raise DeliveryError(f"topic {topic} cannot be found: {type(error).__name__}") from None
    if found != partitions:
        raise TopicError(f"topic {topic} must have {partitions} partitions, got {found}")
