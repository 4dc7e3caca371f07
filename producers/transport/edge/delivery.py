"""Send packs to an edge: threads that post uploads, and report which packs the edge has, rejects or refuses.

Rule 1: a pack stays here until it has an outcome, and is sent again with the same bytes: its id shows that it
is a repetition.
Rule 2: after a failure one thread tries alone, after a pause that other producers do not share.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from deniable.producers.concurrency.background_thread import Background
from deniable.producers.concurrency.fork_hooks import IDNA, import_in_thread
from deniable.producers.concurrency.timing import ProducerTiming
from deniable.producers.errors import DeliveryError, HopelessError
from deniable.producers.transport.edge.agreement import EdgeAgreement
from deniable.producers.transport.edge.answers import Later, Rejected, Taken, TooLarge, Verdict, verdict_of
from deniable.producers.transport.edge.connection import EdgeConnection
from deniable.producers.transport.packs import Outcome, OutgoingPack

BYTES_IN_FLIGHT = 4 * 2**20
CONNECTIONS = 4
IDLE_SECONDS = 10.0

_log = logging.getLogger(__name__)


class EdgeDelivery:
    """Packs in flight to an edge; thread-safe. Its face is that of `sender.Delivery`.

    Parameters
    ----------
    connect : returns a connection, which connects when it is used.
    url : of the edge, for messages.
    wake : called, from any thread, when there is an outcome to read.
    waiting : returns the number of waiting packs, for the log.
    timing : of its waits.
    agreement : of the collections with the edge's.
    jitter : returns a random number in [0, 1), for pauses.
    """

    def __init__(
        self,
        connect: Callable[[], EdgeConnection],
        url: str,
        wake: Callable[[], None],
        waiting: Callable[[], int],
        timing: ProducerTiming,
        agreement: EdgeAgreement,
        jitter: Callable[[], float],
    ) -> None:
        self._url = url
        self._wake = wake
        self._waiting = waiting
        self._timing = timing
        self._agreement = agreement
        self._jitter = jitter
        self._changed = threading.Condition()
        self._queue: deque[OutgoingPack] = deque()
        self._sizes: dict[int, int] = {}
        self._acknowledged: dict[int, None] = {}
        self._rejected: dict[int, str] = {}
        self._lost: set[int] = set()
        self._too_large: set[int] = set()
        self._busy = 0  # threads that have a task
        self._is_comparing = False
        self._cannot_compare = False  # the last failure was of a comparison
        self._failures = 0
        self._failed_at = 0.0
        self._resume_at = 0.0
        self._closing = False
        self._trouble: DeliveryError | None = None
        self._logged: set[str] = set()  # errors logged since the last acknowledgement
        self._connections = [connect() for _ in range(CONNECTIONS)]
        self._threads = [
            Background("delivery", partial(self._run, each), self._ended) for each in self._connections
        ]

    def start(self) -> None:
        """Start comparing and sending. Calling it again does nothing.

        Raises
        ------
        DeliveryError if its first thread cannot be started; the next call tries again.
        """
        self._threads[0].start()

    @property
    def trouble(self) -> DeliveryError | None:
        """Why no pack was acknowledged recently, if known."""
        death = next((each.death for each in self._threads if each.death is not None), None)
        return self._trouble if death is None else HopelessError(death)

    def room(self) -> int:
        """Return the bytes that may be sent now."""
        with self._changed:
            return 0 if self._closing else BYTES_IN_FLIGHT - sum(self._sizes.values())

    def send(self, packs: Iterable[OutgoingPack]) -> None:
        """Send packs, none of which is in flight."""
        with self._changed:
            for pack in packs:
                self._queue.append(pack)
                self._sizes[pack.number] = len(pack.record)
            self._changed.notify_all()
            wanted = self._busy + len(self._queue)
        for thread in self._threads[1:wanted]:
            with suppress(DeliveryError):  # the first one sends all
                thread.start()

    def outcome(self) -> Outcome:
        """Return the outcomes of packs since the last call. No append time is known."""
        with self._changed:
            outcome = Outcome(
                self._acknowledged, frozenset(self._lost), frozenset(self._too_large), self._rejected
            )
            self._acknowledged, self._rejected = {}, {}
            self._lost, self._too_large = set(), set()
        return outcome

    def close(self) -> None:
        """Stop sending and disconnect; packs in flight get no outcome.

        Waits at most `timing.disconnect` seconds for attempts to connect, which end by themselves.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for connection in self._connections:
            connection.abort()
        deadline = time.monotonic() + self._timing.disconnect
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, connection: EdgeConnection) -> None:
        import_in_thread(IDNA)
        try:
            while not self._closing:
                pack, is_task = self._next()
                if is_task:
                    self._work(connection, pack)
                else:
                    connection.close()
        finally:
            connection.close()

    def _next(self) -> tuple[OutgoingPack | None, bool]:
        """Wait for a task: a pack, or None to compare. No task if it is time to disconnect."""
        until = time.monotonic() + IDLE_SECONDS
        with self._changed:
            while not self._closing and (now := time.monotonic()) < until:
                may_begin = now >= self._resume_at and not (self._failures and self._busy)
                compares = now >= self._agreement.due and not self._is_comparing
                if may_begin and compares:
                    self._busy += 1
                    self._is_comparing = True
                    return None, True
                if may_begin and self._queue and self._agreement.may_send:
                    self._busy += 1
                    return self._queue.popleft(), True
                at = until if now >= self._resume_at else min(until, self._resume_at)
                if may_begin and not self._is_comparing:
                    at = min(at, max(now, self._agreement.due))
                self._changed.wait(max(0.001, at - now))
        return None, False

    def _work(self, connection: EdgeConnection, pack: OutgoingPack | None) -> None:
        began = time.monotonic()
        try:
            if pack is None:
                self._agreement.compare(connection)
                verdict: Verdict = Taken()
            else:
                verdict = verdict_of(connection.post(pack.record), self._url, time.time)
        except DeliveryError as error:
            verdict = Later(error)
        with self._changed:
            self._busy -= 1
            if pack is None:
                self._is_comparing = False
                if isinstance(verdict, Later):
                    self._fail(verdict, began)
                    self._cannot_compare = True
                elif self._cannot_compare:
                    self._failures, self._trouble, self._cannot_compare = 0, None, False
            else:
                self._settle(pack, verdict, began)
            self._changed.notify_all()
        self._wake()

    def _settle(self, pack: OutgoingPack, verdict: Verdict, began: float) -> None:
        if isinstance(verdict, Later):
            self._queue.append(pack)  # behind the others: it may be the only one that fails
            if not self._closing:
                self._fail(verdict, began)
            return
        self._sizes.pop(pack.number, None)
        match verdict:
            case Rejected(reason):
                self._rejected[pack.number] = reason
                if reason == "unknown_collection":
                    self._agreement.rejected(pack.fingerprint)
            case TooLarge():
                self._too_large.add(pack.number)
            case _:
                self._acknowledged[pack.number] = None
        # An edge needs no Kafka to refuse a pack: that tells nothing about those that wait.
        if isinstance(verdict, Taken) or not self._queue:
            self._recover()

    def _recover(self) -> None:
        self._failures, trouble, self._trouble = 0, self._trouble, None
        self._logged.clear()
        if trouble is not None:
            _log.warning("packs are sent again, %d were waiting", self._waiting())

    def _fail(self, verdict: Later, began: float) -> None:
        """Pause after a failure; those of attempts that ran at the same time count as one."""
        now, retry = time.monotonic(), self._timing.retry
        if began >= self._failed_at:
            self._failures += 1
            self._failed_at = now
        # Many producers lose the same edge at once: let them come back one after the other.
        wait = retry[min(self._failures, len(retry)) - 1] * (0.5 + 0.5 * self._jitter())
        self._resume_at = max(self._resume_at, now + verdict.seconds + wait)
        if str(verdict.why) not in self._logged:  # during an outage, causes alternate
            self._logged.add(str(verdict.why))
            _log.warning("packs wait in the outbox: %s", verdict.why)
        self._trouble, self._cannot_compare = verdict.why, False

    def _ended(self) -> None:
        """Give up all packs if one of the threads has ended: its own would have no outcome."""
        with self._changed:
            self._closing = True
            self._lost.update(self._sizes)
            self._sizes.clear()
            self._queue.clear()
            self._changed.notify_all()
        self._wake()
