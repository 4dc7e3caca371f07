"""Packs to Kafka: bounded bytes in flight, every pack accounted for until the broker has acknowledged it."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import structlog
from kafka import KafkaProducer
from kafka.errors import KafkaError

from producers.connection import DeliveryError
from producers.wire import Pack, encode, partition_of

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Counters:
    """What became of the packs that were to leave; nothing in it depends on a true value.

    Parameters
    ----------
    reports : acknowledged by the broker, by collection.
    packs, bytes : acknowledged by the broker.
    dropped : reports never handed to Kafka, for want of room.
    failed : reports handed over and not acknowledged. They may be in the log; they are not sent again.
    """

    reports: Mapping[str, int] = field(default_factory=Counter)
    packs: int = 0
    bytes: int = 0
    dropped: int = 0
    failed: int = 0


class Delivery:
    """Packs on their way; thread-safe.

    Parameters
    ----------
    kafka : KafkaProducer, as `connect` makes it; `close` closes it.
    topic : the topic `reports`, its prefix included.
    partitions : of that topic, at least 1.
    bytes_in_flight : bytes of records that may wait for acknowledgement, at least MAX_RECORD_BYTES.
    names : collections by fingerprint.
    """

    def __init__(
        self,
        kafka: KafkaProducer,
        topic: str,
        partitions: int,
        bytes_in_flight: int,
        names: Mapping[int, str],
    ) -> None:
        self._kafka = kafka
        self._topic = topic
        self._partitions = partitions
        self._room = bytes_in_flight
        self._names = names
        self._changed = threading.Condition()
        self._open: dict[bytes, int] = {}
        self._counters = Counters()
        self._flushed = self._counters
        self._warned = self._counters
        self._error = ""

    def counters(self) -> Counters:
        """Totals since the start."""
        return self._counters

    def expect(self, packs: Iterable[Pack]) -> None:
        """Account for packs that `send` will be called with, so that `wait` waits for them already."""
        with self._changed:
            self._open.update((pack.pack_id, pack.reports) for pack in packs)

    def send(self, pack: Pack, deadline: float) -> None:
        """Hand a pack over; wait for room until `deadline` (time.monotonic()), then drop it and count it."""
        record = encode(pack)
        with self._changed:
            if not self._changed.wait_for(lambda: self._room >= len(record), deadline - time.monotonic()):
                self._settle(pack, replace(self._counters, dropped=self._counters.dropped + pack.reports))
                return
            self._room -= len(record)
        try:
            future = self._kafka.send(
                self._topic,
                value=record,
                partition=partition_of(pack.pack_id, self._partitions),
                # Without a timestamp of ours the record would hold this machine's clock to the millisecond.
                timestamp_ms=pack.window_start * 1000,
            )
        except (KafkaError, ValueError) as error:
            self._not_acknowledged(pack, len(record), error)
        else:
            future.add_callback(lambda _: self._acknowledged(pack, len(record)))
            future.add_errback(lambda error: self._not_acknowledged(pack, len(record), error))

    def wait(self, timeout: float) -> None:
        """Wait until all packs expected so far are acknowledged.

        Raises
        ------
        DeliveryError if some are not, or if others were dropped or failed since `wait` was last called.
        """
        with self._changed:
            packs = list(self._open)
            self._changed.wait_for(lambda: not any(pack in self._open for pack in packs), timeout)
            waiting = sum(self._open.get(pack, 0) for pack in packs)
            dropped = self._counters.dropped - self._flushed.dropped
            failed = self._counters.failed - self._flushed.failed
            self._flushed = self._counters
        if waiting or dropped or failed:
            raise DeliveryError(
                f"not every report was delivered: {dropped} dropped for want of room, {failed} failed, "
                f"{waiting} not acknowledged within {timeout} s"
            )

    def warn(self) -> None:
        """Log what was lost since the last call."""
        with self._changed:
            dropped, failed = (
                self._counters.dropped - self._warned.dropped,
                self._counters.failed - self._warned.failed,
            )
            self._warned = self._counters
        if dropped or failed:
            _log.warning("reports lost", dropped=dropped, failed=failed, last_error=self._error)

    def close(self, timeout: float) -> None:
        """Close the connection; what is not acknowledged within timeout seconds fails."""
        self._kafka.close(timeout=timeout)

    def _acknowledged(self, pack: Pack, size: int) -> None:
        with self._changed:
            self._room += size
            so_far = self._counters
            reports = Counter(so_far.reports) + Counter({self._names[pack.fingerprint]: pack.reports})
            packs, sent = so_far.packs + 1, so_far.bytes + size
            self._settle(pack, replace(so_far, reports=reports, packs=packs, bytes=sent))

    def _not_acknowledged(self, pack: Pack, size: int, error: BaseException) -> None:
        with self._changed:
            self._room += size
            self._error = type(error).__name__
            self._settle(pack, replace(self._counters, failed=self._counters.failed + pack.reports))

    def _settle(self, pack: Pack, counters: Counters) -> None:
        self._counters = counters
        del self._open[pack.pack_id]
        self._changed.notify_all()
