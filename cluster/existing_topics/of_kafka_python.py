"""kafka-python's clients.

Rule: kafka-python 3.0 takes `allow_auto_create_topics`, but does not pass it on to what asks about topics.
"""

from kafka.net.compat import KafkaNetClient


def client_of_existing_topics(**settings: object) -> KafkaNetClient:
    """Create the client within a producer or consumer, as its setting `kafka_client`; it creates no topic."""
    client = KafkaNetClient(**settings)
    client.cluster.config["allow_auto_create_topics"] = False
    return client
