"""What workers and a replay need of the collection file."""

from aggregator.owner import Deployment
from deploy.collection_file import Configuration


def deployment_of(configuration: Configuration) -> Deployment:
    """Broker, topics and collections."""
    kafka = configuration.kafka
    return Deployment(kafka.bootstrap_servers, configuration.topics, configuration.by_fingerprint())
