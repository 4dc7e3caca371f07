"""The producer: true values in, randomized packs out."""

import logging
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self, overload

from deniable.producers.concurrency import fork_hooks
from deniable.producers.concurrency.clock import Clock
from deniable.producers.concurrency.synchronization import TimeBudget
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import ClosedError, DeliveryError, newly_dropped
from deniable.producers.metrics.counters import Counters, Receipt, ReportTotals
from deniable.producers.pipeline.queueing.submission import FlushRequest, SeenReports
from deniable.producers.pipeline.recording import process_end
from deniable.producers.pipeline.recording.recorder import Recorder
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.producers.pipeline.storing_thread import StoringThread
from deniable.producers.randomization.randomness import Keystream
from deniable.producers.responders.validation import (
    ABSENT,
    Clients,
    EventTime,
    EventValue,
    Times,
    Values,
    one_given,
    unix_times,
)
from deniable.producers.storage.input_progress import InputProgress
from deniable.producers.transport.agreement import Disagreement
from deniable.protocol.secrets.secret import secret_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_log = logging.getLogger(__name__)


class Producer:
    """Randomizes values, stores the reports, sends them in packs. A context manager, which closes it.

    Can be used from several threads and from signal handlers. Stored reports survive a crash: the next
    producer with the same folder sends them, under the same pack ids. Kafka may be down; reports without room
    in the outbox are dropped and counted. In a forked child the first call starts afresh, with a separate
    lane of the outbox; the parent keeps its own.

    Parameters
    ----------
    config : ProducerConfig.
    registry : for the metrics; a new one if None.

    Raises
    ------
    SecretError if the secret cannot be used; StoreError if the store cannot be used.
    """

    def __init__(self, config: ProducerConfig, registry: "CollectorRegistry | None" = None) -> None:
        self._config = config
        self._allowances = {each.collection.name: each for each in config.allowances}
        self._secret = secret_of(config.data_dir, config.secret_file)
        self._words = Keystream()
        self._clock = Clock()
        self._randomization = Randomization(self._allowances, self._secret, self._words, self._clock)
        self._closing = threading.Lock()  # never waited for: the first `close` keeps it
        self._begin_anew()
        self._pipeline.open()
        try:
            self._pipeline.start()
        except DeliveryError:
            self._pipeline.abandon()
            raise
        if registry is not None:
            self.registry = self._exported_to(registry)
        fork_hooks.watch(self)
        process_end.watch(self)

    def record(
        self, collection: str, value: EventValue, client: str | int | None = None, at: EventTime = None
    ) -> None:
        """Record one event: keep it in memory for a thread that reports it within milliseconds.

        Never waits and never fails the application: microseconds in any thread, coroutine or signal handler.
        What cannot be reported is dropped and counted, as are events beyond 262,144 of a collection that
        wait, an empty client, a time out of range, and events after `close`. `flush`, `close` and the end of
        the interpreter lose no recorded event, nor does SIGTERM if the producer was opened in the main
        thread; kill -9 and `os._exit` lose those of the last milliseconds, which `report` does not.

        Parameters
        ----------
        collection : name of one of the collections.
        value : text, a number, True, False, or None for a missing one; a tuple or list of two for a pair of
            fields, a set of them for k-hot RAPPOR. `2`, `2.0` and `"2"` are one number where a number is
            asked for, and the text `"2"` elsewhere: `protocol.notation`. A value that the collection does
            not know is reported, too: see `report`.
        client : whose limits apply; None means that every event is from a different client, as in `report`.
        at : time of the event, unix seconds; None means now. A number of 13 digits is milliseconds, one of 8
            a date in UTC: `protocol.times`.

        Raises
        ------
        ValueError if the collection is unknown; TypeError if value, client or time has the wrong type.
        """
        self._recorder.record(collection, value, client, at)

    @overload
    def report(self, collection: str, values: Values, clients: Clients, at: Times = None) -> Receipt: ...

    @overload
    def report(self, collection: str, values: Values, *, client: Clients, at: Times = None) -> Receipt: ...

    def report(
        self,
        collection: str,
        values: Values,
        clients: Clients = ABSENT,
        at: Times = None,
        *,
        client: Clients = ABSENT,
    ) -> Receipt:
        """Randomize one value or many and store the reports. All are checked before the first is randomized.

        Waits for room and for the store, at most block_milliseconds in all; reports that are undecided then
        are stored, refused or dropped later, and counted.

        Parameters
        ----------
        collection : name of one of the collections.
        values : one value as for `record`, or a list, tuple or one-dimensional array of them. Values that the
            collection does not know are reported, too, since refusing them would show something of them: for
            `number`, one beyond the range as the nearest end, what is none as a random step. Texts may have
            any length; their UTF-8 is hashed or looked up whole.
        clients, client : one of the two must be given, and means the same: text or integer, the client of
            each value, whose limits apply. None means that every value is from a different client: then only
            the cost of one report is limited. A client keeps one cohort and, if the collection memoizes, one
            permanent response to each value.
        at : times of the events as for `record`, one, or one for each; None means now. Only the window is
            sent. A report counts if the log appends it at most grace_seconds after the end of its window, and
            at most 300 s before its start. Reports that miss that by more than 300 s by this machine's clock
            are refused here as too late or too early; if clients are given, all late ones. Others are sent;
            those that the log appends too late are acknowledged and expired.

        Raises
        ------
        ValueError if the collection is unknown, or if one report costs more than its budget; TypeError or
        ValueError if values, clients or times have the wrong type, number or range, or a client is empty;
        ClosedError, a RuntimeError, after `close`; DeliveryError if the storing thread has died.
        """
        return self._report(collection, values, one_given(clients, client), unix_times(at))

    def _report(
        self,
        collection: str,
        values: object,
        clients: Clients,
        at: Times = None,
        progress: tuple[str, InputProgress] | None = None,
        seen: SeenReports | None = None,
    ) -> Receipt:
        """Like `report`; with `progress`, reports and place in the input are stored or dropped together."""
        pipeline = self._running()
        single = None if progress else self._randomization.single(collection, values, clients, at)
        time_left = TimeBudget(self._config.block_milliseconds / 1000)
        pending = []
        for submission in (
            [single]
            if single
            else self._randomization.submissions(collection, values, clients, at, progress, seen)
        ):
            pending.append(submission.pending_receipt)
            with time_left:
                is_queued = pipeline.put(submission, time_left.left)
            if not is_queued:
                pipeline.drop(submission, "the queue is full")
        for each in pending:
            with time_left:
                each.done.wait(time_left.left)
        receipt = (
            pending[0].receipt if len(pending) == 1 else sum((each.receipt for each in pending), Receipt())
        )
        if receipt.pending:
            pipeline.check()
        return receipt

    def flush(self, timeout: float = 30.0) -> None:
        """Send everything recorded or reported, also in packs that are not full, and wait for its arrival.

        Raises
        ------
        DeliveryError if not all are acknowledged within `timeout` seconds (at once if waiting cannot help),
        or if reports were dropped since the last flush; ClosedError, a RuntimeError, after `close`.
        """
        wrong = self._flushed(self._running(), self._recorder.drain, timeout, "later")
        _raise([*wrong, *self._newly_dropped()])

    async def aflush(self, timeout: float = 30.0) -> None:  # noqa: ASYNC109 (as in `flush`)
        """Like `flush`, without blocking the event loop."""
        import asyncio

        await asyncio.to_thread(self.flush, timeout)

    def close(self, timeout: float = 30.0) -> None:
        """Refuse further reports, flush, disconnect. Calling it again does nothing.

        Unacknowledged packs stay in the outbox for the next producer with this folder.

        Raises
        ------
        DeliveryError like `flush`, or if queued reports are not stored within some seconds after that.
        """
        if not self._closing.acquire(blocking=False):
            return
        if not (self._pipeline.is_begun or self._recorder.is_used):  # in a forked child
            self._recorder.close(timeout)
            process_end.forget(self)
            return
        try:
            self._pipeline.start()
            drain, sent = self._recorder.close, "by the next producer with it"
            wrong = self._flushed(self._pipeline, drain, timeout, sent)
        except DeliveryError as error:  # a thread died; the others must end
            wrong = [str(error)]
        try:
            self._pipeline.close()
        finally:  # report drops during closing, too
            process_end.forget(self)
            _raise([*wrong, *self._newly_dropped()])

    async def aclose(self, timeout: float = 30.0) -> None:  # noqa: ASYNC109 (as in `close`)
        """Like `close`, without blocking the event loop."""
        import asyncio

        await asyncio.to_thread(self.close, timeout)

    @cached_property
    def registry(self) -> "CollectorRegistry":
        """The registry with the metrics: the given one, else one that is made when it is first asked for."""
        from prometheus_client import CollectorRegistry

        return self._exported_to(CollectorRegistry())

    def __reduce__(self) -> "str | tuple[object, ...]":
        raise TypeError("a producer cannot be passed to another process: open one there, by the file's path")

    def counters(self) -> Counters:
        """Return totals since the start, or since the fork."""
        return self._totals.counters()

    def reasons_not_ready(self) -> list[str]:
        """Return why reports are not counted; empty if nothing is known to be wrong.

        Packs wait, and none was acknowledged for 20 s: they are kept, and the application need not do
        anything. Or the store takes no reports. Or the workers count a collection
        with other parameters: its reports are rejected, until the collection file is theirs.
        """
        reasons = [str(each) for each in self._differing().values()]
        if (away := self._pipeline.away) is not None:
            reasons.append(f"clients cannot be charged: {away}")
        if trouble := self._pipeline.store_trouble:
            reasons.append(f"the store takes no reports: {trouble}")
        if self._totals.standstill_seconds() <= self._config.timing.stall:
            return reasons
        config = self._config
        reason = self._pipeline.trouble or (
            f"{config.receiver} at {config.destination} acknowledged nothing for {config.timing.stall:.0f} s"
        )
        packs = self._totals.sendable()
        waiting = f"{'1 pack waits' if packs == 1 else f'{packs} packs wait'} in the outbox: {reason}"
        return [waiting, *reasons]

    def unknown(self) -> dict[str, int]:
        """Return the number of unknown values by collection. It depends on true values: never export it."""
        return self._randomization.unknown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except DeliveryError as undelivered:
            if error is None:
                raise
            # The application sees its own error; raised here, this one would hide it.
            _log.error("closed while handling %s: %s", type(error).__name__, undelivered)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def save(self, seconds: float) -> bool:
        """Wait until what was recorded is stored, refused or dropped; False if not all is within `seconds`.

        Called when the process ends; Kafka is not waited for.
        """
        return self._recorder.save(seconds)

    def _before_fork(self) -> list[fork_hooks.Pause]:
        """Ask its threads to pause, with nothing open that must not be copied."""
        return self._pipeline.pauses()

    def _begin_anew(self) -> None:
        """Start afresh, forgetting what belongs to the parent, if there is one."""
        self._totals = ReportTotals(self._allowances)
        self._dropped_reported = 0
        self._pipeline = StoringThread(
            self._config, self._secret, self._words, self._clock, self._totals, self._randomization
        )
        self._recorder = Recorder(self._randomization, self._pipeline, self._totals, self._clock)
        if self._closing.locked():
            self._recorder.close(0.0)

    def _exported_to(self, registry: "CollectorRegistry") -> "CollectorRegistry":
        from deniable.producers.metrics.collector import ProducerMetrics

        registry.register(ProducerMetrics(self._allowances, self.counters, self._differing))
        return registry

    def _differing(self) -> Mapping[str, Disagreement]:
        return self._pipeline.agreement.differing

    def _running(self) -> StoringThread:
        if self._closing.locked():
            raise ClosedError
        self._pipeline.start()
        return self._pipeline

    def _flushed(
        self, pipeline: StoringThread, drain: Callable[[float], bool], timeout: float, sent: str
    ) -> list[str]:
        """Wait until all is acknowledged, first of all what `drain` queues; return what is wrong."""
        flush_request, time_left, wrong = FlushRequest(), TimeBudget(timeout), []
        with time_left:
            is_drained = drain(time_left.left)
        with time_left:
            is_queued = pipeline.put(flush_request, time_left.left)
        is_done = is_queued and flush_request.done.wait(time_left.left) and is_drained
        if not is_done:
            wrong.append(f"not all was acknowledged within {timeout:g} s")
        reason = flush_request.error if is_done else pipeline.trouble
        if reason is not None:
            wrong.append(reason)
        counters = self._totals.counters()
        packs = counters.backlog.packs - counters.unsendable
        if wrong and packs > 0 and self._config.console is None:
            kept = "1 pack is" if packs == 1 else f"{packs} packs are"
            wrong.append(f"{kept} kept in {self._config.data_dir} and will be sent {sent}")
        return wrong

    def _newly_dropped(self) -> list[str]:
        # Two simultaneous flushes may both report a drop; none is missed.
        before, now = self._dropped_reported, self._totals.dropped()
        self._dropped_reported = now
        return newly_dropped(before, now)


def _raise(wrong: list[str]) -> None:
    if wrong:
        raise DeliveryError("; ".join(wrong))
