"""A plain aiokafka consumer that reads a topic and ignores the records: the upper limit for any reader.

python -m bench.comparison.runners.peers.readers.aiokafka_read SERVERS TOPIC PACKS FOLDER
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer

from bench.comparison.runners.peers.readers.stretch import Stretch

# Same settings as our worker's consumer.
FETCH_BYTES = 2 * 2**20
FETCH_WAIT_MILLISECONDS = 50


async def read(servers: str, topic: str, packs: int) -> Stretch:
    """Read this many packs from the topic's start, a whole fetch at a time."""
    stretch = Stretch(packs)
    async with AIOKafkaConsumer(
        topic,
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=FETCH_BYTES,
        fetch_max_wait_ms=FETCH_WAIT_MILLISECONDS,
    ) as consumer:
        while stretch.packs < packs:
            fetched = await consumer.getmany(timeout_ms=1000)
            stretch.add(sum(len(records) for records in fetched.values()))
    return stretch


if __name__ == "__main__":
    asyncio.run(read(sys.argv[1], sys.argv[2], int(sys.argv[3]))).print()
