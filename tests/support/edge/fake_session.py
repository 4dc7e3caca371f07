"""Kafka in memory, for an upload writer: partitions, an outage, and a hand on each acknowledgement."""

import asyncio

from aiokafka.errors import KafkaConnectionError

from deniable.edge.sending.kafka_session import SessionError
from deniable.protocol.uploads.frame import decode_frame


class FakeKafka:
    """What its sessions append.

    Attributes
    ----------
    records : partition and value, in order.
    is_away : whether connections and requests fail.
    has_relay : whether a relay has begun.
    failing : partitions whose appends fail, with the error.
    gate : appends wait until it is set.
    """

    def __init__(self):
        self.records = []
        self.is_away = False
        self.has_relay = True
        self.failing = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.opened = 0
        self.in_flight = 0
        self.most_in_flight = 0

    async def open(self):
        self.opened += 1
        if self.is_away:
            raise SessionError("Kafka at 10.9.8.7:9092: no broker answers") from KafkaConnectionError()
        return FakeSession(self)

    def uploads(self):
        return [bytes(each) for _, record in self.records for each in decode_frame(record)]


class FakeSession:
    """One connection; node 0 leads every partition."""

    def __init__(self, kafka):
        self.kafka = kafka
        self.is_closed = False

    def leader(self, _):
        return 0

    def _check(self):
        if self.kafka.is_away or self.is_closed:
            raise KafkaConnectionError("away")

    async def refresh(self):
        self._check()

    async def is_ready(self, _):
        return not self.kafka.is_away

    async def has_begun(self):
        self._check()
        return self.kafka.has_relay

    async def append(self, _, frames):
        kafka = self.kafka
        kafka.in_flight += 1
        kafka.most_in_flight = max(kafka.most_in_flight, kafka.in_flight)
        try:
            await kafka.gate.wait()
            self._check()
        finally:
            kafka.in_flight -= 1
        kafka.records += [item for item in frames.items() if item[0] not in kafka.failing]
        return {partition: kafka.failing.get(partition) for partition in frames}

    async def close(self):
        self.is_closed = True
