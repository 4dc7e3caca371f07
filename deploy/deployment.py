"""What workers, a replay and maintenance need of the collection file and of the broker."""

from aggregator.deployment import Deployment
from deploy import topic_setup
from deploy.collection_file import Configuration


def deployment_of(configuration: Configuration) -> Deployment:
    """Check the topics; brokers, topics, the log's identity, collections.

    Raises
    ------
    TopicError if the topics cannot be used.
    """
    servers, topics = configuration.kafka.bootstrap_servers, configuration.topics
    log = topic_setup.require(servers, topics)
    return Deployment(servers, topics, log, configuration.by_fingerprint(), configuration.revision)
