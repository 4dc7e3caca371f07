"""A producer's configuration from the collection file."""

from collections.abc import Sequence
from pathlib import Path

from deniable.cluster.security import Security
from deniable.config.file import Configuration
from deniable.estimators.collection import Collection
from deniable.producers.config import ProducerConfig


def producer_config(
    configuration: Configuration,
    collections: Sequence[Collection] | None = None,
    *,
    data_dir: Path | None = None,
    block_milliseconds: float | None = None,
    connects: bool = True,
) -> ProducerConfig:
    """Build a Producer's configuration; relative paths start from the collection file's folder.

    Parameters
    ----------
    configuration : of the file.
    collections : those to report to; all if None.
    data_dir, block_milliseconds : override the file, unless None.
    connects : False for commands that only read the data folder and need no credentials.

    Raises
    ------
    CollectionFileError if it connects to Kafka and user name or password is missing.
    """
    home, settings, edge = configuration.path.parent, configuration.producer, configuration.edge_address
    needs_kafka = connects and edge is None
    wanted = configuration.collections if collections is None else collections
    return ProducerConfig(
        allowances=tuple(each for each in configuration.allowances if each.collection in wanted),
        others=tuple(each for each in configuration.collections if each not in wanted),
        bootstrap_servers=configuration.kafka.bootstrap_servers,
        edge=edge,
        security=configuration.cluster.security if needs_kafka else Security(),
        allow_plaintext=configuration.kafka.allow_plaintext,
        topic=configuration.topics.reports,
        collections_topic=configuration.topics.collections,
        partitions=configuration.kafka.partitions,
        data_dir=data_dir or home / settings.data_dir,
        secret_file=home / settings.secret_file if settings.secret_file else None,
        budget_store=settings.budget_store.database() if settings.budget_store else None,
        pack_reports=settings.pack_reports,
        pack_seconds=settings.pack_seconds,
        outbox_bytes=settings.outbox_bytes,
        block_milliseconds=settings.block_milliseconds if block_milliseconds is None else block_milliseconds,
    )
