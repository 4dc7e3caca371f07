"""A plain librdkafka consumer that reads a topic and ignores the records: what another client would give.

python -m bench.comparison.runners.peers.readers.confluent_read SERVERS TOPIC PACKS FOLDER

The folder is new, and its name is the name of the consumer group.
"""

import sys
from pathlib import Path

from confluent_kafka import Consumer, KafkaException

from bench.comparison.runners.peers.readers.stretch import Stretch

RECORDS_AT_ONCE = 10_000
# Same settings as our worker's consumer.
FETCH_BYTES = 2 * 2**20
FETCH_WAIT_MILLISECONDS = 50


def main(servers: str, topic: str, packs: str, folder: str) -> None:
    """Read this many packs from the topic's start, thousands at a time."""
    stretch = Stretch(int(packs))
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": Path(folder).name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.partition.fetch.bytes": FETCH_BYTES,
            "fetch.wait.max.ms": FETCH_WAIT_MILLISECONDS,
        }
    )
    consumer.subscribe([topic])
    while stretch.packs < int(packs):
        messages = consumer.consume(RECORDS_AT_ONCE, 1.0)
        for error in filter(None, (message.error() for message in messages[:1])):
            raise KafkaException(error)
        stretch.add(len(messages))
    consumer.close()
    stretch.print()


if __name__ == "__main__":
    main(*sys.argv[1:])
