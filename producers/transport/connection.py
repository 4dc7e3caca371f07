"""The Kafka producer that sends packs."""

import os
import selectors
import time
from contextlib import suppress

from kafka import KafkaProducer
from kafka.errors import (
    IllegalStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    MessageSizeTooLargeError,
    NodeNotReadyError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    RecordListTooLargeError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from kafka.net.compat import KafkaNetClient

from deniable.cluster.cluster import Cluster, PlaintextError
from deniable.cluster.connection.causes import refused_login
from deniable.cluster.connection.requests import manager_of
from deniable.cluster.credential_files import SecurityError
from deniable.cluster.existing_topics.of_kafka_python import client_of_existing_topics
from deniable.cluster.logins.tokens import TokenError
from deniable.producers.errors import DeliveryError, HopelessError, MissingTopicError, PartitionsError
from deniable.producers.transport.client_log import CLIENT_ID
from deniable.producers.transport.reachability import explained

METADATA_SECONDS = 10.0
MISSING_SECONDS = 2.0  # brokers may deny a topic that was just created, or while they start
BATCH_BYTES = 131_072
TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


class Connection(KafkaProducer):  # type: ignore[misc] # kafka-python has no types
    """A KafkaProducer that can be dropped while no broker answers, and that a forked child ignores.

    Attributes
    ----------
    manager : of its connections, to send other requests over them.
    metadata : of the cluster, as brokers last answered.
    """

    def __init__(self, **configs: object) -> None:
        self._process = os.getpid()
        clients: list[KafkaNetClient] = []
        refusals: list[KafkaError | TokenError] = []

        def remembered(**settings: object) -> KafkaNetClient:
            client = client_of_existing_topics(**settings)
            clients.append(client)
            _collect_refusals(client, refusals)
            return client

        try:
            super().__init__(kafka_client=remembered, **configs)
        except BaseException as error:
            for client in clients:  # else its sockets stay open until they are collected
                client.close()
            if refusals and isinstance(error, KafkaTimeoutError):  # it retried until then and gives no reason
                raise refusals[0] from None
            raise
        # At the interpreter's exit it would be closed under a producer that sends its last packs then.
        self._unregister_cleanup()
        self.manager = manager_of(clients[0])
        self.metadata = clients[0].cluster
        for client in clients:  # otherwise each later request would add to the list
            del client._manager.get_connection

    def flush(self, timeout: float | None = None) -> None:
        """Wait for sent packs; no error on timeout, since `close` would then not close."""
        with suppress(KafkaTimeoutError):
            super().flush(timeout)

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:
        """Close it, except in a forked child, whose sockets are the parent's."""
        if os.getpid() == self._process:
            super().close(timeout, null_logger)


def connect(
    cluster: Cluster,
    topic: str,
    partitions: int,
    connect_seconds: float,
) -> Connection:
    """Connect to Kafka: acks=all, idempotent, uncompressed.

    Parameters
    ----------
    cluster : to connect to.
    topic : of the packs.
    partitions : that it must have: a pack's partition is computed from their number.
    connect_seconds : how long to wait for a broker.

    Raises
    ------
    DeliveryError if no broker answers or the topic cannot be found in time; MissingTopicError if brokers
    answer that it does not exist; PartitionsError if it has another number of partitions; HopelessError if
    reports would go to another machine in clear.
    """
    try:
        kafka = Connection(
            **cluster.client_settings(),
            bootstrap_timeout_ms=round(connect_seconds * 1000),
            client_id=CLIENT_ID,
            acks="all",
            enable_idempotence=True,
            compression_type=None,
            batch_size=BATCH_BYTES,
            max_block_ms=round(METADATA_SECONDS * 1000),
            # A forked child shares an epoll object, and its cleanup would remove our sockets from it.
            selector=selectors.PollSelector,
        )
    except SecurityError as error:
        raise DeliveryError(f"connections to Kafka cannot be secured: {error}") from None
    except SaslAuthenticationFailedError:
        why = refused_login(cluster.security)
        raise DeliveryError(f"Kafka at {cluster.bootstrap_servers}: authentication failed, {why}") from None
    except TokenError as error:
        raise DeliveryError(f"Kafka at {cluster.bootstrap_servers}: {error}") from None
    except KafkaError as error:
        what = f"cannot be used: {cause(error)}"
        raise DeliveryError(explained(cluster, what)) from None
    try:
        _check_advertised(kafka, cluster)
        _check_topic(kafka, topic, partitions)
    except DeliveryError:
        kafka.close(timeout=0)
        raise
    return kafka


def _collect_refusals(client: KafkaNetClient, refusals: list[KafkaError | TokenError]) -> None:
    """Collect why brokers close connections: kafka-python only logs it while it looks for a first broker.

    The answer to a failed login is often lost, since the broker then closes the connection at once.
    """
    get_connection = client._manager.get_connection

    def note(error: BaseException) -> None:
        if isinstance(error, SaslAuthenticationFailedError | TokenError):
            refusals.insert(0, error)
        elif isinstance(error, KafkaConnectionError) and "socket disconnected" in str(error):
            refusals.append(error)

    def watched(*arguments: object, **options: object) -> object:
        found = get_connection(*arguments, **options)
        found.close_future.add_errback(note)
        return found

    client._manager.get_connection = watched


def cause(error: BaseException) -> str:
    """Explain an error of Kafka's client; return its type if unknown."""
    match error:
        case SaslAuthenticationFailedError():
            return "authentication failed; deniable doctor says why"
        case KafkaConnectionError() if "socket disconnected" in str(error):
            return "it closes the connection before the login; deniable doctor says why"
        case KafkaTimeoutError():
            return "no answer in time"
        case KafkaConnectionError() | NodeNotReadyError():
            return "the connection was lost"
        case IllegalStateError():
            return "the connection was closed"
        case NotEnoughReplicasError() | NotEnoughReplicasAfterAppendError():
            return "too few replicas are in sync"
        case LeaderNotAvailableError() | NotLeaderForPartitionError():
            return "its partition has no leader"
        case UnknownTopicOrPartitionError():
            return "the topic was deleted"
        case MessageSizeTooLargeError() | RecordListTooLargeError():
            return "it is too large"
        case TopicAuthorizationFailedError():
            return "not authorized, a producer needs Write on the topic"
    return type(error).__name__


def _check_advertised(kafka: Connection, cluster: Cluster) -> None:
    try:
        cluster.check_advertised(broker.host for broker in kafka.metadata.brokers())
    except PlaintextError as error:
        raise HopelessError(str(error)) from None


def _check_topic(kafka: Connection, topic: str, partitions: int) -> None:
    try:
        found = len(_partitions(kafka, topic))
    except KafkaError as error:
        raise DeliveryError(f"topic {topic} cannot be found: {cause(error)}") from None
    if found != partitions:
        raise PartitionsError(f"topic {topic} must have {partitions} partitions, got {found}")


def _partitions(kafka: Connection, topic: str) -> set[int]:
    """Return the partitions of a topic; MissingTopicError if brokers keep answering that there is none."""
    began = time.monotonic()
    try:
        found: set[int] = kafka._wait_on_metadata(topic, 1000 * MISSING_SECONDS)
    except KafkaTimeoutError:
        if kafka.metadata._last_successful_refresh_ms > 1000 * began:
            raise MissingTopicError(topic) from None
        found = kafka.partitions_for(topic)
    return found
