"""The end of the log, and how far the group has counted it."""

from kafka import KafkaConsumer, TopicPartition

from deniable.config.file import Configuration
from tests.chaos.load.packs import MARKER

MOST_MARKERS = 500  # one behind the other


def log_ends(configuration: Configuration) -> dict[int, int]:
    """Return the offset after the last record of each partition of `reports` that is not a marker.

    Workers append markers while windows wait for them, so also after the last pack.
    """
    sources = _sources(configuration)
    with KafkaConsumer(bootstrap_servers=configuration.kafka.bootstrap_servers) as consumer:
        consumer.assign(sources)
        found = consumer.beginning_offsets(sources)
        last = consumer.end_offsets(sources)
        for source in sources:
            consumer.seek(source, max(found[source], last[source] - MOST_MARKERS))
        while any(consumer.position(source) < last[source] for source in sources):
            for source, records in consumer.poll(100).items():
                packs = [each.offset for each in records if not (each.value or b"").startswith(MARKER)]
                found[source] = max(found[source], *(offset + 1 for offset in packs[-1:]), 0)
    return {source.partition: found[source] for source in sources}


def committed(configuration: Configuration) -> dict[int, int]:
    """Return the group's committed offset of each partition; 0 without one."""
    servers, group = configuration.kafka.bootstrap_servers, configuration.topics.group
    with KafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False) as consumer:
        return {source.partition: consumer.committed(source) or 0 for source in _sources(configuration)}


def _sources(configuration: Configuration) -> list[TopicPartition]:
    return [TopicPartition(configuration.topics.reports, p) for p in range(configuration.kafka.partitions)]
