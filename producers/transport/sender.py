"""Send packs to Kafka: a thread that connects, sends, and reports acknowledged and lost packs."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from deniable.producers.concurrency.background_thread import Background
from deniable.producers.concurrency.fork_hooks import IDNA, import_in_thread
from deniable.producers.concurrency.timing import DEFAULT, ProducerTiming
from deniable.producers.errors import DeliveryError, HopelessError
from deniable.producers.transport.agreement import Agreement
from deniable.producers.transport.client_log import keep_out_of_log
from deniable.producers.transport.packs import Outcome, OutgoingPack

if TYPE_CHECKING:
    from deniable.producers.transport.connection import Connection

BYTES_IN_FLIGHT = 32 * 2**20
#: Reports that follow the opening at once are stored meanwhile: the imports would hold them up.
FIRST_SECONDS = 0.2
# All that uses Kafka's client, whose import takes as long as that of everything else: the thread does it.
LATE = (
    IDNA,
    "deniable.producers.transport.connection",
    "deniable.cluster.reading.publication_reader",
)

_log = logging.getLogger(__name__)


class Delivery:
    """Packs in flight; thread-safe.

    After any failure the connection is dropped, all packs in flight count as lost, and it connects again. The
    same happens if no pack in flight is acknowledged for 20 s: Kafka's client itself may wait for minutes.

    Parameters
    ----------
    connect : returns a connection; DeliveryError if that fails now.
    topic : name of the topic `reports`, prefix included.
    wake : called, from any thread, when there is an outcome to read.
    waiting : returns the number of waiting packs, for the log.
    timing : of its waits.
    agreement : to compare with the workers' parameters over each connection; None: nothing is compared.
    explained : makes a sentence of what Kafka did; may ask the network for seconds, see `reachability`.
    """

    def __init__(
        self,
        connect: "Callable[[], Connection]",
        topic: str,
        wake: Callable[[], None],
        waiting: Callable[[], int] = lambda: 0,
        timing: ProducerTiming = DEFAULT,
        agreement: Agreement | None = None,
        explained: Callable[[str], str] = "Kafka {}".format,
    ) -> None:
        self._agreement = Agreement((), None) if agreement is None else agreement
        self._connect = connect
        self._topic = topic
        self._wake = wake
        self._waiting = waiting
        self._timing = timing
        self._explained = explained
        self._changed = threading.Condition()
        self._queue: list[OutgoingPack] = []
        self._sizes: dict[int, int] = {}
        self._room = 0
        self._acknowledged: dict[int, int] = {}
        self._lost: set[int] = set()
        self._too_large: set[int] = set()
        self._broken: Connection | None = None
        self._failure = ""  # of the broken connection, until it is explained
        self._failures = 0
        self._moved_at = 0.0  # time of the last acknowledgement, or of sending with nothing in flight
        self._closing = False
        self._trouble: DeliveryError | None = None
        self._logged: set[str] = set()  # errors logged since the last acknowledgement
        self._thread = Background("delivery", self._run, self._lose_all)

    def start(self) -> None:
        """Start connecting. Calling it again does nothing.

        Raises
        ------
        DeliveryError if its thread cannot be started; the next call tries again.
        """
        self._thread.start()

    @property
    def trouble(self) -> DeliveryError | None:
        """Why no pack was acknowledged recently, if known."""
        death = self._thread.death
        return self._trouble if death is None else HopelessError(death)

    def room(self) -> int:
        """Return the bytes that may be sent now; 0 without a connection."""
        return self._room

    def send(self, packs: Iterable[OutgoingPack]) -> None:
        """Send packs, none of which is in flight."""
        with self._changed:
            if not self._sizes:
                self._moved_at = time.monotonic()
            for pack in packs:
                self._queue.append(pack)
                self._sizes[pack.number] = len(pack.record)
                self._room -= len(pack.record)
            self._changed.notify_all()

    def outcome(self) -> Outcome:
        """Return the outcomes of packs since the last call."""
        with self._changed:
            outcome = Outcome(self._acknowledged, frozenset(self._lost), frozenset(self._too_large))
            self._acknowledged, self._lost, self._too_large = {}, set(), set()
        return outcome

    def close(self) -> None:
        """Stop sending and disconnect; packs in flight get no outcome.

        Waits at most `timing.disconnect` seconds for an attempt to connect, which ends by itself.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(self._timing.disconnect)

    def _run(self) -> None:
        until = time.monotonic() + FIRST_SECONDS
        while not (self._closing or self._waiting()) and time.monotonic() < until:
            time.sleep(FIRST_SECONDS / 20)
        for module in LATE:
            import_in_thread(module)
        while not self._closing:
            keep_out_of_log()
            try:
                kafka = self._connect()
            except DeliveryError as error:
                self._note(error)
            else:
                self._failure = ""
                self._room = BYTES_IN_FLIGHT
                self._wake()
                try:
                    self._send_all(kafka)
                finally:
                    kafka.close(timeout=0)
                if self._failure:
                    self._note(DeliveryError(self._explained(self._failure)))
            self._lose_all()
            with self._changed:
                retry = self._timing.retry
                pause = retry[min(self._failures, len(retry)) - 1]
                self._changed.wait_for(lambda: self._closing, pause)

    def _send_all(self, kafka: "Connection") -> None:
        """Send packs until something fails, or until `close`."""
        while True:
            self._agreement.compare(kafka.manager)
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing or self._broken is kafka or self._queue, self._timing.stall / 4
                )
                if self._closing or self._broken is kafka:
                    return
                if self._sizes and time.monotonic() - self._moved_at > self._timing.stall:
                    # Broken from here on, since closing it fails all packs in flight with other errors.
                    self._broken = kafka
                    self._failure = f"acknowledged nothing for {self._timing.stall:.0f} s"
                    return
                packs, self._queue = self._queue, []
            for pack in packs:
                self._send_one(kafka, pack)

    def _send_one(self, kafka: "Connection", pack: OutgoingPack) -> None:
        from kafka.errors import KafkaError

        try:
            future = kafka.send(
                self._topic,
                value=pack.record,
                partition=pack.partition,
                timestamp_ms=pack.window_start * 1000,
                headers=self._agreement.headers(pack.fingerprint),
            )
        except (KafkaError, ValueError) as error:
            self._fail(kafka, error)
        else:
            future.add_callback(lambda metadata: self._acknowledge(pack.number, metadata.timestamp))
            future.add_errback(lambda error: self._refuse(kafka, pack.number, error))

    def _acknowledge(self, number: int, append_ms: int) -> None:
        with self._changed:
            self._acknowledged[number] = append_ms
            self._moved_at = time.monotonic()
            # Not in flight if it was lost with an earlier connection, whose answer came late.
            self._room += self._sizes.pop(number, 0)
            self._failures, trouble, self._trouble = 0, self._trouble, None
            self._logged.clear()
        if trouble is not None:
            _log.warning("packs are sent again, %d were waiting", self._waiting())
        self._wake()

    def _refuse(self, kafka: "Connection", number: int, error: BaseException) -> None:
        from deniable.producers.transport.connection import TOO_LARGE

        with self._changed:
            # Only the first error concerns its pack: Kafka's client then fails all others with the same
            # error.
            is_its_own = self._broken is not kafka and isinstance(error, TOO_LARGE)
            if is_its_own and self._sizes.pop(number, None) is not None:
                self._too_large.add(number)
        self._fail(kafka, error)

    def _fail(self, kafka: "Connection", error: BaseException) -> None:
        from deniable.producers.transport.connection import cause

        with self._changed:
            if self._broken is kafka or self._closing:
                return
            self._broken = kafka
            self._failure = f"did not take a pack: {cause(error)}"
            self._changed.notify_all()

    def _note(self, error: DeliveryError) -> None:
        self._failures += 1
        if str(error) not in self._logged:  # during an outage, causes alternate
            self._logged.add(str(error))
            _log.warning("packs wait in the outbox: %s", error)
        self._trouble = error
        self._wake()

    def _lose_all(self) -> None:
        with self._changed:
            self._lost.update(self._sizes)
            self._sizes.clear()
            self._queue.clear()
            self._room = 0
        self._wake()
