"""A plain aiokafka consumer that reads a topic and looks at nothing: what any Python consumer is limited by.

python -m bench.contest.runners.aiokafka_read SERVERS TOPIC PACKS FOLDER
"""

import asyncio
import sys

from aiokafka import AIOKafkaConsumer

from bench.contest.runners.stretch import Stretch


async def read(servers: str, topic: str, packs: int) -> Stretch:
    """Read so many packs from the topic's start, whole fetches at a time."""
    stretch = Stretch(packs)
    async with AIOKafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        while stretch.packs < packs:
            fetched = await consumer.getmany(timeout_ms=1000)
            stretch.add(sum(len(records) for records in fetched.values()))
    return stretch


if __name__ == "__main__":
    asyncio.run(read(sys.argv[1], sys.argv[2], int(sys.argv[3]))).tell()
