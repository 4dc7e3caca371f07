"""Compare a collection file with what the workers publish in the topic `collections`."""

from collections.abc import Sequence

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.requests import manager_of
from deniable.cluster.reading.publication_reader import PublicationReader, UnreadableError
from deniable.estimators.collection import Collection
from deniable.producers.transport.agreement import Disagreement, disagreements
from deniable.protocol.topic_names import Topics


def compared(
    cluster: Cluster, topics: Topics, collections: Sequence[Collection]
) -> tuple[list[Disagreement], set[str]]:
    """Compare collections with the workers'.

    Parameters
    ----------
    cluster, topics : of the deployment.
    collections : of the collection file, or those that are to be sent.

    Returns
    -------
    Each collection whose reports the workers reject, and the names of those that they publish.

    Raises
    ------
    UnreadableError if Kafka does not answer, or the topic is absent or may not be read.
    """
    try:
        admin = KafkaAdminClient(**cluster.client_settings())
    except KafkaError as error:
        raise UnreadableError(f"Kafka does not answer: {type(error).__name__}") from None
    try:
        published = PublicationReader(topics.collections).read(manager_of(admin))
    finally:
        admin.close()
    return list(disagreements(collections, published).values()), set(published)
