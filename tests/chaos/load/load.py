"""The load of a run: packs at a steady rate, some sent twice, some malformed."""

import heapq
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaProducer

from deniable.config.file import Configuration
from deniable.estimators.collection import Collection
from tests.chaos.load.packs import SPOILED, Draft, PackMaker, oversized

TICK_SECONDS = 0.02
RESENT_SHARE = 0.1
LATER_SECONDS = 20.0  # after which a third of the duplicates is sent
OVERSIZED_SHARE = 0.0002
LONG_WINDOW_SECONDS = 600  # a pack for such a window is in time for the whole run
FLUSH_SECONDS = 120.0
DELIVERY_MILLISECONDS = 600_000  # a broker may be away for minutes


class Load(threading.Thread):
    """A producer that sends until `stopped`, then sends pending duplicates and waits for acknowledgements.

    Parameters
    ----------
    configuration : collections and brokers.
    packs_per_second : without duplicates.
    malformed : share of malformed packs, in [0, 1].
    seed : of all choices, including ids of packs.
    servers : to begin with; by default those of the configuration.
    linger_milliseconds : in which packs are collected for a request.
    """

    def __init__(
        self,
        configuration: Configuration,
        packs_per_second: int,
        malformed: float,
        seed: int,
        servers: str = "",
        linger_milliseconds: int = 10,
    ) -> None:
        super().__init__(daemon=True)
        self.configuration = configuration
        self.packs_per_second = packs_per_second
        self.malformed = malformed
        self.linger_milliseconds = linger_milliseconds
        self.servers = servers or configuration.kafka.bootstrap_servers
        self.chance = random.Random(seed)
        self.makers = [PackMaker(collection, self.chance) for collection in configuration.collections]
        self.stopped = threading.Event()
        self.acknowledged: set[bytes] = set()  # ids of valid packs for long windows
        self.appended: set[bytes] = set()  # ids of all valid packs that were acknowledged
        self.sent = 0
        self.seconds = 0.0
        self.error: BaseException | None = None
        self._later: list[tuple[float, int, Draft]] = []

    def add(self, collection: Collection) -> None:
        """From now on send packs of another collection, too."""
        self.makers = [*self.makers, PackMaker(collection, self.chance)]

    def remove(self, collection: Collection) -> None:
        """Send no new packs of a collection; pending duplicates still follow."""
        self.makers = [maker for maker in self.makers if maker.collection is not collection]

    def run(self) -> None:
        try:
            kafka = KafkaProducer(
                bootstrap_servers=self.servers,
                acks="all",
                enable_idempotence=True,
                linger_ms=self.linger_milliseconds,
                delivery_timeout_ms=DELIVERY_MILLISECONDS,
            )
            try:
                self._send_steadily(kafka)
                for _, _, draft in self._later:
                    self._send(kafka, draft)
                kafka.flush(timeout=FLUSH_SECONDS)
            finally:
                kafka.close(timeout=5)
        except BaseException as error:
            self.error = error
            raise

    def _send_steadily(self, kafka: KafkaProducer) -> None:
        started, sent = time.monotonic(), 0
        while not self.stopped.wait(TICK_SECONDS):
            self.seconds = time.monotonic() - started
            due = int(self.seconds * self.packs_per_second)
            # After a pause of the whole machine, do not catch up: keep the rate.
            sent = max(sent, due - self.packs_per_second)
            for _ in range(due - sent):
                self._send_next(kafka)
            sent = due
            while self._later and self._later[0][0] <= time.monotonic():
                self._send(kafka, heapq.heappop(self._later)[2])

    def _send_next(self, kafka: KafkaProducer) -> None:
        if self.malformed and self.chance.random() < self.malformed:
            self._send_spoiled(kafka)
            return
        draft = self.chance.choice(self.makers).draft()
        self._send(kafka, draft)
        if self.chance.random() < RESENT_SHARE:
            if self.chance.randrange(3):
                self._send(kafka, draft)
            else:
                heapq.heappush(self._later, (time.monotonic() + LATER_SECONDS, self.sent, draft))

    def _send(self, kafka: KafkaProducer, draft: Draft) -> None:
        future = kafka.send(self.configuration.topics.reports, draft.encode(), partition=self._home(draft))
        future.add_callback(self._note(draft.pack_id, self.appended))
        if any(
            maker.collection.fingerprint == draft.fingerprint
            and maker.collection.window_seconds >= LONG_WINDOW_SECONDS
            for maker in self.makers
        ):
            future.add_callback(self._note(draft.pack_id, self.acknowledged))
        self.sent += 1

    def _note(self, pack_id: bytes, ids: set[bytes]) -> Callable[[Any], None]:
        return lambda _: ids.add(pack_id)

    def _send_spoiled(self, kafka: KafkaProducer) -> None:
        name = self.chance.choice(["flash", "place"])
        draft = next(maker for maker in self.makers if maker.collection.name == name).draft()
        value = self.chance.choice(SPOILED)(draft)
        if self.chance.random() < OVERSIZED_SHARE:
            value = oversized()
        # A key, because the client refuses a record with neither key nor value.
        kafka.send(self.configuration.topics.reports, value, key=b"spoiled", partition=self._home(draft))
        self.sent += 1

    def _home(self, draft: Draft) -> int:
        return draft.home(self.configuration.kafka.partitions)
