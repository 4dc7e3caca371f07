"""The end of the log, and how far the group has counted it."""

from kafka import KafkaConsumer, TopicPartition

from deniable.config.file import Configuration


def log_ends(configuration: Configuration) -> dict[int, int]:
    """Return the end of each partition of `reports`."""
    sources = _sources(configuration)
    with KafkaConsumer(bootstrap_servers=configuration.kafka.bootstrap_servers) as consumer:
        return {source.partition: end for source, end in consumer.end_offsets(sources).items()}


def committed(configuration: Configuration) -> dict[int, int]:
    """Return the group's committed offset of each partition; 0 without one."""
    servers, group = configuration.kafka.bootstrap_servers, configuration.topics.group
    with KafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False) as consumer:
        return {source.partition: consumer.committed(source) or 0 for source in _sources(configuration)}


def _sources(configuration: Configuration) -> list[TopicPartition]:
    return [TopicPartition(configuration.topics.reports, p) for p in range(configuration.kafka.partitions)]
