"""A prefilled Kafka log of random packs, which can be counted repeatedly."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from bench.aggregator.deployments import configure
from bench.aggregator.deployments import fill as fill_topic
from deniable.cluster.connection.coordinator import patiently
from deniable.cluster.connection.probe import UnreachableError
from deniable.cluster.topics.checks import TopicSetupError
from deniable.cluster.topics.plan import plan
from deniable.config.file import Configuration
from deniable.deploy.cluster.topics.setup import create

LEAVE_SECONDS = 30.0
BROKER_GONE = (KafkaError, TopicSetupError, UnreachableError)  # raised by clients of a lost broker


class GroupError(RuntimeError):
    """A consumer group cannot be deleted; the message has the broker's answer."""


@dataclass(frozen=True)
class FullLog:
    """Packs of RAPPOR reports with 128 bits, in 4 partitions and 64 cohorts.

    Parameters
    ----------
    configuration : of the deployment, whose `reports` topic holds the log.
    packs : number of packs in all partitions together.
    reports : reports per pack.
    payload : bytes of every pack.
    """

    configuration: Configuration
    packs: int
    reports: int
    payload: bytes

    def counts(self) -> dict[int, list[int]]:
        """Return the expected counts by cohort: reports with each bit set, lowest bit first."""
        (collection,) = self.configuration.collections
        rows = np.frombuffer(self.payload, np.uint8).reshape(self.reports, -1)
        of_a_pack = np.unpackbits(rows, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
        packs = np.bincount(np.arange(self.packs) % collection.cohorts)
        return {cohort: (of_a_pack * number).tolist() for cohort, number in enumerate(packs.tolist())}


def fill(folder: Path, servers: str, name: str, packs: int, reports: int, collections: int = 1) -> FullLog:
    """Create a deployment and append packs of a single window, even across midnight."""
    configuration = configure(folder, servers, name, collections)
    payload = fill_topic(configuration, packs, reports)
    return FullLog(configuration, packs, reports, payload)


def forget_counts(log: FullLog) -> None:
    """Reset the deployment except for the log: recreate all other topics and delete the group's offsets.

    Raises
    ------
    GroupError if workers have not left after 30 s.
    """
    configuration = log.configuration
    topics = configuration.topics
    with KafkaAdminClient(bootstrap_servers=configuration.kafka.bootstrap_servers) as admin:
        if not _delete_group(admin, topics.group):
            return  # the log was not counted yet
        admin.delete_topics([each.name for each in plan(topics) if each.name != topics.reports])
    create(configuration.cluster, topics, 1)


def _delete_group(admin: KafkaAdminClient, group: str) -> bool:
    """Delete a group once its members have left or expired; return False if it does not exist.

    Raises
    ------
    GroupError if members are still there after 30 s.
    """
    deadline = time.monotonic() + LEAVE_SECONDS
    while (answer := patiently(lambda: admin.delete_groups([group]))[group]) != "OK":
        if answer == "GroupIdNotFoundError":
            return False
        if time.monotonic() > deadline:
            raise GroupError(f"the group {group} cannot be deleted: {answer}")
        time.sleep(0.2)
    return True


def drop(log: FullLog) -> None:
    """Delete the log's topics and those of peers, to free the disk for the next log."""
    with KafkaAdminClient(bootstrap_servers=log.configuration.kafka.bootstrap_servers) as admin:
        prefix = log.configuration.kafka.topic_prefix
        admin.delete_topics([name for name in admin.list_topics() if prefix in name])
