"""Record one event a call, without waiting; a thread randomizes together what came within milliseconds.

Rules:
1. `record` takes no lock and does no I/O: it adds to a list, and wakes the thread if that may be asleep.
2. Before it sleeps, the thread sets `_wake_above` to 0 and then looks for events once more. An event is added
   before `_wake_above` is read, so either the thread sees it or its caller wakes the thread. One caller does:
   it raises `_wake_above` first. If an exception of a signal handler ends it there, the thread looks by
   itself after IDLE_SECONDS.
3. Nothing that fails here fails the caller: what cannot be sent is dropped and counted.
"""

import logging
import sys
import threading
from collections import deque
from contextlib import suppress
from time import monotonic, sleep
from typing import cast

from deniable.producers.concurrency.background_thread import Background
from deniable.producers.concurrency.clock import Clock
from deniable.producers.concurrency.synchronization import AtomicSum, Latch, WakeUp
from deniable.producers.errors import ClosedError, DeliveryError
from deniable.producers.metrics.counters import ReportTotals
from deniable.producers.pipeline.queueing.submission import PendingReceipt, Submission
from deniable.producers.pipeline.recording import process_end
from deniable.producers.pipeline.recording.event_buffer import FIELDS, MOST_EVENTS, EventBuffer, Events
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.producers.pipeline.storing_thread import StoringThread
from deniable.producers.responders.single_value import unix_seconds, value_rule
from deniable.producers.responders.validation import EventTime, client_text
from deniable.protocol.times import NUMBERS

INTERVAL_SECONDS = 0.02
IDLE_SECONDS = 1.0
MANY_EVENTS = 2**14
#: Seconds between two messages about dropped events.
MESSAGE_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Recorder:
    """The buffers of one producer and the thread that empties them. Belongs to the process that created it.

    Parameters
    ----------
    randomization : of the producer's collections.
    pipeline : takes the submissions.
    totals : counts dropped events.
    clock : unix seconds of events without a time.
    """

    def __init__(
        self,
        randomization: Randomization,
        pipeline: StoringThread,
        totals: ReportTotals,
        clock: Clock,
    ) -> None:
        self._randomization = randomization
        self._pipeline = pipeline
        self._totals = totals
        self._unix = clock.unix
        self._buffers = {
            name: EventBuffer(rule.exact, rule.checked)
            for name, allowance in randomization.allowances.items()
            for rule in [value_rule(allowance.collection)]
        }
        self._wake_above = 0
        self._wake_up = WakeUp()
        self._unqueued: dict[str, deque[Submission]] = {name: deque() for name in self._buffers}
        self._undecided: deque[PendingReceipt] = deque()
        self._requests: deque[Latch] = deque()
        self._is_ending = False
        self._is_over = False
        self._lost = AtomicSum()
        self._sweeping = threading.Lock()  # never waited for
        self._message = _Message()
        self._thread = Background("recording", self._run, self._end)

    def record(self, collection: str, value: object, client: object, at: EventTime) -> None:
        """Add an event to the buffer of its collection; see `Producer.record`."""
        buffer = self._buffers.get(collection)
        if buffer is None:
            raise self._randomization.unknown_collection()
        if type(value) is not buffer.value_type:
            value = buffer.checked(value)
        if client is not None and type(client) is not str:
            client = client_text("client", client)
        at = self._unix() if at is None else unix_seconds(at)
        items = buffer.items
        size = len(items)
        if size >= buffer.full or self._is_ending:
            self._refuse(collection)
            return
        items.extend((value, client, at))
        if size >= self._wake_above:
            self._wake()

    @property
    def is_used(self) -> bool:
        """Whether an event was recorded in this process."""
        return self._thread.is_begun or self._holds(1)

    def drain(self, seconds: float) -> bool:
        """Queue everything recorded before this call; False if that takes longer than `seconds`.

        Raises
        ------
        DeliveryError if the thread died or cannot be started.
        """
        if not self.is_used:
            return True
        self._thread.start()  # it could not be started before, or its first event is just being recorded
        request = Latch()
        self._requests.append(request)
        self._wake_up.notify()
        if self._is_over:
            request.open()
        is_done = request.wait(seconds)
        self._check()
        return is_done

    def save(self, seconds: float) -> bool:
        """Wait until everything recorded before this call is stored, refused or dropped; False if not all."""
        deadline = monotonic() + seconds
        try:
            is_drained = self.drain(seconds)
        except DeliveryError:
            return False
        return is_drained and all(each.done.wait(deadline - monotonic()) for each in tuple(self._undecided))

    def close(self, seconds: float) -> bool:
        """Drop and count further events, queue earlier ones, end; False if that takes longer than `seconds`.

        Raises
        ------
        DeliveryError if the thread died or cannot be started: then no event is queued.
        """
        self._is_ending = True
        if self.is_used:
            try:
                self._thread.start()
            except DeliveryError:
                self._sweep()
                raise
        self._wake_up.notify()
        is_done = self._thread.join(seconds)
        self._check()
        return is_done

    def _check(self) -> None:
        if self._thread.death is not None:
            raise DeliveryError(self._thread.death)

    def _refuse(self, collection: str) -> None:
        """Count an event that cannot be kept."""
        self._totals.drop(collection, 1)
        if self._is_ending:
            death = self._thread.death
            self._message.once(
                "over", f"recorded events are dropped: {death or 'an event was recorded after close'}"
            )
        else:
            self._lost.add(1)
            self._wake_up.notify()

    def _wake(self) -> None:
        if not self._thread.is_begun:
            process_end.watch_child()
        self._wake_above = sys.maxsize  # before the notice: the thread sets it again once it has seen that
        try:
            self._thread.start()
        except DeliveryError as error:  # the next event tries again
            self._message.once("thread", f"recorded events wait: {error}")
            self._wake_above = 0
        self._wake_up.notify()
        if self._is_over:
            self._wake_above = 0
            self._sweep()

    def _run(self) -> None:
        while not self._is_ending:
            self._rest()
            self._serve()
        self._serve(float("inf"))

    def _rest(self) -> None:
        """Wait for an event, then as long as the others that come with it take."""
        if any(self._unqueued.values()):
            sleep(INTERVAL_SECONDS)
            return
        self._wake_above = 0
        if not (self._holds(1) or self._is_needed()):
            self._wake_up.wait(IDLE_SECONDS)
        self._wake_above = FIELDS * MANY_EVENTS
        deadline = monotonic() + INTERVAL_SECONDS
        # A notice may be an earlier one that was not needed.
        while not (self._holds(MANY_EVENTS) or self._is_needed()) and (left := deadline - monotonic()) > 0:
            self._wake_up.wait(left)

    def _holds(self, events: int) -> bool:
        return any(len(each.items) >= FIELDS * events for each in self._buffers.values())

    def _is_needed(self) -> bool:
        return bool(self._requests) or self._is_ending

    def _serve(self, seconds: float = 0.0) -> None:
        """Randomize and queue what was recorded, and what had no room before."""
        requests = tuple(self._requests)
        for name, buffer in self._buffers.items():
            waiting = self._unqueued[name]
            self._queue(waiting, seconds)
            if buffer.items and not waiting:  # only once: other collections and `flush` wait
                waiting.extend(self._randomized(name, buffer.take()))
                self._queue(waiting, seconds)
        while self._undecided and self._undecided[0].done.is_open:
            self._undecided.popleft()
        self._message.each_minute(
            self._lost.value,
            "recorded events were dropped since the start: they come faster than they are stored, and at "
            f"most {MOST_EVENTS} of each collection wait",
        )
        if not any(self._unqueued.values()):
            for request in requests:
                request.open()
                self._requests.remove(request)

    def _queue(self, waiting: deque[Submission], seconds: float) -> None:
        while waiting:
            try:
                self._pipeline.start()
                if not self._pipeline.put(waiting[0], seconds):
                    return
            except (ClosedError, DeliveryError) as error:
                self._pipeline.drop(waiting[0], str(error))
            self._undecided.append(waiting.popleft().pending_receipt)

    def _randomized(self, name: str, events: Events) -> list[Submission]:
        """Randomize events; those with a client and those without it are separate submissions."""
        named = events.with_clients()
        if lost := len(events.values) - len(named.values):
            self._discard(name, lost, "client must not be empty")
        usable = named.in_time()
        if lost := len(named.values) - len(usable.values):
            self._discard(name, lost, f"at must be {NUMBERS}")
        submissions: list[Submission] = []
        for part in usable.by_client():
            clients = None if part.clients[0] is None else cast("list[str]", part.clients)
            try:
                submissions += self._randomization.submissions(name, part.values, clients, part.times)
            except ValueError as error:  # one report costs more than the budget
                self._discard(name, len(part.values), str(error))
            except BaseException:  # the thread dies of a defect
                self._totals.drop(name, len(usable.values))
                raise
        return submissions

    def _discard(self, name: str, events: int, why: str) -> None:
        self._totals.drop(name, events)
        self._message.once(f"{name} {why}", f"recorded events of {name} are dropped: {why}")

    def _end(self) -> None:
        """Count what is left as dropped, and release all who wait, however the thread ended."""
        self._is_ending = self._is_over = True
        self._wake_above = 0  # so that an event which comes after this is swept by its caller
        self._sweep()
        error = self._thread.death or str(ClosedError())
        for waiting in self._unqueued.values():
            for each in waiting:
                self._pipeline.drop(each, error)
        for request in tuple(self._requests):  # another thread may add one meanwhile
            request.open()

    def _sweep(self) -> None:
        """Count events that nobody will take as dropped."""
        # Who finds the lock taken may leave: its holder looks again after it has released it.
        while self._holds(1) and self._sweeping.acquire(blocking=False):
            for name, buffer in self._buffers.items():
                self._totals.drop(name, len(buffer.take().values))
            self._sweeping.release()


class _Message:
    """Logs without repeating itself."""

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._said_at = -float("inf")
        self._said_number = 0

    def once(self, what: str, message: str) -> None:
        if what not in self._said:
            self._said.add(what)
            _warn(message)

    def each_minute(self, number: int, message: str) -> None:
        """Log a number that has grown since the last message, at most once in MESSAGE_SECONDS."""
        if number > self._said_number and monotonic() >= self._said_at + MESSAGE_SECONDS:
            self._said_at, self._said_number = monotonic(), number
            _warn(f"{number} {message}")


def _warn(message: str) -> None:
    with suppress(Exception):  # of a handler of the application, which may raise anything
        _log.warning("%s", message)
