"""confluent-kafka: `produce` of one value of a few bytes, with its defaults; a full queue is polled.

Its documentation calls `poll(0)` after each `produce`, to serve callbacks, and so does this.
"""

import os
import time
from collections.abc import Callable

from confluent_kafka import Producer

LIBRARY = "confluent-kafka"


def called(count: int, servers: str, topic: str) -> Callable[[], object]:
    """Produce this many messages; then wait until Kafka has all."""

    def run() -> object:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        producer = Producer({"bootstrap.servers": servers})
        producer.produce(topic, b"value 17")
        producer.flush(30)
        began = time.perf_counter()
        for _ in range(count):
            while True:
                try:
                    producer.produce(topic, b"value 17")
                    break
                except BufferError:
                    producer.poll(0.01)
            producer.poll(0)
        seconds = time.perf_counter() - began
        producer.flush(120)
        return {"seconds": seconds, "flushed": time.perf_counter() - began}

    return run


JOBS = {"called": called}
