"""A small relay for tests, which can be killed or stopped between any two steps.

python -m tests.support.relay.relay_process JSON

It is assigned all partitions, outside any group protocol, so nothing fences it: two of them work on one
partition at once, and a stopped one commits its old position when it continues.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from producers import wire
from producers.transport.uploads.id_set import IdSet
from relay import acceptance, fold, intake
from relay.control import decode_control, encode_marker
from relay.fold import Fold, RelayBatch, Start
from relay.recovery import NO_SETTINGS, Ends, Position
from tests.support.relay.logs import KEYS

IDLE_SECONDS = 0.5  # then a batch ends though it is not full
MARKER_SECONDS = 0.2  # between two markers of one relay


class Strike:
    """Signals itself at a point of the n-th batch: `before`, `in`, `after` or `marker`."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self._point, self._left = order.get("point"), order.get("batches", 1)
        self._signal = signal.SIGKILL if order.get("kill", True) else signal.SIGSTOP

    def at(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), self._signal)


class PartitionRelay:
    """One partition, from its committed position on."""

    def __init__(self, order: Mapping[str, Any], partition: int, producer: KafkaProducer) -> None:
        self.source = TopicPartition(order["uploads"], partition)
        self._order, self._producer, self._strike = order, producer, Strike(order)
        self._last_marker = time.monotonic()

    def open(self, consumer: KafkaConsumer) -> None:
        held = consumer.committed(self.source, metadata=True)
        self._after, start = -1, Start(0)
        if held is not None:
            position = Position.of(held.offset, held.metadata)
            self._after, start = position.position, self._start(consumer, position)
        self.fold, self._ends = Fold(self.source.partition, KEYS, start), Ends(start)
        consumer.seek(self.source, start.offset)

    def _start(self, consumer: KafkaConsumer, position: Position) -> Start:
        if position.settings == NO_SETTINGS:
            return Start(position.rewind)
        consumer.seek(self.source, position.settings)
        record = None
        while record is None:
            record = next(iter(consumer.poll(100, max_records=1).get(self.source, ())), None)
        settings = decode_control(KEYS, self.source.partition, record.value)
        return Start(position.rewind, position.watermark_ms, settings, position.settings)

    def take(self, record: Any, consumer: KafkaConsumer) -> None:
        batch = self.fold.apply(record.offset, record.timestamp, record.value)
        if batch is None:
            return
        position = self._ends.passed(batch, self.fold)
        if batch.end > self._after:
            self._strike.at("before")
            self._send(batch)
            self._strike.at("after")
            commit = OffsetAndMetadata(position.position, position.metadata(), -1)
            consumer.commit({self.source: commit})

    def _send(self, batch: RelayBatch) -> None:
        packs = batch.packs(KEYS)
        for number, pack in enumerate(packs):
            if number == len(packs) // 2:
                self._producer.flush()
                self._strike.at("in")
            if self._order.get("defect") == "fresh pack ids":
                pack = _renamed(pack)
            place = wire.partition_of(pack.pack_id, self._order["report_partitions"])
            self._producer.send(self._order["reports"], wire.encode(pack), partition=place)
        self._producer.flush()

    def idle(self) -> None:
        """Append a marker if a batch waits too long, or a window has closed by this machine's clock."""
        since = time.monotonic() - self._last_marker
        closes_ms = self.fold.windows.next_close_ms()
        is_over = closes_ms is not None and time.time() * 1000 > closes_ms + 50
        waits = self.fold.uploaded > 0 and since > IDLE_SECONDS
        if since > MARKER_SECONDS and (is_over or waits):
            self._strike.at("marker")
            self._append(encode_marker(KEYS, self.source.partition))
            self._last_marker = time.monotonic()

    def _append(self, value: bytes) -> None:
        self._producer.send(self.source.topic, value, partition=self.source.partition).get(30)


def _renamed(pack: wire.Pack) -> wire.Pack:
    fields = {name: getattr(pack, name) for name in pack.__slots__}
    return wire.Pack(**fields | {"pack_id": os.urandom(16)})


def shorten_lives(early_seconds: int) -> None:
    """Let windows take uploads only shortly before their start, so that relays of a short test rewind."""
    intake.EARLY_SECONDS = early_seconds
    intake.EARLY_MS = acceptance.EARLY_MS = fold.EARLY_MS = early_seconds * 1000


def main() -> None:
    order = json.loads(sys.argv[1])
    shorten_lives(order["early_seconds"])
    if order.get("defect") == "no upload ids":
        IdSet.add = lambda self, low, high: None
    consumer = KafkaConsumer(
        bootstrap_servers=order["servers"],
        group_id=order["uploads"],
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    producer = KafkaProducer(bootstrap_servers=order["servers"], acks="all", linger_ms=2)
    relays = [PartitionRelay(order, each, producer) for each in range(order["partitions"])]
    for relay in relays:
        consumer.assign([relay.source])
        relay.open(consumer)
    offsets = {relay.source: relay.fold.position for relay in relays}
    consumer.assign(list(offsets))
    for source, offset in offsets.items():
        consumer.seek(source, offset)
    while True:
        for source, records in consumer.poll(timeout_ms=50).items():
            for record in records:
                relays[source.partition].take(record, consumer)
        for relay in relays:
            relay.idle()


if __name__ == "__main__":
    main()
