"""A fake connection to Kafka: keeps sent packs until a test acknowledges or fails them."""

import threading
from types import SimpleNamespace

from kafka.future import Future


class FakeKafka:
    manager = None  # nothing can be asked over it

    def __init__(self, *, refuses=None, acknowledges=False, append_ms=0):
        self.sent = []
        self.closed = 0
        self.refuses = refuses
        self.acknowledges = acknowledges
        self.append_ms = append_ms
        self._futures = []
        self._lock = threading.Lock()

    def connect(self, *_):
        """One of many connections to the same broker."""
        return SimpleNamespace(send=self.send, close=self.close, manager=None)

    def send(self, topic, **record):
        if self.refuses:
            raise self.refuses
        future = Future()
        with self._lock:
            self.sent.append({"topic": topic, **record})
            self._futures.append(future)
        if self.acknowledges:
            self.acknowledge()
        return future

    def acknowledge(self):
        for future in self._taken():
            future.success(SimpleNamespace(timestamp=self.append_ms))

    def fail(self, error):
        for future in self._taken():
            future.failure(error)

    def close(self, timeout):
        self.closed += 1

    def _taken(self):
        with self._lock:
            futures, self._futures = self._futures, []
        return futures
