"""Stands in for kafka-python's producer: keeps what is sent until told that it was acknowledged or failed."""

import threading

from kafka.future import Future


class FakeKafka:
    def __init__(self, *, refuses=None, acknowledges=False):
        self.sent = []
        self.is_closed = False
        self.refuses = refuses
        self.acknowledges = acknowledges
        self._futures = []
        self._lock = threading.Lock()

    def send(self, topic, **record):
        if self.refuses:
            raise self.refuses
        future = Future()
        with self._lock:
            self.sent.append({"topic": topic, **record})
            self._futures.append(future)
        if self.acknowledges:
            future.success(None)
        return future

    def acknowledge(self):
        for future in self._taken():
            future.success(None)

    def fail(self, error):
        for future in self._taken():
            future.failure(error)

    def close(self, timeout):
        self.is_closed = True

    def _taken(self):
        with self._lock:
            futures, self._futures = self._futures, []
        return futures
