"""Publish what the workers count in the topic `collections`, where producers compare it with their files.

Rule: exactness never depends on this topic. A worker that cannot read or write it counts on, and logs why
only if a topic or a permission is missing: an outage is logged by what counts.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError
from kafka import KafkaAdminClient
from kafka.errors import KafkaError as PlainKafkaError

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.requests import manager_of
from deniable.cluster.reading.publication_reader import LacksError, PublicationReader, UnreadableError
from deniable.estimators.collection import Collection
from deniable.protocol.publication import PARTITION, Publication, encode_publication, publication_of

PAUSE_SECONDS = 60.0  # between two comparisons of the topic with the collection file
WAIT_SECONDS = 1.0  # between two questions whether the worker counts, and whether an outage is over
WRITE_SECONDS = 20.0
BOOTSTRAP_MILLISECONDS = 3000

log = structlog.get_logger()


def changes(own: Mapping[str, Publication], published: Mapping[str, Publication]) -> dict[str, bytes | None]:
    """Return the records to write: those of `own` that are missing or differ, deletions of those it lacks.

    Parameters
    ----------
    own : of this worker's collection file, by name.
    published : the topic's present records.

    Returns
    -------
    Values by name, None to delete. Empty if any record is of a newer file: its workers publish it.
    """
    revision = max((each.revision for each in own.values()), default=0)
    if any(each.revision > revision for each in published.values()):
        return {}
    missing = {name: encode_publication(each)[1] for name, each in own.items() if published.get(name) != each}
    return missing | dict.fromkeys(sorted(published.keys() - own.keys()))


class CollectionPublisher:
    """Publishes the collections of one worker's file, once the worker counts with it.

    Parameters
    ----------
    cluster : which Kafka.
    topic : name of the topic `collections`.
    collections, revision : of the collection file.
    """

    def __init__(
        self, cluster: Cluster, topic: str, collections: Iterable[Collection], revision: int
    ) -> None:
        listed = list(collections)
        self._cluster = cluster
        self._topic = topic
        self._own = {each.name: publication_of(each, revision, len(listed)) for each in listed}
        self._trouble = ""
        self._lacks = False

    async def run(self, is_counting: Callable[[], bool], pause_seconds: float = PAUSE_SECONDS) -> None:
        """Publish what is missing, then look again every minute; does not return.

        Parameters
        ----------
        is_counting : whether a ledger has accepted this collection file.
        pause_seconds : between two looks.
        """
        while True:
            is_over = False
            if is_counting():
                trouble = await self.publish()
                is_over = not trouble or self._lacks
                if is_over:
                    self._note(trouble)
            await asyncio.sleep(pause_seconds if is_over else WAIT_SECONDS)

    async def publish(self) -> str:
        """Write what the topic lacks. Return why that is impossible; empty if it is done."""
        self._lacks = False  # topic or permission
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                published = await asyncio.to_thread(self._published)
                if changed := changes(self._own, published):
                    await self._write(changed)
        except UnreadableError as error:
            self._lacks = isinstance(error, LacksError)
            return str(error)
        except TopicAuthorizationFailedError:
            self._lacks = True
            return f"no permission: Write topic {self._topic}"
        except (KafkaError, PlainKafkaError, OSError, TimeoutError) as error:
            return f"Kafka does not answer: {type(error).__name__}"
        return ""

    def _published(self) -> dict[str, Publication]:
        # Brief: a worker that stops waits for this thread.
        admin = KafkaAdminClient(
            **self._cluster.client_settings(), bootstrap_timeout_ms=BOOTSTRAP_MILLISECONDS
        )
        try:
            return PublicationReader(self._topic).read(manager_of(admin))
        finally:
            admin.close()

    async def _write(self, changed: Mapping[str, bytes | None]) -> None:
        producer = AIOKafkaProducer(**self._cluster.client_settings(), acks="all")
        try:
            await producer.start()
            for name, value in changed.items():
                await producer.send_and_wait(self._topic, value, key=name.encode(), partition=PARTITION)
        finally:
            await producer.stop()

    def _note(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            log.warning(
                "producers cannot compare their parameters with the workers'; counting goes on",
                reason=trouble,
                remedy="run deniable topics create, with --acls if Kafka has permissions",
            )
        self._trouble = trouble
