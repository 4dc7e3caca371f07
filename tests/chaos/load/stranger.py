"""A foreign producer that commits and aborts transactions in the topic `reports`.

Its control records leave gaps in the offsets. Its packs count whether it commits or aborts: `reports` is read
uncommitted, so no foreign producer can stall counting.
"""

import random
import threading

from kafka import KafkaProducer
from kafka.errors import KafkaError

from deploy.config.file import Configuration
from tests.chaos.load.packs import PackMaker

PAUSE_SECONDS = 0.3


class Stranger(threading.Thread):
    """Run transactions until `stopped`; after an error, reconnect."""

    def __init__(self, configuration: Configuration, seed: int) -> None:
        super().__init__(daemon=True)
        self.configuration = configuration
        self.chance = random.Random(seed)
        self.stopped = threading.Event()
        self.transactions = 0
        self.error = None

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                self._work()
            except (KafkaError, OSError, RuntimeError):
                self.stopped.wait(PAUSE_SECONDS)

    def _work(self) -> None:
        makers = [PackMaker(collection, self.chance) for collection in self.configuration.collections]
        with KafkaProducer(
            bootstrap_servers=self.configuration.kafka.bootstrap_servers,
            transactional_id=f"{self.configuration.topics.reports}-stranger",
        ) as kafka:
            kafka.init_transactions()
            while not self.stopped.wait(PAUSE_SECONDS):
                kafka.begin_transaction()
                self._send(kafka, makers)
                kafka.flush(timeout=120)
                if self.chance.random() < 0.5:
                    kafka.commit_transaction()
                else:
                    kafka.abort_transaction()
                self.transactions += 1

    def _send(self, kafka: KafkaProducer, makers: list[PackMaker]) -> None:
        partitions = self.configuration.kafka.partitions
        for _ in range(self.chance.randrange(1, 20)):
            draft = self.chance.choice(makers).draft()
            home = int.from_bytes(draft.pack_id[:8], "little") % partitions
            kafka.send(self.configuration.topics.reports, draft.encode(), partition=home)
