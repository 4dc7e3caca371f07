"""The producer: true values in, randomized packs out."""

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import structlog

from estimators.collection import Collection
from producers.connection import connect
from producers.delivery import Counters, Delivery
from producers.inputs import window_starts
from producers.packer import Packer
from producers.randomness import Keystream
from producers.responder import responder_of
from producers.secret import load_secret
from producers.wire import MAX_RECORD_BYTES, Pack

BATCH_REPORTS = 65_536
MAX_PACK_REPORTS = 1_000_000
MAX_SECONDS = 3600
CLOSE_SECONDS = 1.0

_log = structlog.get_logger(__name__)


class Producer:
    """Randomizes values and sends them in packs; thread-safe. A context manager: it flushes at its end.

    Packs leave when full, or at jittered ticks once they are pack_seconds old. What is buffered or in flight
    lives in memory alone: a crash loses it, and when bytes_in_flight are not acknowledged, a report waits for
    block_seconds and then its pack is dropped and counted.

    Parameters
    ----------
    collections : Collection each, names distinct.
    bootstrap_servers : "host:port", or several with commas.
    topic : the topic `reports`, its prefix included.
    partitions : of that topic; must be its real number.
    data_dir : folder of this producer's own, made when absent.
    secret_file : default `secret` in data_dir, made when absent.
    pack_reports : reports of a full pack, in [1, 1000000]; fewer where a record would pass MAX_RECORD_BYTES.
    pack_seconds : in (0, 3600].
    block_seconds : how long a call to `report` may wait for room, in [0, 3600].
    bytes_in_flight : at least MAX_RECORD_BYTES.
    connect_seconds : how long to wait for a broker at the start, in (0, 3600].

    Raises
    ------
    ValueError if a parameter is out of range, SecretError if the secret cannot be used, DeliveryError if the
    broker or the topic cannot be used.
    """

    def __init__(
        self,
        collections: Iterable[Collection],
        bootstrap_servers: str,
        topic: str,
        partitions: int,
        data_dir: Path,
        secret_file: Path | None = None,
        *,
        pack_reports: int = 1000,
        pack_seconds: float = 1.0,
        block_seconds: float = 0.05,
        bytes_in_flight: int = 32 * 2**20,
        connect_seconds: float = 30.0,
    ) -> None:
        self._collections = _by_name(collections)
        _check_options(pack_reports, pack_seconds, block_seconds, bytes_in_flight, connect_seconds)
        self._pack_seconds = pack_seconds
        self._block_seconds = block_seconds
        self._words = Keystream()
        secret = load_secret(secret_file or data_dir / "secret")
        self._responders = {
            name: responder_of(collection, secret, self._words)
            for name, collection in self._collections.items()
        }
        self._packer = Packer(self._collections, pack_reports, pack_seconds, self._words)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closing = threading.Event()
        kafka = connect(bootstrap_servers, topic, partitions, connect_seconds)
        names = {collection.fingerprint: name for name, collection in self._collections.items()}
        self._delivery = Delivery(kafka, topic, partitions, bytes_in_flight, names)
        self._ticker = threading.Thread(target=self._tick, name="deniable-packer", daemon=True)
        self._ticker.start()

    def report(self, collection: str, values: object, clients: object = None, at: object = None) -> None:
        """Randomize one value or many and send them. All are checked before the first is randomized.

        Parameters
        ----------
        collection : name of one of the collections.
        values : one value, or a list, tuple or one-dimensional array: text, or integers for a k-RR collection
            without a list of values. A value that the collection does not know is reported all the same.
        clients : text, the client of each value; None says that every value is a client of its own. A client
            has one cohort for ever, and where the collection memoizes, one permanent response to each value.
        at : unix seconds of the events, one number or one for each; None is now. Only the window leaves.

        Raises
        ------
        ValueError if there is no such collection; TypeError or ValueError if values, clients or times are of
        the wrong type, number or range; RuntimeError after `close` or in a forked process.
        """
        self._check_process()
        if collection not in self._collections:
            raise ValueError(f"collection must be one of {', '.join(self._collections)}")
        batch = self._responders[collection].prepare(values, clients)
        moment = time.time() if at is None else at
        windows = window_starts(moment, batch.count, self._collections[collection].window_seconds)
        patience = self._block_seconds
        for start in range(0, batch.count, BATCH_REPORTS):
            part = slice(start, start + BATCH_REPORTS)
            cohorts, rows = batch.respond(part)
            with self._lock:
                if self._closing.is_set():
                    raise RuntimeError("the producer is closed")
                packs = self._packer.add(collection, windows[part], cohorts, rows, time.monotonic())
                self._delivery.expect(packs)
            began = time.monotonic()
            self._send(packs, began + patience)
            patience -= time.monotonic() - began

    def flush(self, timeout: float = 30.0) -> None:
        """Send all that is buffered and wait until the broker has acknowledged it.

        Raises
        ------
        DeliveryError if some are not acknowledged within timeout seconds, or were lost since the last flush;
        RuntimeError in a forked process.
        """
        self._check_process()
        deadline = time.monotonic() + timeout
        with self._lock:
            packs = self._packer.flush()
            self._delivery.expect(packs)
        self._send(packs, deadline)
        self._delivery.wait(max(0.0, deadline - time.monotonic()))

    def close(self, timeout: float = 30.0) -> None:
        """Take no more reports, flush, disconnect. Calling it again does nothing.

        Raises
        ------
        DeliveryError and RuntimeError as `flush`.
        """
        self._check_process()
        with self._lock:
            if self._closing.is_set():
                return
            self._closing.set()
        self._ticker.join()
        try:
            self.flush(timeout)
        finally:
            self._delivery.close(timeout=CLOSE_SECONDS)

    def counters(self) -> Counters:
        """Totals since the start."""
        return self._delivery.counters()

    def unknown(self) -> dict[str, int]:
        """Values that a collection did not know, by name. Depends on true values: never to be exported."""
        return {name: responder.unknown for name, responder in self._responders.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, packs: Iterable[Pack], deadline: float) -> None:
        for pack in packs:
            self._delivery.send(pack, deadline)

    def _check_process(self) -> None:
        # A fork copies the buffers but not the threads: what both processes sent would be counted twice.
        if os.getpid() != self._process:
            raise RuntimeError("the producer belongs to the process that made it; make another after a fork")

    def _tick(self) -> None:
        while not self._closing.wait(self._jittered()):
            now = time.monotonic()
            with self._lock:
                packs = self._packer.due(now)
                self._delivery.expect(packs)
            self._send(packs, now + self._block_seconds)
            self._delivery.warn()

    def _jittered(self) -> float:
        """Seconds to the next tick, uniform in [0.25, 0.75) of pack_seconds: no fixed beat shows."""
        return self._pack_seconds * (0.25 + 0.5 * float(self._words.words64(1)[0]) / 2**64)


def _by_name(collections: Iterable[Collection]) -> dict[str, Collection]:
    by_name: dict[str, Collection] = {}
    for collection in collections:
        if collection.name in by_name:
            raise ValueError(f"names of collections must be distinct, got {collection.name} twice")
        by_name[collection.name] = collection
    return by_name


def _check_options(
    pack_reports: int, pack_seconds: float, block_seconds: float, bytes_in_flight: int, connect_seconds: float
) -> None:
    _check("pack_reports", pack_reports, 1 <= pack_reports <= MAX_PACK_REPORTS, "[1, 1000000]")
    _check("pack_seconds", pack_seconds, 0 < pack_seconds <= MAX_SECONDS, "(0, 3600]")
    _check("block_seconds", block_seconds, 0 <= block_seconds <= MAX_SECONDS, "[0, 3600]")
    _check("bytes_in_flight", bytes_in_flight, bytes_in_flight >= MAX_RECORD_BYTES, "[1000000, inf)")
    _check("connect_seconds", connect_seconds, 0 < connect_seconds <= MAX_SECONDS, "(0, 3600]")


def _check(name: str, value: float, is_in_range: bool, allowed: str) -> None:
    if not is_in_range:
        raise ValueError(f"{name} must be in {allowed}, got {value}")
