"""Appends markers to `reports`: proof that time has passed in a partition in which nothing is reported.

Rule 1: a marker is appended only while a window waits for the partition.
Rule 2: any worker may append one, to a partition of any other: it does what every record does.
Rule 3: only its append time counts, read back from the log in its place. The acknowledgement says that it
need not be appended again, and no more.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import NamedTuple

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage, is_outage
from deniable.protocol.marker import MARKER
from deniable.protocol.topic_names import Topics

RETRY_SECONDS = 1.0
AGAIN_SECONDS = 60.0  # for one that a broker acknowledged and then lost
REQUEST_MILLISECONDS = 10_000
MARKERS = "markers"  # the part of the worker, in an outage
ERRORS = (KafkaError, TimeoutError, OSError, AssertionError)  # aiokafka asserts what a broker can falsify

log = structlog.get_logger()


class _Appended(NamedTuple):
    at: float  # on the monotonic clock
    append_ms: int


class Markers:
    """Markers of all partitions that this worker's estimators wait for.

    Parameters
    ----------
    cluster, topics : of the deployment.
    outage : of the worker.
    """

    def __init__(self, cluster: Cluster, topics: Topics, outage: Outage) -> None:
        self.outage = outage
        self.cluster = cluster
        self.topics = topics
        self._appended: dict[int, _Appended] = {}
        self._waiting: set[tuple[int, bytes]] = set()  # asked for, and not acknowledged
        self._asked: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        self._is_refused = False

    def ask(self, beyond_ms: Mapping[int, int]) -> None:
        """Have a marker appended to each partition, beyond this append time, unix milliseconds.

        Call it again as long as the partition does not show one: this does nothing while one is on its way,
        or was acknowledged.
        """
        if not beyond_ms and not self._waiting:  # what failed is needed no more
            self.outage.answered(MARKERS)
        now = time.monotonic()
        for partition, until_ms in beyond_ms.items():
            if now >= self._due_at(partition, until_ms):
                self.append(partition, MARKER)

    def append(self, partition: int, marker: bytes) -> None:
        """Have this marker appended to a partition, unless it is on its way."""
        if (partition, marker) not in self._waiting:
            self._waiting.add((partition, marker))
            self._asked.put_nowait((partition, marker))

    async def run(self) -> None:
        """Append what is asked for, until cancelled."""
        async with asyncio.TaskGroup() as appending:
            producer = await self._started()
            try:
                while True:
                    appending.create_task(self._append(producer, *await self._asked.get()))
            finally:
                await producer.stop()

    async def _started(self) -> "AIOKafkaProducer[bytes, bytes]":
        self._asked.put_nowait(await self._asked.get())  # most workers of busy topics never need one
        while True:
            producer: AIOKafkaProducer[bytes, bytes] = AIOKafkaProducer(
                **self.cluster.client_settings(), acks="all", request_timeout_ms=REQUEST_MILLISECONDS
            )
            try:
                await producer.start()
                return producer
            except BaseException as error:
                await producer.stop()
                if not isinstance(error, ERRORS):
                    raise
                self._note_refusal(error)
            await asyncio.sleep(RETRY_SECONDS)

    async def _append(
        self, producer: "AIOKafkaProducer[bytes, bytes]", partition: int, marker: bytes
    ) -> None:
        try:
            stored = await producer.send_and_wait(self.topics.reports, marker, partition=partition)
            self._appended[partition] = _Appended(time.monotonic(), stored.timestamp)
            self._note_success()
        except ERRORS as error:
            self._note_refusal(error)
            await asyncio.sleep(RETRY_SECONDS)
            # A leader that was replaced answers with nothing that would make the client ask who leads now.
            producer.client.force_metadata_update()
        finally:
            self._waiting.discard((partition, marker))

    def _due_at(self, partition: int, until_ms: int) -> float:
        former = self._appended.get(partition)
        if former is None:
            return 0.0
        if former.append_ms > until_ms:
            return former.at + AGAIN_SECONDS
        # This machine's clock is ahead of the broker's.
        return former.at + max(RETRY_SECONDS, (until_ms - former.append_ms) / 1000)

    def _note_success(self) -> None:
        self.outage.answered(MARKERS)
        if self._is_refused:
            self._is_refused = False
            log.info("markers are appended again", topic=self.topics.reports)

    def _note_refusal(self, error: BaseException) -> None:
        if is_outage(error):
            self.outage.failed(MARKERS, error)
            return
        if self._is_refused:
            return
        self._is_refused = True
        is_forbidden = isinstance(error, TopicAuthorizationFailedError)
        remedy = "run deniable topics create --acls" if is_forbidden else "tried again until Kafka takes it"
        log.warning(
            "no marker can be appended: windows that wait for an idle partition do not become final",
            topic=self.topics.reports,
            error=repr(error),
            remedy=remedy,
        )
