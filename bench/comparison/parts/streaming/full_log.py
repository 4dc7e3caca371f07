"""A log of random packs that lies in Kafka before anybody reads it, and may be counted again and again."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import KafkaError

from bench.aggregator.deployments import SEND_SECONDS, configure, payload_of, send
from deploy.cluster.connection.coordinator import patiently
from deploy.cluster.connection.probe import UnreachableError
from deploy.cluster.topics.plan import plan
from deploy.cluster.topics.setup import TopicSetupError, create
from deploy.config.file import Configuration
from producers.transport.connection import BATCH_BYTES

LEAVE_SECONDS = 30.0
BROKER_GONE = (KafkaError, TopicSetupError, UnreachableError)  # what its clients raise then


class GroupError(RuntimeError):
    """A group cannot be forgotten; the message says what the broker answers."""


@dataclass(frozen=True)
class FullLog:
    """So many packs of so many reports of RAPPOR of 128 bits, in 4 partitions and 64 cohorts.

    Parameters
    ----------
    configuration : of the deployment whose `reports` it is.
    packs : in all partitions together.
    reports : of each pack.
    payload : of every pack.
    """

    configuration: Configuration
    packs: int
    reports: int
    payload: bytes

    def counts(self) -> dict[int, list[int]]:
        """What must be counted: reports with each bit set, lowest bit first, by cohort."""
        (collection,) = self.configuration.collections
        rows = np.frombuffer(self.payload, np.uint8).reshape(self.reports, -1)
        of_a_pack = np.unpackbits(rows, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
        packs = np.bincount(np.arange(self.packs) % collection.cohorts)
        return {cohort: (of_a_pack * number).tolist() for cohort, number in enumerate(packs.tolist())}


def fill(folder: Path, servers: str, name: str, packs: int, reports: int) -> FullLog:
    """Make a deployment, and send packs as our producers do: acks=all, batches of their size."""
    configuration = configure(folder, servers, name, 1)
    (collection,) = configuration.collections
    payload = payload_of(collection, reports)
    window_start = collection.window_start(time.time())  # one, also where a day ends meanwhile
    with KafkaProducer(bootstrap_servers=servers, acks="all", linger_ms=20, batch_size=BATCH_BYTES) as kafka:
        for number in range(packs):
            turn, cohort = divmod(number, collection.cohorts)
            home = turn % configuration.kafka.partitions  # equal ones: who reads has all of them to the end
            send(
                kafka,
                configuration,
                collection,
                payload,
                reports,
                cohort=cohort,
                window_start=window_start,
                home=home,
            )
        kafka.flush(timeout=SEND_SECONDS)
    return FullLog(configuration, packs, reports, payload)


def forget_counts(log: FullLog) -> None:
    """Make the deployment as new, but for the log: topics of what was counted, and the group's positions.

    Raises
    ------
    GroupError if workers have not left after 30 s.
    """
    configuration = log.configuration
    topics = configuration.topics
    with KafkaAdminClient(bootstrap_servers=configuration.kafka.bootstrap_servers) as admin:
        if not _delete_group(admin, topics.group):
            return  # nobody has counted
        admin.delete_topics([each.name for each in plan(topics) if each.name != topics.reports])
    create(configuration.cluster, topics, 1)


def _delete_group(admin: KafkaAdminClient, group: str) -> bool:
    """Once all its members have left, or are taken for dead; False where there is none.

    Raises
    ------
    GroupError if they are still there after 30 s.
    """
    deadline = time.monotonic() + LEAVE_SECONDS
    while (said := patiently(lambda: admin.delete_groups([group]))[group]) != "OK":
        if said == "GroupIdNotFoundError":
            return False
        if time.monotonic() > deadline:
            raise GroupError(f"the group {group} cannot be deleted: {said}")
        time.sleep(0.2)
    return True


def drop(log: FullLog) -> None:
    """Delete its topics, and what peers made for it, so that the next log finds room on the disk."""
    with KafkaAdminClient(bootstrap_servers=log.configuration.kafka.bootstrap_servers) as admin:
        prefix = log.configuration.kafka.topic_prefix
        admin.delete_topics([name for name in admin.list_topics() if prefix in name])
