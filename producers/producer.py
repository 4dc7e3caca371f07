"""The producer: true values in, randomized packs out."""

import threading
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry

from producers.concurrency import fork_hooks
from producers.concurrency.clock import Clock
from producers.concurrency.synchronization import TimeBudget
from producers.config import ProducerConfig
from producers.errors import ClosedError, DeliveryError
from producers.metrics.collector import ProducerMetrics
from producers.metrics.counters import Counters, Receipt, ReportTotals
from producers.pipeline.storing_thread import StoringThread
from producers.pipeline.submission_queue import FlushRequest, PendingReceipt, Submission
from producers.randomization.prf import ClientKeys
from producers.randomization.randomness import Keystream
from producers.randomization.secret import secret_of
from producers.responders.batch import Batch, parts
from producers.responders.factory import responder_of
from producers.responders.validation import window_starts
from producers.storage.input_progress import InputProgress
from producers.transport.sender import STALL_SECONDS


class Producer:
    """Randomizes values, stores the reports, sends them in packs. A context manager: it closes.

    For threads, and for signal handlers, whatever they interrupt. What is stored survives a crash: it is sent
    by the next producer with the same folder, under the same pack ids. Kafka need not be there; what the
    outbox has no room for is dropped and counted. In a forked child the first call begins anew, with a lane
    of the outbox of its own; the parent keeps what it has.

    Parameters
    ----------
    config : ProducerConfig.
    registry : where the metrics go; one of its own when None.

    Raises
    ------
    SecretError if the secret cannot be used, StoreError if the store cannot.
    """

    def __init__(self, config: ProducerConfig, registry: CollectorRegistry | None = None) -> None:
        self._config = config
        self._allowances = {each.collection.name: each for each in config.allowances}
        self._secret = secret_of(config.data_dir, config.secret_file)
        self._client_keys = ClientKeys(self._secret)
        self._words = Keystream()
        self._clock = Clock()
        self._responders = {
            name: responder_of(allowance.collection, self._secret, self._words)
            for name, allowance in self._allowances.items()
        }
        self._closing = threading.Lock()  # never waited for: who closes first takes it for good
        self.begin_anew()
        self._keeper.open()
        try:
            self._keeper.start()
        except DeliveryError:
            self._keeper.abandon()
            raise
        self.registry = CollectorRegistry() if registry is None else registry
        self.registry.register(ProducerMetrics(self._allowances, self.counters))
        fork_hooks.watch(self)

    def report(
        self,
        collection: str,
        values: object,
        clients: object,
        at: object = None,
        *,
        progress: tuple[str, InputProgress] | None = None,
    ) -> Receipt:
        """Randomize one value or many and store the reports. All are checked before the first is randomized.

        Waits for room and for the store, for block_milliseconds in all; what is not stored then is stored,
        refused or dropped later, and counted.

        Parameters
        ----------
        collection : name of one of the collections.
        values : one value, or a list, tuple or one-dimensional array: text; integers for a k-RR collection
            without a list of values; sets of text for k-hot RAPPOR. A value that the collection does not know
            is reported all the same.
        clients : text, the client of each value, whose limits hold. None says that every value is a client of
            its own: nothing is limited then but the cost of one report. A client has one cohort for ever,
            and where the collection memoizes, one permanent response to each value.
        at : unix seconds of the events, one number or one for each; None is now. Only the window leaves. A
            report counts if the log appends it at most grace_seconds after the end of its window and 300 s
            before its start. What by this machine's clock is more than 300 s beyond that is refused here, as
            too late or too early; where clients are given, whatever is late. The rest is sent, and what the
            log then has too late is acknowledged and expired.
        progress : path of an input and how far it was read: noted if and only if these reports, which are
            then stored or dropped together, are not dropped.

        Raises
        ------
        ValueError if there is no such collection, or if one report costs more than its budget; TypeError or
        ValueError if values, clients or times are of the wrong type, number or range, or a client is empty;
        ClosedError, a RuntimeError, after `close`; DeliveryError if the thread that stores has died.
        """
        keeper = self._running()
        if collection not in self._allowances:
            raise ValueError(f"collection must be one of {', '.join(self._allowances)}")
        batch = self._responders[collection].prepare(values, clients)
        if batch.clients is None:
            self._allowances[collection].check_own_clients()
        question = self._allowances[collection].collection
        moment = self._clock.unix() if at is None else at
        windows = window_starts(moment, batch.count, question.window_seconds)
        patience = TimeBudget(self._config.block_milliseconds / 1000)
        tickets = []
        for part in [slice(0, batch.count)] if progress else parts(question.mechanism, batch.count):
            submission = self._randomize(collection, batch, windows, part, progress)
            tickets.append(submission.ticket)
            with patience:
                is_queued = keeper.put(submission, patience.left)
            if not is_queued:
                dropped = submission.ticket.reports
                self._tally.drop(collection, dropped)
                submission.ticket.settle(Receipt(dropped=dropped, why_dropped="the queue is full"))
        for ticket in tickets:
            with patience:
                ticket.done.wait(patience.left)
        receipt = sum((ticket.receipt for ticket in tickets), Receipt())
        if receipt.pending:
            keeper.check()
        return receipt

    def flush(self, timeout: float = 30.0) -> None:
        """Send all that is stored, in packs that are not full too, and wait until it is acknowledged.

        Raises
        ------
        DeliveryError if not all is acknowledged within timeout seconds, at once where waiting cannot help, or
        if reports were dropped since the last flush; ClosedError, a RuntimeError, after `close`.
        """
        wrong = self._flushed(self._running(), timeout, "later")
        _raise([*wrong, *self._newly_dropped()])

    def close(self, timeout: float = 30.0) -> None:
        """Take no more reports, flush, disconnect. Calling it again does nothing.

        What is not acknowledged stays in the outbox, for the next producer with this folder.

        Raises
        ------
        DeliveryError as `flush`, or if what was queued is not stored some seconds after that.
        """
        if not self._closing.acquire(blocking=False) or not self._keeper.is_begun:
            return
        wrong = self._flushed(self._keeper, timeout, "by the next producer with it")
        try:
            self._keeper.close()
        finally:  # what is dropped while it closes is told as well
            _raise([*wrong, *self._newly_dropped()])

    def counters(self) -> Counters:
        """Totals since the start, or since the fork."""
        return self._tally.counters()

    def reasons_not_ready(self) -> list[str]:
        """Why what is reported does not reach Kafka now: packs wait, and none was acknowledged for 20 s.

        They are kept, and nothing is to be done for their sake; empty when all is well.
        """
        if self._tally.standstill_seconds() <= STALL_SECONDS:
            return []
        reason = self._keeper.trouble or f"nothing was acknowledged for {STALL_SECONDS:.0f} s"
        packs = self._tally.sendable()
        return [f"{'1 pack waits' if packs == 1 else f'{packs} packs wait'} in the outbox: {reason}"]

    def unknown(self) -> dict[str, int]:
        """Values that a collection did not know, by name. Depends on true values: never to be exported."""
        return {name: responder.unknown for name, responder in self._responders.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def before_fork(self) -> fork_hooks.Pause:
        """Ask its threads to stand still, with nothing open that must not be copied."""
        return self._keeper.pause()

    def begin_anew(self) -> None:
        """Forget what belongs to the parent; without one, begin."""
        self._tally = ReportTotals(self._allowances)
        self._dropped_told = 0
        self._keeper = StoringThread(self._config, self._secret, self._words, self._clock, self._tally)

    def _running(self) -> StoringThread:
        if self._closing.locked():
            raise ClosedError
        self._keeper.start()
        return self._keeper

    def _randomize(
        self,
        collection: str,
        batch: Batch,
        windows: NDArray[np.int64],
        part: slice,
        progress: tuple[str, InputProgress] | None,
    ) -> Submission:
        cohorts, rows = batch.respond(part)
        clients = None if batch.clients is None else self._client_keys.of(batch.clients[part])
        return Submission(
            collection, windows[part], cohorts, rows, clients, PendingReceipt(len(rows)), progress
        )

    def _flushed(self, keeper: StoringThread, timeout: float, sent: str) -> list[str]:
        """What is wrong after waiting until all is acknowledged; nothing, if it is."""
        seal, patience, wrong = FlushRequest(), TimeBudget(timeout), []
        with patience:
            is_queued = keeper.put(seal, patience.left)
        is_done = is_queued and seal.done.wait(patience.left)
        if not is_done:
            wrong.append(f"not all was acknowledged within {timeout:g} s")
        reason = seal.error if is_done else keeper.trouble
        if reason is not None:
            wrong.append(reason)
        counters = self._tally.counters()
        packs = counters.backlog.packs - counters.unsendable
        if wrong and packs > 0:
            kept = "1 pack is" if packs == 1 else f"{packs} packs are"
            wrong.append(f"{kept} kept in {self._config.data_dir} and will be sent {sent}")
        return wrong

    def _newly_dropped(self) -> list[str]:
        # Two flushes at the same time may both tell of a drop; none goes untold.
        before, now = self._dropped_told, self._tally.dropped()
        self._dropped_told = now
        lost = "1 report was" if now - before == 1 else f"{now - before} reports were"
        return [f"{lost} dropped since the last flush"] if now > before else []


def _raise(wrong: list[str]) -> None:
    if wrong:
        raise DeliveryError("; ".join(wrong))
