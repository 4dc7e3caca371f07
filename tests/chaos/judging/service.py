"""Observe the service during faults: gaps without progress, and positions that go back.

Positions are the group's committed offsets, which are part of the ledgers' transactions. If one goes back, a
former owner wrote after its successor.
"""

import threading
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from deniable.protocol.topic_names import Topics

SAMPLE_SECONDS = 0.5
ANSWER_MILLISECONDS = 2000


class Sample(NamedTuple):
    """Stored positions and ends of the log, by partition; empty while the broker does not answer."""

    seconds: float
    positions: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()


class Service(threading.Thread):
    """Samples positions twice a second, until `stopped`."""

    def __init__(self, servers: str, topics: Topics) -> None:
        super().__init__(daemon=True)
        self.servers = servers
        self.topics = topics
        self.stopped = threading.Event()
        self._moved = threading.Event()
        self.samples: list[Sample] = []
        self.error: BaseException | None = None

    def ask(self, servers: str) -> None:
        """Ask these from now on: not a broker that its cluster has replaced, and that has an old end."""
        self.servers = servers
        self._moved.set()

    def run(self) -> None:
        sources = [TopicPartition(self.topics.reports, p) for p in range(self.topics.partitions)]
        while not self.stopped.is_set():
            self._moved.clear()
            try:
                with KafkaConsumer(
                    bootstrap_servers=self.servers, group_id=self.topics.group, enable_auto_commit=False
                ) as consumer:
                    self._watch(consumer, sources)
            except (KafkaError, OSError):
                self.stopped.wait(SAMPLE_SECONDS)
            except BaseException as error:
                self.error = error
                raise

    def _watch(self, consumer: KafkaConsumer, sources: list[TopicPartition]) -> None:
        while not (self.stopped.wait(SAMPLE_SECONDS) or self._moved.is_set()):
            positions = tuple(
                consumer.committed(source, timeout_ms=ANSWER_MILLISECONDS) or 0 for source in sources
            )
            ends = consumer.end_offsets(sources, timeout_ms=ANSWER_MILLISECONDS)
            self.samples.append(Sample(time.monotonic(), positions, tuple(ends[s] for s in sources)))

    def drained(self, since: float) -> bool:
        """Return whether a sample after `since` shows that everything in the log was counted and stored."""
        newest = self.samples[-1] if self.samples else None
        return newest is not None and newest.seconds > since and newest.positions == newest.ends


def longest_gap(samples: Iterable[Sample]) -> float:
    """Return the longest time in seconds without progress while there were records to count.

    Counted from the first progress on; before that, workers start.
    """
    longest, since = 0.0, None
    before: tuple[int, ...] = ()
    for sample in samples:
        moved = bool(before) and sample.positions != before
        before = sample.positions
        if since is None:
            since = sample.seconds if moved else None
            continue
        idle = sample.positions == sample.ends
        if moved or not idle:
            longest = max(longest, sample.seconds - since)
        if moved or idle:
            since = sample.seconds
    return longest


def longest_partition_gap(samples: Sequence[Sample], partitions: int) -> float:
    """Return the longest gap of any single partition."""
    return max(
        longest_gap(Sample(s.seconds, s.positions[p : p + 1], s.ends[p : p + 1]) for s in samples)
        for p in range(partitions)
    )


def steps_back(samples: Iterable[Sample]) -> int:
    """Return how often the stored position of a partition went back."""
    steps = 0
    before: tuple[int, ...] = ()
    for sample in samples:
        steps += sum(now < then for then, now in zip(before, sample.positions, strict=False))
        before = sample.positions
    return steps
