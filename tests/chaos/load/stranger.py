"""A foreign producer that commits and aborts transactions in the topic `reports`.

Its control records leave gaps in the offsets. Its packs count whether it commits or aborts: `reports` is read
uncommitted, so no foreign producer can stall counting.
"""

import asyncio
import random
import threading

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from deniable.config.file import Configuration
from tests.chaos.load.packs import PackMaker

PAUSE_SECONDS = 0.3


class Stranger(threading.Thread):
    """Run transactions until `stopped`; after an error, reconnect.

    kafka-python's transactions may never end, and take a whole processor, once a broker was killed.
    """

    def __init__(self, configuration: Configuration, seed: int) -> None:
        super().__init__(daemon=True)
        self.configuration = configuration
        self.chance = random.Random(seed)
        self.stopped = threading.Event()
        self.error = None

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                asyncio.run(self._work())
            except (KafkaError, OSError, RuntimeError):
                self.stopped.wait(PAUSE_SECONDS)

    async def _work(self) -> None:
        makers = [PackMaker(collection, self.chance) for collection in self.configuration.collections]
        async with AIOKafkaProducer(
            bootstrap_servers=self.configuration.kafka.bootstrap_servers,
            transactional_id=f"{self.configuration.topics.reports}-stranger",
        ) as kafka:
            while not self.stopped.is_set():
                await asyncio.sleep(PAUSE_SECONDS)
                await kafka.begin_transaction()
                await self._send(kafka, makers)
                if self.chance.random() < 0.5:
                    await kafka.commit_transaction()
                else:
                    await kafka.flush()
                    await kafka.abort_transaction()

    async def _send(self, kafka: AIOKafkaProducer, makers: list[PackMaker]) -> None:
        partitions = self.configuration.kafka.partitions
        for _ in range(self.chance.randrange(1, 20)):
            draft = self.chance.choice(makers).draft()
            home = int.from_bytes(draft.pack_id[:8], "little") % partitions
            await kafka.send(self.configuration.topics.reports, draft.encode(), partition=home)
