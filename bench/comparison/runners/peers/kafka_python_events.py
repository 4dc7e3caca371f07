"""kafka-python: `send` of one value of a few bytes, with its defaults."""

import os
import time
from collections.abc import Callable

from kafka import KafkaProducer

LIBRARY = "kafka-python"


def called(count: int, servers: str, topic: str) -> Callable[[], object]:
    """Send this many messages; then wait until Kafka has all."""

    def run() -> object:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        producer = KafkaProducer(bootstrap_servers=servers)
        try:
            producer.send(topic, b"value 17").get(30)
            began = time.perf_counter()
            for _ in range(count):
                producer.send(topic, b"value 17")
            seconds = time.perf_counter() - began
            producer.flush(120)
            return {"seconds": seconds, "flushed": time.perf_counter() - began}
        finally:
            producer.close()

    return run


JOBS = {"called": called}
